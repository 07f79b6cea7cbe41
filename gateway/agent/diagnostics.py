"""What a turn did, as `diagnosticInfo.messages`: words, calls, results, transfers, variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from gateway.agent.app.models import TRANSFER_TO_AGENT
from gateway.agent.conversation import Conversation
from gateway.agent.platform import CUSTOMIZED_MIME, Event, FunctionCall, FunctionResponse, Part
from gateway.agent.turn import clean_json, clean_text
from gateway.bidi import CUSTOMIZED_RESPONSE


def turn_report(conversation: Conversation) -> Callable[[], dict[str, Any]]:
    """What to ask when the turn that begins now is over: its `diagnosticInfo`."""
    before = _values(conversation.state)
    turn = conversation.invocation_id

    def report() -> dict[str, Any]:
        messages = [
            message
            for event in conversation.history.events()
            if event.invocation_id == turn and (message := _message(conversation, event))
        ]
        changed = {
            name: orjson.loads(value)
            for name, value in _values(conversation.state).items()
            if before.get(name) != value
        }
        if changed:
            chunk = {"updatedVariables": changed}
            messages.append({"role": conversation.agent.display_name, "chunks": [chunk]})
        return {"messages": messages}

    return report


def _values(state: Mapping[str, Any]) -> dict[str, bytes]:
    """Variables as JSON: app code may change a list or a mapping in place."""
    return {name: orjson.dumps(clean_json(value)) for name, value in state.items()}


def _message(conversation: Conversation, event: Event) -> dict[str, Any] | None:
    parts = event.content.parts if event.content is not None else []
    chunks = [chunk for part in parts for chunk in _chunks(conversation, part)]
    return {"role": event.author, "chunks": chunks} if chunks else None


def _chunks(conversation: Conversation, part: Part) -> Iterator[dict[str, Any]]:
    if part.text:
        yield {"text": clean_text(part.text)}
    elif part.function_call is not None:
        yield _call(conversation, part.function_call)
    elif part.function_response is not None:
        yield from _response(conversation, part.function_response)
    elif part.inline_data is not None and (value := part.inline_data.json_value()) is not None:
        customized = part.inline_data.mime_type == CUSTOMIZED_MIME
        yield {"payload": {CUSTOMIZED_RESPONSE: value} if customized else value}


def _call(conversation: Conversation, call: FunctionCall) -> dict[str, Any]:
    named = _tool(conversation, call.id, call.name)
    return {"toolCall": {**named, "args": clean_json(dict(call.args or {}))}}


def _response(conversation: Conversation, response: FunctionResponse) -> Iterator[dict[str, Any]]:
    value = clean_json(response.response or {})
    named = _tool(conversation, response.id, response.name)
    yield {"toolResponse": {**named, "response": value}}
    result = value.get("result") if isinstance(value, dict) else None
    if response.name == TRANSFER_TO_AGENT and isinstance(result, dict) and "agent" in result:
        target = str(result["agent"])
        resource = f"{conversation.identity.app_name}/agents/{target}"
        yield {"agentTransfer": {"targetAgent": resource, "displayName": target}}


def _tool(conversation: Conversation, call_id: str | None, name: str | None) -> dict[str, Any]:
    resource = f"{conversation.identity.app_name}/tools/{name or ''}"
    return {"id": call_id or "", "tool": resource, "displayName": name or ""}
