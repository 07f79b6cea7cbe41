"""The timelines of the last calls, in bounded memory, to be read and followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import orjson

MAX_CALLS: Final = 100
MAX_LINES: Final = 5000
MAX_FOLLOWERS: Final = 64


class _Timeline:
    __slots__ = ("changed", "complete", "lines")

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.complete = False
        self.changed = asyncio.Event()

    def wake(self) -> None:
        """Wake all followers; each waits for the next event object afterwards."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class Timelines:
    """Keeps the newest calls; the oldest call is dropped for a new one.

    A call beyond its number of lines keeps its beginning and a last line of kind `truncated`.
    """

    def __init__(self, max_calls: int = MAX_CALLS, max_lines: int = MAX_LINES) -> None:
        self._max_calls = max_calls
        self._max_lines = max_lines
        self._calls: dict[str, _Timeline] = {}
        self._arrival = asyncio.Event()
        self._followers = 0

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """Add one line."""
        timeline = self._calls.get(call_id)
        if timeline is None or (kind == "call_started" and timeline.lines):
            timeline = self._begin(call_id)
        if len(timeline.lines) < self._max_lines:
            if len(timeline.lines) == self._max_lines - 1:
                kind, fields = "truncated", {}
            line = {"t": round(t, 6), "kind": kind, **fields}
            timeline.lines.append(orjson.dumps(line, default=_plain) + b"\n")
        timeline.wake()

    def ended(self, call_id: str) -> None:
        """The call adds no more lines."""
        timeline = self._calls.get(call_id)
        if timeline is not None:
            timeline.complete = True
            timeline.wake()

    def lines(self, call_id: str) -> list[bytes] | None:
        """The lines so far; None for a call that is not known."""
        timeline = self._calls.get(call_id)
        return None if timeline is None else list(timeline.lines)

    @property
    def followable(self) -> bool:
        """Whether one more follower may come."""
        return self._followers < MAX_FOLLOWERS

    async def wait_known(self, call_id: str, wait_s: float) -> bool:
        """Wait until the call exists; False where it does not in time."""
        try:
            async with asyncio.timeout(wait_s):
                while call_id not in self._calls:
                    await self._arrival.wait()
        except TimeoutError:
            return False
        return True

    async def follow(self, call_id: str) -> AsyncIterator[bytes]:
        """All lines of a known call, those to come as they come, until the call has ended."""
        timeline = self._calls[call_id]
        self._followers += 1
        try:
            seen = 0
            while True:
                changed = timeline.changed
                if seen < len(timeline.lines):
                    chunk = b"".join(timeline.lines[seen:])
                    seen = len(timeline.lines)
                    yield chunk
                elif timeline.complete:
                    return
                else:
                    await changed.wait()
        finally:
            self._followers -= 1

    def _begin(self, call_id: str) -> _Timeline:
        replaced = self._calls.pop(call_id, None)
        if replaced is not None:
            replaced.complete = True
            replaced.wake()
        while len(self._calls) >= self._max_calls:
            oldest = self._calls.pop(next(iter(self._calls)))
            oldest.complete = True
            oldest.wake()
        timeline = self._calls[call_id] = _Timeline()
        arrival, self._arrival = self._arrival, asyncio.Event()
        arrival.set()
        return timeline


def _plain(value: Any) -> Any:
    """What JSON has no word for: other mappings and collections; bytes are never shown."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return str(value)
