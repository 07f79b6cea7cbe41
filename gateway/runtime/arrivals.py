"""Speech and background in the audio of a runtime that speaks itself. No socket, no clock.

A runtime may send its background without end, also before and between what its agent says, and
faster than it sounds. Speech is always played whole; background only as far as nothing waits for
it.
"""

from __future__ import annotations

from gateway.audio.formats import Pcm
from gateway.audio.mixing import level_dbfs

LOUD_DBFS = -44.3
"""Speech is louder than this in any 20 ms (root mean square of 200)."""
WINDOW_MS = 20
MARGIN_S = 0.1
"""Kept before the first loud sound: soft beginnings of words."""
ROOM_S = 0.2
"""Background may keep what follows waiting for so long."""
LONG_S = 2.0
"""A quiet message longer than this is no background but a late beginning."""


def is_loud(pcm: Pcm) -> bool:
    """Whether a sound may be speech, as a whole."""
    return level_dbfs(pcm) > LOUD_DBFS


class Arrivals:
    """Judges one call's audio from the runtime, message by message, at `rate_hz`."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._turn = 0
        self._speaking = False
        self._until = 0.0
        """When all that was taken has sounded."""

    def pause(self) -> None:
        """A turn is complete: what comes is background until it is loud."""
        self._speaking = False

    def cut(self, now: float) -> None:
        """All that was taken is dropped."""
        self._speaking = False
        self._until = now

    def take(self, pcm: Pcm, turn: int, now: float) -> tuple[int, int, bool]:
        """Which samples of a message are played, from and up to; whether they are background."""
        if turn > self._turn:
            self._turn, self._speaking = turn, False
        samples = len(pcm) // 2
        first, last, background = 0, samples, False
        if not self._speaking:
            waiting_s = max(0.0, self._until - now)
            onset = self._onset(pcm)
            if onset is None:
                background = True
                if waiting_s > ROOM_S or samples > LONG_S * self._rate_hz:
                    last = self._room(waiting_s)
            else:
                self._speaking = True
                lead = max(0, onset - round(MARGIN_S * self._rate_hz))
                first = max(0, lead - self._room(waiting_s))
        last = min(last, samples)
        self._until = max(self._until, now) + (last - first) / self._rate_hz
        return first, last, background

    def _room(self, waiting_s: float) -> int:
        return round(max(0.0, ROOM_S - waiting_s) * self._rate_hz)

    def _onset(self, pcm: Pcm) -> int | None:
        """Where the first loud sound begins, in samples."""
        step = self._rate_hz * WINDOW_MS // 1000 * 2
        for start in range(0, len(pcm), step):
            if is_loud(pcm[start : start + step]):
                return start // 2
        return None
