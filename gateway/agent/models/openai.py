"""Any server that speaks `/chat/completions`: OpenAI's own, vLLM, llama.cpp, Ollama and others.

It is asked over the HTTP client that is here already. The vendor's package would cost each
runtime process a second of start and tens of megabytes, and expects of a stream what other
servers do not keep.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from gateway.agent.models.base import Fragment, ModelStep
from gateway.agent.models.deltas import MAX_EVENT_BYTES, Deltas, StreamError, events
from gateway.agent.models.messages import Names, conversation, instruction_of
from gateway.agent.models.remote import (
    PAUSE_S,
    ModelFailure,
    RemoteModel,
    http_failure,
    open_session,
)
from gateway.agent.models.schemas import json_schema
from gateway.agent.platform import Content, FunctionCall, LlmRequest, Part
from gateway.config import ModelSettings
from gateway.errors import AppError

ERROR_S = 2.0
"""Time for the body of an error."""
_CUT = frozenset(("length", "max_tokens", "model_length"))
_FAILED = frozenset(("error", "abort", "network_error", "insufficient_system_resource"))
"""What servers call an answer that they could not bring to its end."""
_SECONDS = re.compile(r"\d+(?:\.\d+)?")


class OpenAiModel(RemoteModel):
    """A model behind `/chat/completions`. Raises AppError model.url where no server is set."""

    name = "openai"

    def __init__(self, settings: ModelSettings, wanted: str) -> None:
        super().__init__(settings, wanted)
        parts = urlsplit(settings.url or "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AppError(
                "model.url",
                f"{settings.url or ''!r} is no address of a server",
                where="model.url",
                hint="the URL before /chat/completions, such as http://127.0.0.1:11434/v1",
            )
        self._url = f"{(settings.url or '').rstrip('/')}/chat/completions"
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session()
        return self._session

    async def ask(self, step: ModelStep, model: str) -> AsyncGenerator[Part | None, None]:
        """One streamed answer."""
        names = Names(step.request)
        key = self.settings.api_key
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key is not None else {}
        try:
            async with self._open().post(
                self._url,
                json=self._body(step, model, names),
                headers=headers,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise await _refused(response, model)
                if response.content_type == "text/html":
                    raise ModelFailure("model.unknown", "a web page is at this address", model)
                async for part in _answer(response, model, names):
                    yield part
        except aiohttp.ClientPayloadError:
            raise ModelFailure("model.broken", "the answer broke off", model, PAUSE_S) from None
        except aiohttp.ClientError as error:
            message = f"no connection ({type(error).__name__})"
            raise ModelFailure("model.unavailable", message, model, PAUSE_S) from None
        except StreamError as error:
            raise ModelFailure("model.broken", f"{error}", model, PAUSE_S) from None

    def _body(self, step: ModelStep, model: str, names: Names) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": _messages(step.request, names),
            "stream": True,
        }
        temperature = self.temperature_of(step)
        if temperature is not None:
            body["temperature"] = temperature
        if self.settings.max_tokens is not None:
            body["max_tokens"] = self.settings.max_tokens
        tools = _tools(step.request, names)
        if tools:
            body["tools"] = tools
        return {**body, **self.settings.extra}


# ---- what is asked


def _messages(request: LlmRequest, names: Names) -> list[dict[str, Any]]:
    instruction = instruction_of(request)
    messages: list[dict[str, Any]] = (
        [{"role": "system", "content": instruction}] if instruction else []
    )
    for content in conversation(request):
        if content.is_model():
            messages.append(_assistant(content, names))
            continue
        answers = [p.function_response for p in content.parts if p.function_response is not None]
        messages += [
            {"role": "tool", "tool_call_id": one.id, "content": _json(one.response)}
            for one in answers
        ]
        if not answers:
            messages.append({"role": "user", "content": _user(content)})
    return messages


def _assistant(content: Content, names: Names) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "\n".join(part.text for part in content.parts if part.text),
    }
    calls = [_call(part, part.function_call, names) for part in content.parts if part.function_call]
    if calls:
        message["tool_calls"] = calls
    return message


def _call(part: Part, call: FunctionCall, names: Names) -> dict[str, Any]:
    function = {"name": names.plain(call.name), "arguments": _json(call.args or {})}
    made: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if isinstance(part.kept, Mapping):
        made["extra_content"] = part.kept
    return made


def _user(content: Content) -> str | list[dict[str, Any]]:
    """Text alone wherever there is nothing else: not every server takes a list."""
    text = "\n".join(part.text for part in content.parts if part.text)
    pictures = [
        {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{blob.data.decode()}"}}
        for part in content.parts
        if (blob := part.inline_data) is not None
        and blob.data is not None
        and (mime := blob.mime_type or "").startswith("image/")
    ]
    return [{"type": "text", "text": text}, *pictures] if pictures else text


_NONE: Mapping[str, Any] = {"type": "object", "properties": {}}
"""Parameters of a tool that takes none."""


def _tools(request: LlmRequest, names: Names) -> list[dict[str, Any]]:
    declared = request.config.tools if request.config is not None else None
    return [
        {
            "type": "function",
            "function": {
                "name": names.plain(one.name),
                "description": one.description or "",
                "parameters": {
                    "properties": {},
                    **json_schema(one.parameters or {"type": "object"}),
                },
            },
        }
        for tool in declared or ()
        for one in tool.function_declarations
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# ---- what is answered


async def _answer(
    response: aiohttp.ClientResponse, model: str, names: Names
) -> AsyncGenerator[Part | None, None]:
    deltas = Deltas()
    done = False
    if response.content_type == "application/json":
        yield Fragment(text=deltas.add(_chunk(await _whole(response), model)))
        done = True
    else:
        async for data in events(response.content.iter_any()):
            if data.strip() == "[DONE]":
                done = True
                break
            words = deltas.add(_chunk(data, model))
            yield Fragment(text=words) if words else None
    rest = deltas.rest()
    if rest.strip():
        yield Fragment(text=rest)
    reason = deltas.finish_reason
    if reason in _CUT:
        raise ModelFailure("model.cut", "the answer was too long", model)
    if reason == "content_filter":
        raise ModelFailure("model.blocked", "the service held the answer back", model)
    if reason in _FAILED or not (reason or done):
        raise ModelFailure("model.broken", "the answer broke off", model, PAUSE_S)
    for asked in deltas.calls():
        part = Part.from_function_call(names.own(asked.name), asked.args)
        assert part.function_call is not None
        part.function_call.fault = asked.fault
        part.kept = asked.kept
        yield part


async def _whole(response: aiohttp.ClientResponse) -> str:
    """The body of an answer that does not stream. Raises StreamError where it has no end."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_EVENT_BYTES:
            raise StreamError("an answer without an end")
    return body.decode("utf-8-sig", "replace")


def _chunk(data: str, model: str) -> Mapping[str, Any]:
    """One event as an object. Raises ModelFailure where the server reports an error by it."""
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        raise StreamError("an event is not JSON") from None
    if not isinstance(chunk, Mapping):
        raise StreamError("an event is no object")
    error = chunk.get("error")
    if error:
        status = error.get("code") if isinstance(error, Mapping) else None
        raise http_failure(status if isinstance(status, int) else 500, model, _reasons(chunk))
    return chunk


async def _refused(response: aiohttp.ClientResponse, model: str) -> ModelFailure:
    reasons: list[Any] = []
    try:
        async with asyncio.timeout(ERROR_S):
            reasons = _reasons(json.loads(await _whole(response)))
    except (TimeoutError, ValueError, RecursionError, StreamError):
        # The status says enough.
        pass
    wait = response.headers.get("Retry-After", "")
    wait_s = float(wait) if _SECONDS.fullmatch(wait) else None
    return http_failure(response.status, model, reasons, wait_s)


def _reasons(body: Any) -> list[Any]:
    error = body.get("error") if isinstance(body, Mapping) else None
    return [error.get("code"), error.get("type")] if isinstance(error, Mapping) else []
