"""Platform sides of the dialects by channel name."""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import ScenarioError
from gateway.simulate.platforms.base import Identity, Platform
from gateway.simulate.platforms.ces import CesPlatform, session_number
from gateway.simulate.platforms.twilio import TwilioPlatform, call_sid

_PLATFORMS: dict[str, tuple[Callable[[Identity], Platform], Callable[[str], str]]] = {
    "ces": (CesPlatform, session_number),
    "twilio": (TwilioPlatform, call_sid),
}
CHANNELS = tuple(_PLATFORMS)

__all__ = [
    "CHANNELS",
    "CesPlatform",
    "Identity",
    "Platform",
    "TwilioPlatform",
    "call_id",
    "platform",
]


def _entry(channel: str) -> tuple[Callable[[Identity], Platform], Callable[[str], str]]:
    if channel not in _PLATFORMS:
        raise ScenarioError(
            "scenario.channel",
            f"no caller speaks the dialect {channel!r}",
            hint=f"one of: {', '.join(CHANNELS)}",
        )
    return _PLATFORMS[channel]


def platform(channel: str, identity: Identity) -> Platform:
    """A caller's platform of the dialect. Raises ScenarioError for a dialect that is not known."""
    return _entry(channel)[0](identity)


def call_id(channel: str, name: str) -> str:
    """A call id in the dialect's shape that depends on `name` only."""
    return _entry(channel)[1](name)
