"""One ticker a process paces all calls: due times are `start + n × 20 ms`, never "now + 20 ms".

Calls are spread over buckets so that their frames do not leave in one burst. A member is given
the *nominal* time of its slot, so a late wake-up neither drifts nor skips a frame, and ticks in
the context that it was added in: what it logs is told of the right call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context

from gateway.audio.formats import FRAME_MS

FRAME_S = FRAME_MS / 1000
BUCKETS = 10

Tick = Callable[[float, float], None]
"""Called with the nominal time of the slot and how late it is, both in seconds."""


class Ticker:
    """Calls each member once every 20 ms on the running loop's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._origin = loop.time()
        self._buckets: list[dict[int, tuple[Tick, Context]]] = [{} for _ in range(BUCKETS)]
        self._slot = 0
        self._handle: asyncio.TimerHandle | None = None
        self._next_key = 0
        self._where: dict[int, int] = {}

    def add(self, tick: Tick) -> int:
        """Join; returns the key to leave with. The emptiest bucket takes the newcomer."""
        bucket = min(range(BUCKETS), key=lambda b: len(self._buckets[b]))
        self._next_key += 1
        key = self._next_key
        self._buckets[bucket][key] = tick, copy_context()
        self._where[key] = bucket
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._schedule()
        return key

    def adopt(self, key: int) -> None:
        """From now on the member ticks in the context of the caller; unknown keys are ignored."""
        bucket = self._where.get(key)
        if bucket is not None:
            tick, _ = self._buckets[bucket][key]
            self._buckets[bucket][key] = tick, copy_context()

    def remove(self, key: int) -> None:
        """Leave; unknown keys are ignored."""
        bucket = self._where.pop(key, None)
        if bucket is not None:
            self._buckets[bucket].pop(key, None)
        if not self._where and self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def __len__(self) -> int:
        return len(self._where)

    def _due(self, slot: int) -> float:
        return self._origin + slot * FRAME_S / BUCKETS

    def _schedule(self) -> None:
        if not self._where:
            return
        self._skip_missed(self._loop.time())
        for slot in range(self._slot, self._slot + BUCKETS):
            if self._buckets[slot % BUCKETS]:
                self._slot = slot
                break
        self._handle = self._loop.call_at(self._due(self._slot), self._run)

    def _skip_missed(self, now: float) -> None:
        """After an idle stretch or a stall each member gets one tick; the engine catches up."""
        now_slot = int((now - self._origin) * BUCKETS / FRAME_S)
        self._slot = max(self._slot, now_slot - BUCKETS + 1)

    def _run(self) -> None:
        self._handle = None
        now = self._loop.time()
        self._skip_missed(now)
        while self._where and self._due(self._slot) <= now + 1e-6:
            due = self._due(self._slot)
            members = self._buckets[self._slot % BUCKETS]
            self._slot += 1
            for tick, context in list(members.values()):
                context.run(tick, due, now - due)
        if self._handle is None:
            self._schedule()

    def close(self) -> None:
        """Stop for good."""
        self._where.clear()
        for bucket in self._buckets:
            bucket.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
