"""The dialects by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from gateway.channels.base import Channel
from gateway.channels.dialect import Dialect, Opening, Request
from gateway.errors import ConfigError
from gateway.platform_settings import PlatformsSettings

DIALECTS: Final[Mapping[str, Dialect[Any]]] = {
    name: import_module(f"gateway.channels.{name}").DIALECT
    for name in PlatformsSettings.model_fields
}
"""Every dialect has a section of settings, by its module's name: that line registers it."""


def dialect(name: str) -> Dialect[Any]:
    """A dialect's entry. Raises ConfigError for an unknown name."""
    found = DIALECTS.get(name)
    if found is None:
        raise ConfigError(
            "config.dialect",
            f"there is no dialect {name!r}",
            hint=f"one of {', '.join(sorted(DIALECTS))}",
        )
    return found


def open_channel(
    name: str,
    expected_call_id: str = "",
    *,
    platforms: PlatformsSettings | None = None,
    request: Request | None = None,
) -> Channel:
    """A fresh codec of a dialect. Raises ConfigError for an unknown name."""
    entry = dialect(name)
    settings = entry.settings(platforms or PlatformsSettings())
    return entry.open(Opening(settings, request or Request(""), expected_call_id))
