"""How fast the platform's clock runs, as its audio tells: one second of samples is its second.

Two clocks that differ by 200 parts in a million are 720 ms apart after an hour. A stream that is
sent for so long at our pace would pile up at the platform, or leave it without audio.
"""

from __future__ import annotations

WINDOW_S = 10.0
"""Over so long the most punctual frame is taken; the others were held up on the way."""
MAX_DRIFT = 0.001
"""A clock that seems to be off by more has stopped sending for a while, or lost frames."""
UNKNOWN = float("inf")


class Pace:
    """Compares when audio came with how much there was of it. Times: seconds of our clock."""

    __slots__ = ("_before_s", "_heard_s", "_least_s", "_rate_hz", "_until_s")

    def __init__(self, rate_hz: int, now: float) -> None:
        self._rate_hz = rate_hz
        self._heard_s = 0.0
        self._least_s = self._before_s = UNKNOWN
        self._until_s = now + WINDOW_S

    def heard(self, samples: int, now: float) -> float:
        """Take in samples that came; seconds by which the platform fell back since the last time.

        Almost always 0; a negative number where it runs ahead.
        """
        self._heard_s += samples / self._rate_hz
        behind_s = now - self._heard_s
        if now < self._until_s:
            if behind_s < self._least_s:
                self._least_s = behind_s
            return 0.0
        moved_s = self._least_s - self._before_s
        self._before_s, self._least_s = self._least_s, behind_s
        self._until_s = now + WINDOW_S
        return moved_s if abs(moved_s) <= MAX_DRIFT * WINDOW_S else 0.0
