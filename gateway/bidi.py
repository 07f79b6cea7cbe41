"""BidiRunSession JSON: the one language between channels, gateway and agent runtimes.

Reading is tolerant (camelCase or snake_case, unknown keys ignored); writing is lowerCamelCase.
Source of the field names: the published `google-cloud-ces` protos.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.errors import ProtocolError

SESSION_START = "session start"
REMOTE_DISCONNECTED = "sys.remote-call-disconnected"
CUSTOMIZED_RESPONSE = "customizedResponse"
CHANNEL_HEADER = "X-Voice-Gateway-Channel"
"""Header by which the gateway tells the embedded runtime the caller's dialect."""
ESCALATION_MESSAGE = "ESCALATION_MESSAGE"
"""Parameter of an end of session: what the caller hears before the hand-over."""
PHONE_TRANSFER = "PHONE_GATEWAY_TRANSFER"
"""Parameter of an end of session: the number that the caller is handed on to."""
AGENT_HANDOFF = "LIVE_AGENT_HANDOFF"
"""Parameter of an end of session: somebody else goes on with the caller."""
SESSION_LANGUAGE = "sessionLanguage"
"""Key of our payload by which a runtime says that the conversation goes on in another language."""

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_BOUNDARY = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SESSION = re.compile(
    r"^projects/[^/]+/locations/[^/]+/apps/[^/]+/sessions/(?P<id>[a-zA-Z0-9][a-zA-Z0-9_-]{4,62})$"
)


def snake(name: str) -> str:
    """`turnIndex` to `turn_index`."""
    return _BOUNDARY.sub(lambda m: "_" + m.group(1).lower(), name)


def get(message: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The field `name` (given in camelCase) of a message, in either spelling."""
    if name in message:
        return message[name]
    return message.get(snake(name), default)


def parse(data: str | bytes) -> dict[str, Any]:
    """One JSON object from a websocket message. Raises ProtocolError (1007) otherwise."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ProtocolError("protocol.json", f"message is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ProtocolError("protocol.shape", "message is not a JSON object")
    return value


def dump(message: Mapping[str, Any]) -> str:
    """A message as JSON text."""
    return orjson.dumps(message).decode()


def session_id(session: str) -> str:
    """The last part of a session resource name. Raises ProtocolError where it has another shape."""
    match = _SESSION.match(session)
    if match is None:
        raise ProtocolError(
            "protocol.session",
            "session is not projects/P/locations/L/apps/A/sessions/S with S of 5 to 63 characters",
            where="config.session",
        )
    return match["id"]


def session_part(call_id: str) -> str:
    """A call's id as the last part of a session resource name: other characters are dashes."""
    return f"{_ODD.sub('-', call_id)[:63].lstrip('-_'):0<5}"


def language_code(value: object) -> str:
    """A language code such as `de-DE`; empty where the value is none."""
    text = value.strip() if isinstance(value, str) else ""
    return text if _LANGUAGE.fullmatch(text) else ""


def context_text(words: str) -> str:
    """A platform text in the user's turn."""
    return f"<context>{words}</context>"


def event_text(name: str) -> str:
    """What callbacks see of an event: `session_start` and `session start` are the same."""
    return f"<event>{SESSION_START if name == 'session_start' else name}</event>"


def inactivity_text(seconds: int) -> str:
    """The silence tick."""
    return context_text(f"no user activity detected for {seconds} seconds.")


def dtmf_text(digits: str) -> str:
    """Collected digits as the agent reads them."""
    return context_text(f"user pressed {digits} on keypad.")


def interrupted_text(heard: str) -> str:
    """What the caller heard of an interrupted response (barge-in awareness)."""
    return context_text(
        f"agent speaking was interrupted. user only heard '{heard}' in the last agent response."
    )


NOISE_TEXT = context_text("agent speaking was interrupted by background noise.")
