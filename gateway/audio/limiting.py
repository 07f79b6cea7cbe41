"""Sums and gains that would clip are bent softly instead: only samples near full scale change.

The curve has no memory, so it makes no step from one frame to the next. Below the knee it changes
nothing: levels there are exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm
from gateway.audio.mixing import factor
from gateway.audio.native import audioop

FULL_SCALE = 32767
KNEE = 26214
"""About -1.9 dBFS."""


def limit(samples: NDArray[np.float64]) -> Pcm:
    """Samples of any size as PCM."""
    size = np.abs(samples)
    if size.max(initial=0.0) > KNEE:
        room = FULL_SCALE - KNEE
        bent = KNEE + room * np.tanh((size - KNEE) / room)
        samples = np.copysign(np.where(size > KNEE, bent, size), samples)
    return np.rint(samples).astype("<i2").tobytes()


def add(a: Pcm, b: Pcm) -> Pcm:
    """The sum of two stretches of one length."""
    total = audioop.add(a, b, 2)
    if audioop.max(total, 2) <= KNEE:
        return total
    return limit(np.frombuffer(a, "<i2").astype(np.float64) + np.frombuffer(b, "<i2"))


def louder(pcm: Pcm, gain_db: float) -> Pcm:
    """The same samples louder or softer by `gain_db` decibels."""
    if gain_db == 0:
        return pcm
    times = factor(gain_db)
    if audioop.max(pcm, 2) * times <= KNEE:
        return audioop.mul(pcm, 2, times)
    return limit(np.frombuffer(pcm, "<i2") * times)
