"""The dialects by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gateway.channels.base import Capabilities, Channel
from gateway.channels.ces import CAPABILITIES as CES
from gateway.channels.ces import CesChannel
from gateway.channels.twilio import CAPABILITIES as TWILIO
from gateway.channels.twilio import TwilioChannel
from gateway.errors import ConfigError

CAPABILITIES: Final[Mapping[str, Capabilities]] = {"ces": CES, "twilio": TWILIO}

# What is made for a call; the argument is the id of the call it must be, or "" for any.
_MAKERS: Final[Mapping[str, Callable[[str], Channel]]] = {
    "ces": lambda _expected: CesChannel(),
    "twilio": TwilioChannel,
}


def open_channel(dialect: str, expected_call_id: str = "") -> Channel:
    """A fresh codec of `dialect`. Raises ConfigError for an unknown name."""
    maker = _MAKERS.get(dialect)
    if maker is None:
        raise ConfigError(
            "config.dialect",
            f"there is no dialect {dialect!r}",
            hint=f"one of {', '.join(sorted(_MAKERS))}",
        )
    return maker(expected_call_id)
