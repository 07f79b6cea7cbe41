"""Platform sides of the dialects by channel name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from gateway.errors import ScenarioError
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Side
from gateway.simulate.platforms.base import Identity, Platform

_SIDES: Final[Mapping[str, Side]] = {
    name: import_module(f"{__name__}.{name}").SIDE
    for name in PlatformsSettings.model_fields
    if find_spec(f"{__name__}.{name}")
}
"""A module by the dialect's name is its platform's side; a dialect without one has no caller."""
CHANNELS = tuple(_SIDES)


def side(channel: str) -> Side:
    """A dialect's platform side. Raises ScenarioError for a dialect that is not known."""
    if channel not in _SIDES:
        raise ScenarioError(
            "scenario.channel",
            f"no caller speaks the dialect {channel!r}",
            hint=f"one of: {', '.join(CHANNELS)}",
        )
    return _SIDES[channel]


def platform(channel: str, identity: Identity) -> Platform:
    """A caller's platform of the dialect. Raises ScenarioError for a dialect that is not known."""
    return side(channel).make(identity)


def call_id(channel: str, name: str) -> str:
    """A call id in the dialect's shape that depends on `name` only."""
    return side(channel).call_id(name)
