"""When the link of a session has to be replaced, or is given up. `now` comes in; no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from gateway.call.events import (
    RuntimeAudio,
    RuntimeInterruption,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTranscript,
    RuntimeTurnCompleted,
)
from gateway.runtime.messages import Incoming

SILENT = "runtime.silent"
"""Code of a link that has fallen silent."""
QUIET_S = 1.0
"""Nobody says anything for so long: a moment to change the link."""
PATIENCE_S = 90.0
"""Longest wait for such a moment."""
LONG_LIFE_S = 30.0
"""A link that lived for so long was not replaced in haste."""

_TURN_OUTPUTS = (RuntimeText, RuntimePayload, RuntimeAudio, RuntimeToolCalls)
_DOINGS = (*_TURN_OUTPUTS[:2], RuntimeToolCalls, RuntimeTranscript, RuntimeInterruption)


@dataclass(frozen=True, slots=True)
class LinkRules:
    """How a session is kept over its links. The default: it has one, until a goAway."""

    renew_s: float = 0.0
    """Age at which a link is replaced, at a quiet moment; 0: never."""
    silence_s: float = 0.0
    """A link that owes an answer and brings nothing for so long counts as dead; 0: never."""
    resumed: frozenset[str] = frozenset()
    """Codes of losses after which the session goes on over another link."""
    attempts: int = 1
    """Tries to open the next link, where the first ones fail with such a code."""
    empty_fragments: bool = True
    """Whether the runtime knows an empty fragment of text as the caller's interruption."""


class Verdict(Enum):
    """What becomes of a link."""

    KEEP = auto()
    RENEW = auto()
    DEAD = auto()


class LinkWatch:
    """Watches one link after the other."""

    def __init__(self, rules: LinkRules) -> None:
        self._rules = rules
        self._opened = 0.0
        self._owing_since: float | None = None
        """When something was asked that no message has come after."""
        self._active = 0.0
        self.heard = False
        """Whether this link has brought anything."""
        self.open_turn: int | None = None
        """Turn of which outputs came and no end."""

    def opened(self, now: float) -> None:
        """A link was opened. What the last one owed is owed by this one."""
        self._opened = self._active = now
        self.heard = False
        if self._owing_since is not None:
            self._owing_since = now

    def asked(self, now: float) -> None:
        """The caller has said something: a message has to come."""
        if self._owing_since is None:
            self._owing_since = now

    def hasty(self, now: float) -> bool:
        """Whether the link is young."""
        return now - self._opened < LONG_LIFE_S

    def message(self, items: Sequence[Incoming], now: float) -> None:
        """A message came."""
        self._owing_since = None
        self.heard = True
        for item in items:
            if isinstance(item, _TURN_OUTPUTS):
                self.open_turn = item.turn
            elif isinstance(item, RuntimeTurnCompleted):
                self.open_turn = None
            if isinstance(item, _DOINGS):
                self._active = now

    def active(self, now: float) -> None:
        """Somebody speaks."""
        self._active = now

    def renewing(self, now: float) -> bool:
        """Whether a quiet moment is looked for."""
        return bool(self._rules.renew_s) and now >= self._opened + self._rules.renew_s

    def verdict(self, now: float) -> Verdict:
        """What becomes of the link now."""
        rules = self._rules
        owing = self._owing_since
        if rules.silence_s and owing is not None and now >= owing + rules.silence_s:
            return Verdict.DEAD
        if self.renewing(now):
            due = self._opened + rules.renew_s
            quiet = self.open_turn is None and now >= max(self._active, due) + QUIET_S
            if quiet or now >= due + PATIENCE_S:
                return Verdict.RENEW
        return Verdict.KEEP

    def wait_s(self, now: float) -> float | None:
        """How long a message may be waited for before the next verdict; None: for ever."""
        waits: list[float] = []
        if self._rules.silence_s:
            # What is asked while nothing is owed wakes nobody.
            owing, limit_s = self._owing_since, self._rules.silence_s
            waits.append(limit_s / 4 if owing is None else owing + limit_s - now)
        if self._rules.renew_s:
            due = self._opened + self._rules.renew_s
            waits.append(due - now if now < due else QUIET_S / 4)
        return max(min(waits), 0.001) if waits else None
