"""What `voice-gateway talk` shows: lines for people, or one JSON object a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
import typer

from gateway import bidi
from gateway.agent.prompt import agent_name, tool_name
from gateway.evaluate.observed import messages_of, unwrapped

PROMPT: Final = "you: "
_CLEAR_LINE: Final = "\r\x1b[K"


class View:
    """Shows the messages of a session in the order in which they come."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.interactive = sys.stdin.isatty() and sys.stderr.isatty()
        """A person types: prompts, and mistakes can be mended."""
        self._prompting = False

    def prompt(self) -> None:
        """Ask for a line, where a person types."""
        if self.interactive:
            typer.echo(PROMPT, nl=False, err=True)
            self._prompting = True

    def show(self, message: Mapping[str, Any]) -> None:
        """Show one message of the runtime."""
        for event in events_of(message):
            if self._as_json:
                typer.echo(orjson.dumps(event).decode())
            elif (line := _line(event)) is not None:
                if self._prompting:
                    # It comes by itself, while the person thinks.
                    typer.echo(_CLEAR_LINE, nl=False, err=True)
                typer.echo(line)
        self._prompting = False


def events_of(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a message tells, each with a `type` and the number of its turn."""
    output = bidi.get(message, "sessionOutput") or {}
    turn = {"turn": bidi.get(output, "turnIndex")}
    text, payload = output.get("text"), output.get("payload")
    if text:
        yield {"type": "text", **turn, "text": text}
    if isinstance(payload, Mapping):
        shown = {key: value for key, value in payload.items() if key != bidi.SESSION_LANGUAGE}
        if shown:
            yield {"type": "payload", **turn, "payload": shown}
    for entry in messages_of(message):
        for chunk in entry.get("chunks") or ():
            yield from _told(chunk, turn)
    if bidi.get(output, "turnCompleted") is True:
        yield {"type": "turnCompleted", **turn}
    end = bidi.get(message, "endSession")
    if isinstance(end, Mapping):
        yield {"type": "endSession", "metadata": end.get("metadata") or {}}


def _told(chunk: Mapping[str, Any], turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What only the report of a turn tells."""
    call, answer = bidi.get(chunk, "toolCall"), bidi.get(chunk, "toolResponse")
    transfer, changed = bidi.get(chunk, "agentTransfer"), bidi.get(chunk, "updatedVariables")
    if call:
        yield {"type": "toolCall", **turn, "name": tool_name(call), "args": call.get("args")}
    if answer:
        value = unwrapped(answer.get("response"))
        yield {"type": "toolResponse", **turn, "name": tool_name(answer), "response": value}
    if transfer:
        yield {"type": "agentTransfer", **turn, "agent": agent_name(transfer)}
    if changed:
        yield {"type": "updatedVariables", **turn, "variables": dict(changed)}


def _line(event: Mapping[str, Any]) -> str | None:
    """An event for a person; None where it is nothing to read."""
    match event["type"]:
        case "text":
            return f"agent: {event['text']}"
        case "payload":
            return _payload(event["payload"])
        case "toolCall":
            return _dim(f"  {event['name']} {_json(event['args'])}")
        case "toolResponse":
            return _dim(f"  {event['name']} → {_json(event['response'])}")
        case "agentTransfer":
            return _dim(f"  now {event['agent']}")
        case "updatedVariables":
            pairs = (f"{name} = {_json(value)}" for name, value in event["variables"].items())
            return _dim(f"  {', '.join(pairs)}")
        case "endSession":
            return f"session ended: {_json(event['metadata'])}"
    return None


def _payload(payload: Mapping[str, Any]) -> str:
    customized = payload.get(bidi.CUSTOMIZED_RESPONSE)
    if isinstance(customized, Mapping) and customized.get("content"):
        rest = {key: value for key, value in customized.items() if key != "content" and value}
        return f"agent: {customized['content']}" + (_dim(f"  {_json(rest)}") if rest else "")
    return f"payload: {_json(payload)}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _dim(text: str) -> str:
    return typer.style(text, dim=True)
