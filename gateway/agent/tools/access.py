"""May this tool be called, by this agent, for this caller? The operator's settings decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gateway.config import Level, ToolSettings

_RANK: Mapping[Level, int] = {"self": 0, "system": 1, "trusted": 2}


def named(name: str, patterns: Iterable[str]) -> str | None:
    """The first of the patterns that means the tool: its name, or a beginning with `*`."""
    for pattern in patterns:
        if pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return pattern
    return None


class Access:
    """What the settings allow. `channel`: the dialect by which the caller came."""

    def __init__(self, settings: ToolSettings) -> None:
        self._settings = settings

    def refusal(self, tool: str, channel: str) -> str | None:
        """Why the tool may not be called on this channel; None where it may."""
        settings = self._settings
        if settings.allowed and named(tool, settings.allowed) is None:
            return f"the tool {tool!r} is not allowed here"
        pattern = named(tool, settings.levels)
        level: Level = settings.levels[pattern] if pattern is not None else "trusted"
        caller: Level = settings.channels.get(channel, "trusted")
        if _RANK[caller] > _RANK[level]:
            return f"the tool {tool!r} is not available to this caller"
        return None

    def needs_consent(self, tool: str) -> bool:
        """Whether the caller must say yes first."""
        return named(tool, self._settings.consent) is not None
