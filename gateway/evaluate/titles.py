"""Turns, expectations and calls in one line, as reports show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.agent.app.evaluations import Expectation, GoldenTurn, Kind
from gateway.agent.prompt import agent_name, tool_name
from gateway.evaluate.observed import Observed, said_by, unwrapped
from gateway.evaluate.result import Line, Verdict
from gateway.evaluate.values import shown

BETWEEN = " "
"""What joins the pieces of an utterance."""


def user(turn: GoldenTurn) -> str:
    """What the user does in the turn, in short."""
    return ", ".join(str(one) for one in turn.inputs) or "(the agent goes on)"


def text_of(message: Mapping[str, Any]) -> str:
    """The words of a Message's chunks, those of its payloads among them."""
    found = []
    for chunk in message.get("chunks") or ():
        text = chunk.get("text") or chunk.get("transcript")
        payload = chunk.get("payload")
        if isinstance(text, str):
            found.append(text)
        elif isinstance(payload, Mapping):
            found.append(said_by(payload))
    return BETWEEN.join(text for text in found if text)


def title(one: Expectation) -> str:
    """An expectation in one line."""
    text = _title(one.kind, one.value)
    return f"{text}  ({one.note})" if one.note else text


def _title(kind: Kind, value: Any) -> str:
    match kind:
        case Kind.AGENT_RESPONSE:
            text = text_of(value)
            return f"says {shown(text)}" if text else "sends a payload"
        case Kind.TOOL_CALL:
            return f"calls {call_text(tool_name(value), value.get('args') or {})}"
        case Kind.TOOL_RESPONSE:
            return f"{tool_name(value)} answers {shown(unwrapped(value.get('response')))}"
        case Kind.AGENT_TRANSFER:
            return f"hands over to {agent_name(value)}"
        case Kind.UPDATED_VARIABLES:
            return f"sets {', '.join(value)}"
        case Kind.NO_TOOL_CALLS:
            return "calls no tool" if value else "may call tools"
        case Kind.MOCK_TOOL_RESPONSE:
            return f"{tool_name(value)} is mocked"


def line_of(one: Expectation, problems: Iterable[str]) -> Line:
    """The verdict on an expectation: it fails where there are problems."""
    difference = tuple(problems)
    verdict = Verdict.FAILED if difference else Verdict.PASSED
    return Line(verdict, title(one), difference, one.line)


def calls_made(observed: Observed) -> tuple[str, ...]:
    """All calls, each in one line."""
    return tuple(call_text(call.name, call.args) for call in observed.calls)


def call_text(name: str, args: Mapping[str, Any]) -> str:
    """A call in one line."""
    return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in args.items())})"
