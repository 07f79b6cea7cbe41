"""Asterisk's two control languages on a media websocket: plain text and JSON.

Plain: one line, a name and what follows it, `MEDIA_START channel:… format:ulaw` or
`MEDIA_MARK_PROCESSED 7.3`. JSON: `{"event": NAME, …}` in, `{"command": NAME, …}` out. Exact text
matters: no newline, and a command above 128 bytes is ignored over there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from gateway.errors import ProtocolError

MAX_COMMAND_BYTES: Final = 128

_WITH_ID: Final = frozenset({"MEDIA_MARK_PROCESSED", "MEDIA_BUFFERING_COMPLETED"})


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """One event of Asterisk. Values are text in plain control, anything in JSON."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    is_json: bool = False

    def text(self, name: str) -> str:
        """A field as text; empty where it is missing or no text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def parse(message: str) -> ControlEvent:
    """Read an event of either language. Raises ProtocolError where it is neither."""
    if message.lstrip()[:1] == "{":
        return _json(message)
    name, _, rest = message.strip().partition(" ")
    if name in _WITH_ID:
        return ControlEvent(name, {"correlation_id": rest.strip()})
    if name == "ERROR":
        return ControlEvent(name, {"error_text": rest.removeprefix("error_text:").strip()})
    fields = {}
    for item in rest.split():
        key, colon, value = item.partition(":")
        if colon:
            fields[key] = value
    return ControlEvent(name, fields)


def _json(message: str) -> ControlEvent:
    try:
        body = orjson.loads(message)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise ProtocolError("protocol.json", f"message is not JSON: {error}") from None
    name = body.get("event") if isinstance(body, dict) else None
    if not isinstance(name, str):
        raise ProtocolError("protocol.shape", "a message without an event", where="event")
    return ControlEvent(name, body, is_json=True)


def command(name: str, correlation_id: str = "", *, as_json: bool) -> str:
    """A command in the language that Asterisk speaks. Raises ValueError where it is too long."""
    if as_json:
        body = {"command": name}
        if correlation_id:
            body["correlation_id"] = correlation_id
        text = orjson.dumps(body).decode()
    else:
        text = f"{name} {correlation_id}" if correlation_id else name
    if len(text.encode()) > MAX_COMMAND_BYTES:
        raise ValueError(f"Asterisk ignores commands above {MAX_COMMAND_BYTES} bytes: {name}")
    return text


def direction(*, both: bool) -> str:
    """The command by which Asterisk sends and plays audio (`both`), or only plays it. JSON."""
    told = {"command": "SET_MEDIA_DIRECTION", "direction": "both" if both else "out"}
    return orjson.dumps(told).decode()
