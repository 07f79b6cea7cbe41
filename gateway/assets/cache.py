"""Decoded audio by uri and rate: bounded by bytes, least recently used out first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from gateway.audio.formats import Pcm
from gateway.errors import AssetError

FAILURE_S = 2.0
"""How long a failure is remembered, so that a hundred calls do not ask a dead server at once."""
MAX_FAILURES = 256

Key = tuple[str, int]
"""uri, rate in Hz."""


@dataclass(frozen=True, slots=True)
class _Entry:
    pcm: Pcm
    until_s: float | None


class AudioCache:
    """Times are seconds of the caller's clock. `max_age_s` holds for entries that can change."""

    def __init__(self, max_bytes: int, max_age_s: float) -> None:
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._failures: OrderedDict[Key, tuple[AssetError, float]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, now: float) -> Pcm | None:
        """The audio, if it is here and young enough. Raises the AssetError of a fresh failure."""
        entry = self._entries.get(key)
        if entry is not None:
            if entry.until_s is None or now < entry.until_s:
                self._entries.move_to_end(key)
                return entry.pcm
            self._drop(key)
        failure = self._failures.get(key)
        if failure is not None:
            error, until_s = failure
            if now < until_s:
                raise AssetError(error.code, error.message, where=error.where, hint=error.hint)
            del self._failures[key]
        return None

    def put(self, key: Key, pcm: Pcm, now: float, *, ages: bool) -> None:
        """Keep audio; what is larger than the whole cache is not kept."""
        self._failures.pop(key, None)
        self._drop(key)
        if len(pcm) > self._max_bytes:
            return
        self._entries[key] = _Entry(pcm, now + self._max_age_s if ages else None)
        self.bytes += len(pcm)
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def fail(self, key: Key, error: AssetError, now: float) -> None:
        """Remember a failure for a moment."""
        self._failures[key] = (error, now + FAILURE_S)
        self._failures.move_to_end(key)
        while len(self._failures) > MAX_FAILURES:
            self._failures.popitem(last=False)

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= len(entry.pcm)
