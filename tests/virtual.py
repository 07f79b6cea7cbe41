"""A tiny hand-cranked loop clock for objects that only need `time` and `call_at`."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Handle:
    """What `call_at` gives back."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandLoop:
    """Time moves only by `run_until`; callbacks may be served late by `stall`."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self._queue: list[tuple[float, int, Handle, Callable[..., Any], tuple[Any, ...]]] = []
        self._count = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any) -> Handle:
        handle = Handle()
        self._count += 1
        heapq.heappush(self._queue, (when, self._count, handle, callback, args))
        return handle

    def run_until(self, end: float) -> None:
        while self._queue and self._queue[0][0] <= end:
            when, _, handle, callback, args = heapq.heappop(self._queue)
            if not handle.cancelled:
                self.now = max(self.now, when)
                callback(*args)
        self.now = max(self.now, end)

    def stall(self, seconds: float) -> None:
        """The process was away: time passes, nothing runs."""
        self.now += seconds

    @property
    def pending(self) -> int:
        return sum(1 for item in self._queue if not item[2].cancelled)
