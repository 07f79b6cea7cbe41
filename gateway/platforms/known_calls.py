"""Calls that a process has or has had lately: a second socket for one of them is a mistake.

A platform that retries after a hang-up would otherwise begin the same call anew, under the same
id, over the records of the first.
"""

from __future__ import annotations

from typing import Final

MAX_FINISHED: Final = 10_000
"""Finished calls that are remembered; the oldest is forgotten first."""


class KnownCalls:
    """Ids of calls by dialect. `remember_s`: how long a finished one is refused; times: seconds
    of one monotonic clock."""

    def __init__(self, remember_s: float = 10.0) -> None:
        self._remember_s = remember_s
        self._live: set[tuple[str, str]] = set()
        self._finished: dict[tuple[str, str], float] = {}
        """Until when, oldest first."""

    def enter(self, dialect: str, call_id: str, now: float) -> str:
        """Note a call that starts; why it may not, or an empty string."""
        self._forget(now)
        name = (dialect, call_id)
        if name in self._live:
            return "this call has a socket already"
        if name in self._finished:
            return "this call is over"
        self._live.add(name)
        return ""

    def leave(self, dialect: str, call_id: str, now: float) -> None:
        """The call is over."""
        self._live.discard((dialect, call_id))
        if self._remember_s > 0:
            self._finished[dialect, call_id] = now + self._remember_s
        self._forget(now)

    def _forget(self, now: float) -> None:
        finished = self._finished
        while finished:
            oldest = next(iter(finished))
            if finished[oldest] > now and len(finished) <= MAX_FINISHED:
                break
            del finished[oldest]
