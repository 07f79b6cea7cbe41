"""`historicalContexts`: what was said before, when the client keeps the history itself."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import bidi
from gateway.agent.platform import Blob, Part
from gateway.agent.prompt import agent_name, tool_name
from gateway.errors import ProtocolError

MAX_MESSAGES = 1000
WHERE = "config.historicalContexts"


@dataclass(frozen=True, slots=True)
class Past:
    """One stretch of the past. `role`: `user` or an agent's display name.

    `tools`: the parts are answers of tools. `variables`: what was set. `transfer`: the agent
    that took over.
    """

    role: str
    parts: tuple[Part, ...] = ()
    tools: bool = False
    variables: Mapping[str, Any] = field(default_factory=dict)
    transfer: str = ""


def read_history(messages: Any) -> tuple[Past, ...]:
    """The messages of a config in order. Raises ProtocolError."""
    if not isinstance(messages, list):
        raise _invalid("config.historicalContexts is not a list")
    if len(messages) > MAX_MESSAGES:
        raise _invalid(f"config.historicalContexts has more than {MAX_MESSAGES} messages")
    past: list[Past] = []
    for message in messages:
        if not isinstance(message, Mapping):
            raise _invalid("a historical context is not an object")
        chunks = message.get("chunks") or []
        if not isinstance(chunks, list):
            raise _invalid("chunks is not a list")
        role = str(message.get("role") or "user").rsplit("/", 1)[-1]
        past += _joined(role, [chunk for chunk in chunks if isinstance(chunk, Mapping)])
    return tuple(past)


def _joined(role: str, chunks: list[Mapping[str, Any]]) -> Iterator[Past]:
    """Neighbouring words and calls as one stretch; everything else for itself."""
    said: list[Part] = []
    answers: list[Part] = []
    for chunk in chunks:
        part, answer, other = _read(role, chunk)
        if said and (answer is not None or other is not None):
            yield Past(role, tuple(said))
            said = []
        if answers and answer is None:
            yield Past(role, tuple(answers), tools=True)
            answers = []
        if part is not None:
            said.append(part)
        if answer is not None:
            answers.append(answer)
        if other is not None:
            yield other
    if said:
        yield Past(role, tuple(said))
    if answers:
        yield Past(role, tuple(answers), tools=True)


def _read(role: str, chunk: Mapping[str, Any]) -> tuple[Part | None, Part | None, Past | None]:
    """(words or a call, a tool's answer, anything else) of one chunk."""
    text = chunk.get("text") or chunk.get("transcript")
    if isinstance(text, str):
        return Part(text=text), None, None
    call = bidi.get(chunk, "toolCall")
    if isinstance(call, Mapping):
        part = Part.from_function_call(tool_name(call), _mapping(call.get("args")))
        if part.function_call is not None and call.get("id"):
            part.function_call.id = str(call["id"])
        return part, None, None
    response = bidi.get(chunk, "toolResponse")
    if isinstance(response, Mapping):
        value = _mapping(response.get("response"))
        body = value if "result" in value else {"result": value.get("output", value)}
        part = Part.from_function_response(tool_name(response), body)
        if part.function_response is not None and response.get("id"):
            part.function_response.id = str(response["id"])
        return None, part, None
    payload = chunk.get("payload")
    if isinstance(payload, Mapping):
        # As it was: the model never reads a payload, a callback may.
        return Part.from_json(bidi.dump(payload)), None, None
    for key in ("image", "blob"):
        blob = chunk.get(key)
        if isinstance(blob, Mapping):
            return _blob(blob), None, None
    transfer = bidi.get(chunk, "agentTransfer")
    if isinstance(transfer, Mapping):
        return None, None, Past(role, transfer=agent_name(transfer))
    for key in ("updatedVariables", "defaultVariables"):
        values = bidi.get(chunk, key)
        if isinstance(values, Mapping):
            return None, None, Past(role, variables=dict(values))
    return None, None, None


def _blob(value: Mapping[str, Any]) -> Part | None:
    data, mime_type = value.get("data"), bidi.get(value, "mimeType")
    if not isinstance(data, str) or not isinstance(mime_type, str):
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _invalid("data is not base64") from None
    return Part(inline_data=Blob(data=base64.b64encode(raw), mime_type=mime_type))


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _invalid(message: str) -> ProtocolError:
    return ProtocolError("protocol.message", message, where=WHERE)
