"""Google's Gemini models through the official client: with an API key, or on Vertex AI."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import aiohttp
from google import genai
from google.auth import exceptions as auth
from google.genai import errors, types

from gateway import google_credentials
from gateway.agent.models.base import Fragment, ModelStep
from gateway.agent.models.gemini_wire import GeminiResponse
from gateway.agent.models.messages import Names, conversation, instruction_of
from gateway.agent.models.remote import (
    PAUSE_S,
    ModelFailure,
    RemoteModel,
    http_failure,
    open_session,
)
from gateway.agent.models.schemas import gemini_schema
from gateway.agent.platform import Content, LlmRequest, Part
from gateway.config import ModelSettings
from gateway.errors import AppError, ConfigError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
NO_SIGNATURE = b"skip_thought_signature_validator"
"""What Gemini 3 takes for a call that was not its own: it wants a signature with the first call
of each of its answers, and callbacks may make calls, too."""
_SIGNS = re.compile(r"gemini-(?:[3-9]|\d\d)")
_BLOCKED = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")
)
BAD_KEY = "API_KEY_INVALID"
"""Reason with which a wrong key is refused; its status is that of a bad request."""
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


class GeminiModel(RemoteModel):
    """A Gemini model. Raises AppError model.key where neither key nor project is set."""

    name = "gemini"

    def __init__(self, settings: ModelSettings, wanted: str) -> None:
        super().__init__(settings, wanted)
        if settings.api_key is None and not settings.project:
            raise AppError(
                "model.key",
                "Gemini needs a key or a project",
                where="model.api_key",
                hint="set VOICE_GATEWAY_MODEL__API_KEY, or model.project for Vertex AI",
            )
        self._account = _credentials(settings)
        self._session: aiohttp.ClientSession | None = None
        self._client: genai.Client | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        session, self._session = self._session, None
        if client is not None:
            await client.aio.aclose()
            client.close()
        if session is not None:
            await session.close()

    def _open(self) -> genai.Client:
        if self._client is None:
            self._session = open_session(GeminiResponse)
            self._client = _client(self.settings, self._account, self._session)
        return self._client

    async def ask(self, step: ModelStep, model: str) -> AsyncGenerator[Part | None, None]:
        """One streamed answer."""
        names = Names(step.request)
        signs = _SIGNS.search(model) is not None
        reason = ""
        try:
            contents: Any = [_content(c, names, signs) for c in conversation(step.request)]
            config = self._config(step, names)
        except ValueError as error:
            message = f"the request cannot be written ({type(error).__name__})"
            raise ModelFailure("model.rejected", message, model) from None
        try:
            stream = await self._open().aio.models.generate_content_stream(
                model=model, contents=contents, config=config
            )
            async for chunk in stream:
                feedback = chunk.prompt_feedback
                if feedback is not None and feedback.block_reason is not None:
                    raise _ended(feedback.block_reason.value, model, blocked=True)
                yield None
                candidate = chunk.candidates[0] if chunk.candidates else None
                if candidate is None:
                    continue
                for part in (candidate.content and candidate.content.parts) or ():
                    answer = _answer(part, names)
                    if answer is not None:
                        yield answer
                if candidate.finish_reason is not None:
                    reason = candidate.finish_reason.value
        except errors.APIError as error:
            raise _refused(error, model) from None
        except auth.TransportError:
            message = "no token: the service of accounts is out of reach"
            raise ModelFailure("model.unavailable", message, model, PAUSE_S) from None
        except auth.GoogleAuthError as error:
            message = f"the credentials give no token ({type(error).__name__})"
            raise ModelFailure("model.auth", message, model) from None
        except aiohttp.ClientConnectionError as error:
            message = f"no connection ({type(error).__name__})"
            raise ModelFailure("model.unavailable", message, model, PAUSE_S) from None
        except (
            aiohttp.ClientError,
            ValueError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            # Half a chunk is not JSON, and the client trusts the shape of a whole one.
            message = f"the answer broke off or is none ({type(error).__name__})"
            raise ModelFailure("model.broken", message, model, PAUSE_S) from None
        if reason != "STOP":
            raise _ended(reason, model)

    def _config(self, step: ModelStep, names: Names) -> types.GenerateContentConfig:
        tools = _tools(step.request, names)
        return types.GenerateContentConfig(
            system_instruction=instruction_of(step.request) or None,
            temperature=self.temperature_of(step),
            max_output_tokens=self.settings.max_tokens,
            tools=[types.Tool(function_declarations=tools)] if tools else None,
            safety_settings=[s for one in step.safety if (s := _safety(one)) is not None] or None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )


def _client(settings: ModelSettings, account: Any, session: aiohttp.ClientSession) -> genai.Client:
    options = types.HttpOptions(
        base_url=settings.url,
        extra_body=dict(settings.extra) or None,
        # One attempt: the client would wait for seconds between its own.
        retry_options=types.HttpRetryOptions(attempts=1),
        aiohttp_client=session,
        # Another host is not to have the key.
        async_client_args={"allow_redirects": False},
    )
    if settings.project:
        return genai.Client(
            vertexai=True,
            project=settings.project,
            location=settings.location,
            credentials=account,
            http_options=options,
        )
    key = settings.api_key.get_secret_value() if settings.api_key is not None else None
    return genai.Client(vertexai=False, api_key=key, http_options=options)


def _credentials(settings: ModelSettings) -> Any:
    """Credentials of the operator's file; None: the client finds the machine's own."""
    if settings.credentials is None:
        return None
    try:
        return google_credentials.find(
            settings.credentials, [SCOPE], setting="model.credentials", service="the model"
        )
    except ConfigError as error:
        raise AppError(
            "model.credentials", error.message, where=error.where, hint=error.hint
        ) from None


# ---- what is asked


def _content(content: Content, names: Names, signs: bool) -> types.Content:
    parts: list[types.Part] = []
    unsigned = signs
    for part in content.parts:
        made = _part(part, names)
        if made is None:
            continue
        if made.function_call is not None:
            if unsigned and made.thought_signature is None:
                made.thought_signature = NO_SIGNATURE
            unsigned = False
        parts.append(made)
    return types.Content(role=content.role, parts=parts)


def _part(part: Part, names: Names) -> types.Part | None:
    signature = part.kept if isinstance(part.kept, bytes) else None
    if part.function_call is not None:
        call = part.function_call
        return types.Part(
            function_call=types.FunctionCall(
                id=call.id, name=names.plain(call.name), args=call.args or {}
            ),
            thought_signature=signature,
        )
    if part.function_response is not None:
        answer = part.function_response
        return types.Part(
            function_response=types.FunctionResponse(
                id=answer.id, name=names.plain(answer.name), response=answer.response
            )
        )
    if part.inline_data is not None:
        return types.Part(
            inline_data=types.Blob(
                data=part.inline_data.raw_data, mime_type=part.inline_data.mime_type
            )
        )
    return types.Part(text=part.text, thought_signature=signature) if part.text else None


def _tools(request: LlmRequest, names: Names) -> list[types.FunctionDeclaration]:
    declared = request.config.tools if request.config is not None else None
    return [
        types.FunctionDeclaration(
            name=names.plain(one.name),
            description=one.description or "",
            # An object without properties is an error; no parameters are none.
            parameters=types.Schema.model_validate(gemini_schema(one.parameters))
            if one.parameters and one.parameters.get("properties")
            else None,
        )
        for tool in declared or ()
        for one in tool.function_declarations
    ]


def _safety(setting: Mapping[str, Any]) -> types.SafetySetting | None:
    category, threshold = str(setting.get("category")), str(setting.get("threshold"))
    known = category in types.HarmCategory.__members__
    if not known or threshold not in types.HarmBlockThreshold.__members__:
        return None
    return types.SafetySetting(
        category=types.HarmCategory[category], threshold=types.HarmBlockThreshold[threshold]
    )


# ---- what is answered


def _answer(part: types.Part, names: Names) -> Part | None:
    if part.thought:
        return None
    if part.function_call is not None:
        call = Part.from_function_call(
            names.own(part.function_call.name), dict(part.function_call.args or {})
        )
        call.kept = part.thought_signature
        return call
    if part.text or part.thought_signature:
        return Fragment(text=part.text or "", kept=part.thought_signature)
    return None


def _ended(reason: str, model: str, blocked: bool = False) -> ModelFailure:
    """An answer that did not end of its own accord."""
    if not reason:
        return ModelFailure("model.broken", "the answer broke off", model, PAUSE_S)
    if reason == "MAX_TOKENS":
        return ModelFailure("model.cut", "the answer was too long", model)
    if blocked or reason in _BLOCKED:
        return ModelFailure("model.blocked", f"the service held it back ({reason})", model)
    return ModelFailure("model.malformed", f"the answer went wrong ({reason})", model, PAUSE_S)


def _refused(error: errors.APIError, model: str) -> ModelFailure:
    headers = getattr(error.response, "headers", None) or {}
    details = _details(error.details)
    if any(detail.get("reason") == BAD_KEY for detail in details):
        return ModelFailure("model.auth", f"the service refuses us: {BAD_KEY}", model)
    retry_after = str(headers.get("Retry-After") or "")
    told = retry_after.isascii() and retry_after.isdigit()
    wait_s = float(retry_after) if told else _retry_delay(details)
    return http_failure(error.code or 500, model, (error.status,), wait_s)


def _details(body: Any) -> list[Mapping[str, Any]]:
    error = body.get("error", body) if isinstance(body, Mapping) else None
    found = error.get("details") if isinstance(error, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _retry_delay(details: list[Mapping[str, Any]]) -> float | None:
    """The wait that the body of an error asks for."""
    for detail in details:
        asked = detail.get("retryDelay")
        delay = _DELAY.fullmatch(asked) if isinstance(asked, str) else None
        if delay is not None:
            return float(delay[1])
    return None
