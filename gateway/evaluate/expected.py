"""Golden turns as they should have gone, as history for the turns after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway import bidi
from gateway.agent.app.evaluations import Expectation, GoldenTurn, Injected, Kind, UserInput
from gateway.evaluate.observed import USER

AGENT = "agent"
"""The role of an agent that the golden does not name."""
_CHUNKS = {
    Kind.TOOL_CALL: "toolCall",
    Kind.TOOL_RESPONSE: "toolResponse",
    Kind.MOCK_TOOL_RESPONSE: "toolResponse",
    Kind.AGENT_TRANSFER: "agentTransfer",
    Kind.UPDATED_VARIABLES: "updatedVariables",
}


def expected_messages(turn: GoldenTurn) -> Iterator[Mapping[str, Any]]:
    """Messages of the wire, in the golden's order."""
    for step in turn.steps:
        if isinstance(step, UserInput):
            chunk = _given(step)
            if chunk is not None:
                yield _message(USER, chunk)
        elif isinstance(step, Injected):
            yield _message(USER, {"agentTransfer": {"targetAgent": step.agent}})
        else:
            yield from _expected(step)


def _given(given: UserInput) -> dict[str, Any] | None:
    """What the user does as the chunk that the agent has read."""
    if given.kind == "text":
        return {"text": given.value}
    if given.kind == "dtmf":
        return {"text": bidi.dtmf_text(given.value)}
    if given.event:
        return {"text": bidi.event_text(given.event)}
    if given.kind == "variables":
        return {"updatedVariables": given.value}
    return {given.kind: given.value} if given.kind in ("image", "blob") else None


def _expected(one: Expectation) -> Iterator[Mapping[str, Any]]:
    if one.kind is Kind.AGENT_RESPONSE:
        role = str(one.value.get("role") or AGENT)
        for chunk in one.value.get("chunks") or ():
            # Everything else in a response is an expectation of its own.
            if any(key in chunk for key in ("text", "transcript", "payload")):
                yield _message(role, chunk)
    elif one.kind in _CHUNKS:
        yield _message(AGENT, {_CHUNKS[one.kind]: one.value})


def _message(role: str, chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"role": role, "chunks": [chunk]}
