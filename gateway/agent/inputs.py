"""Messages of the client: checked and turned into what a session acts on."""

from __future__ import annotations

import base64
import binascii
import datetime
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import bidi
from gateway.agent.app.models import App
from gateway.agent.conversation import Identity
from gateway.agent.historical import Past, read_history
from gateway.agent.platform import Blob, Part
from gateway.errors import ProtocolError

_KINDS = ("text", "dtmf", "audio", "toolResponses", "image", "blob", "variables", "event")
_DIGITS = frozenset("0123456789*#ABCDabcd")
MAX_TEXT_CHARS = 100_000
MAX_DIGITS = 256
MAX_BLOB_BYTES = 8 << 20


def invalid(message: str, where: str) -> ProtocolError:
    """The error for a message of a wrong shape."""
    return ProtocolError("protocol.message", message, where=where)


@dataclass(frozen=True, slots=True)
class Config:
    """The first message of a connection."""

    session: str
    identity: Identity
    entry_agent: str = ""
    history: tuple[Past, ...] = ()
    """`historicalContexts`."""
    time_zone: datetime.tzinfo | None = None
    use_fakes: bool = False
    """`useToolFakes`."""


@dataclass(frozen=True, slots=True)
class UserInput:
    """Parts of the user's turn; `complete`: the turn may be answered now."""

    parts: list[Part]
    complete: bool = True
    hangup: bool = False
    """The caller has hung up: the session ends with the answer."""


@dataclass(frozen=True, slots=True)
class SetVariables:
    """Variables from the client."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswers:
    """Results of client functions."""

    items: list[Any] = field(default_factory=list)


Input = UserInput | SetVariables | ToolAnswers


def read_config(message: Mapping[str, Any]) -> Config:
    """The config that a connection begins with. Raises ProtocolError."""
    config = bidi.get(message, "config")
    if config is None:
        raise invalid("the first message must be config", "config")
    if not isinstance(config, Mapping):
        raise invalid("config is not an object", "config")
    session = config.get("session")
    if not isinstance(session, str):
        raise invalid("config.session is missing", "config.session")
    bidi.session_id(session)
    parts = session.split("/")
    entry_agent = bidi.get(config, "entryAgent", "") or ""
    if not isinstance(entry_agent, str):
        raise invalid("config.entryAgent is not text", "config.entryAgent")
    use_fakes = bidi.get(config, "useToolFakes", False)
    if not isinstance(use_fakes, bool):
        raise invalid("config.useToolFakes is not true or false", "config.useToolFakes")
    return Config(
        session=session,
        identity=Identity(parts[1], parts[3], parts[5], parts[7]),
        entry_agent=entry_agent.rsplit("/", 1)[-1],
        history=read_history(bidi.get(config, "historicalContexts") or []),
        time_zone=_time_zone(bidi.get(config, "timeZone")),
        use_fakes=use_fakes,
    )


def zone_of(app: App) -> datetime.tzinfo:
    """The app's time zone; UTC where it names none, or one that does not exist."""
    name = app.definition.time_zone_settings.time_zone
    try:
        return zoneinfo.ZoneInfo(name) if name else datetime.UTC
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.UTC


def _time_zone(name: Any) -> datetime.tzinfo | None:
    if name is None or name == "":
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise invalid("config.timeZone is no time zone", "config.timeZone") from None


def read_input(message: Mapping[str, Any]) -> Input:
    """One `realtimeInput`. Raises ProtocolError."""
    if "config" in message:
        raise invalid("config may be sent only once", "config")
    body = bidi.get(message, "realtimeInput")
    if not isinstance(body, Mapping):
        raise invalid("the message holds no realtimeInput", "realtimeInput")
    kinds = [kind for kind in _KINDS if bidi.get(body, kind) is not None]
    if len(kinds) != 1:
        raise invalid(
            f"realtimeInput holds {len(kinds)} kinds of input instead of one", "realtimeInput"
        )
    kind = kinds[0]
    value = bidi.get(body, kind)
    where = f"realtimeInput.{kind}"
    will_continue = bidi.get(body, "willContinue", False)
    if not isinstance(will_continue, bool):
        raise invalid("willContinue is not true or false", "realtimeInput.willContinue")
    if kind == "audio":
        raise invalid("this runtime takes text, not audio", where)
    if kind in ("text", "dtmf") and not isinstance(value, str):
        raise invalid(f"{where} is not text", where)
    if kind == "text":
        if len(value) > MAX_TEXT_CHARS:
            raise invalid(f"text is longer than {MAX_TEXT_CHARS} characters", where)
        return UserInput([Part(text=value)] if value else [], complete=not will_continue)
    if kind == "dtmf":
        if not value or len(value) > MAX_DIGITS or not set(value) <= _DIGITS:
            raise invalid("dtmf holds other characters than 0-9 * # A-D", where)
        return UserInput([Part(text=bidi.dtmf_text(value))])
    if not isinstance(value, Mapping):
        raise invalid(f"{where} is not an object", where)
    if kind == "event":
        name = value.get("event")
        if not isinstance(name, str) or not name:
            raise invalid("event.event is missing", f"{where}.event")
        return UserInput(
            [Part(text=bidi.event_text(name))], hangup=name == bidi.REMOTE_DISCONNECTED
        )
    if kind == "variables":
        return SetVariables(value)
    if kind == "toolResponses":
        items = bidi.get(value, "toolResponses", [])
        if not isinstance(items, list):
            raise invalid("toolResponses.toolResponses is not a list", where)
        return ToolAnswers(items)
    return UserInput([_blob_part(value, where)], complete=not will_continue)


def _blob_part(value: Mapping[str, Any], where: str) -> Part:
    data, mime_type = value.get("data"), bidi.get(value, "mimeType", "")
    if not isinstance(data, str) or not isinstance(mime_type, str):
        raise invalid("mimeType or data is missing", where)
    try:
        standard = data.rstrip("=").replace("-", "+").replace("_", "/")
        raw = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("data is not base64", f"{where}.data") from None
    if len(raw) > MAX_BLOB_BYTES:
        raise invalid(f"data is larger than {MAX_BLOB_BYTES} bytes", f"{where}.data")
    return Part(inline_data=Blob(data=base64.b64encode(raw), mime_type=mime_type))
