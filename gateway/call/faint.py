"""Short sounds that voice activity does not take for speech, but that may be a word.

A "yes" of a quarter of a second over a bad line may stay below the threshold of the voice
detector. A burst that stands out of the noise, with some likeness to speech, is worth a question
to the recogniser. Only a short one is, and not many of them.
"""

from __future__ import annotations

from collections import deque

STANDS_OUT_DB = 12.0
"""Level over the noise floor at which a burst begins."""
FALLS_BACK_DB = 6.0
"""Level over the noise floor below which it is over."""
SOFTEST_DBFS = -48.0
LIKENESS = 0.12
"""Least probability of speech that a window of it must have reached."""
SHORTEST_S, LONGEST_S = 0.08, 1.0
AFTER_S = 0.25
"""Quiet that ends a burst."""
REST_S = 2.0
"""Least time from one question to the next."""
MEMORY_WINDOWS = 47
MAX_WORDS = 3
"""A longer answer to such a question is an invention of the recogniser."""


class Faint:
    """Follows the windows while no speech is going on."""

    __slots__ = ("_begin_s", "_floor", "_loud_s", "_next_s", "_peak")

    def __init__(self) -> None:
        self._floor: deque[float] = deque(maxlen=MEMORY_WINDOWS)
        self._begin_s: float | None = None
        self._loud_s = 0.0
        self._peak = 0.0
        self._next_s = 0.0

    def reset(self) -> None:
        """Speech was found: what was followed belongs to it."""
        self._begin_s = None

    def window(
        self, probability: float, level_dbfs: float, position_s: float, window_s: float
    ) -> tuple[float, float] | None:
        """Take the window that ends at `position_s`; start and end of a burst that is over."""
        self._floor.append(max(level_dbfs, -70.0))
        over_db = level_dbfs - min(self._floor)
        if self._begin_s is None:
            if over_db < STANDS_OUT_DB or level_dbfs < SOFTEST_DBFS or position_s < self._next_s:
                return None
            self._begin_s, self._peak = position_s - window_s, 0.0
        if over_db >= FALLS_BACK_DB:
            self._loud_s = position_s
            self._peak = max(self._peak, probability)
            return None
        if position_s - self._loud_s < AFTER_S:
            return None
        begin_s, end_s = self._begin_s, self._loud_s
        self._begin_s = None
        if not SHORTEST_S <= end_s - begin_s <= LONGEST_S or self._peak < LIKENESS:
            return None
        self._next_s = position_s + REST_S
        return begin_s, end_s
