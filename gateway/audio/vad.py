"""Voice activity without a model: energy over an adaptive noise floor.

Good enough to run a call on where no model is installed. It takes steady noise for noise within
its memory, and hiss at once; a radio or a second talker it takes for speech.
"""

from __future__ import annotations

import math
from collections import deque

from gateway.audio.formats import Pcm
from gateway.audio.mixing import level_dbfs
from gateway.audio.native import audioop

RATE_HZ = 8000
WINDOW_SAMPLES = 256
"""32 ms."""

_QUIETEST_DBFS = -70.0
"""The floor never goes lower: digital silence must not make a whisper of line noise speech."""
_SPEECH_DBFS = -50.0
"""Nothing softer counts as speech."""
_MEMORY_WINDOWS = 47
"""1.5 s: speech falls to the background at least once in that time, steady noise does not."""
_EVEN_SNR_DB = 9.0
"""Level over the floor at which speech and noise are equally likely."""
_SNR_SLOPE_DB = 2.0
_HISS_CROSSINGS = 90
"""Zero crossings of a window beyond which it is hiss; voiced speech has less than half of it."""
_HISS_WEIGHT = 0.3
"""A single hiss may be an s: it neither starts speech nor, being short, ends it."""


class EnergyGate:
    """One caller's noise floor. Feed it windows of 256 samples at 8 kHz, in order."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: deque[float] = deque([_QUIETEST_DBFS], maxlen=_MEMORY_WINDOWS)

    def probability(self, window: Pcm) -> float:
        """How likely the window is speech, 0 to 1."""
        level = max(_QUIETEST_DBFS, level_dbfs(window))
        self._levels.append(level)
        if level < _SPEECH_DBFS:
            return 0.0
        snr_db = level - min(self._levels)
        likely = 1.0 / (1.0 + math.exp((_EVEN_SNR_DB - snr_db) / _SNR_SLOPE_DB))
        return likely * _HISS_WEIGHT if audioop.cross(window, 2) > _HISS_CROSSINGS else likely
