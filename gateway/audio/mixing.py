"""Adding and scaling samples; results saturate at full scale instead of wrapping round."""

from __future__ import annotations

import math

from gateway.audio.formats import Pcm
from gateway.audio.native import audioop


def mix(a: Pcm, b: Pcm) -> Pcm:
    """The sum of two stretches at one rate; the shorter one counts as followed by silence."""
    if len(a) < len(b):
        a, b = b, a
    if not b:
        return a
    if len(a) == len(b):
        return audioop.add(a, b, 2)
    return audioop.add(a[: len(b)], b, 2) + a[len(b) :]


def factor(gain_db: float) -> float:
    """The multiplier of an amplitude for a gain in decibels; minus infinity is 0."""
    return 0.0 if gain_db == -math.inf else 10.0 ** (gain_db / 20.0)


def gain(pcm: Pcm, gain_db: float) -> Pcm:
    """The same samples louder or softer by `gain_db` decibels."""
    return pcm if gain_db == 0 else audioop.mul(pcm, 2, factor(gain_db))


def level_dbfs(pcm: Pcm) -> float:
    """Root mean square level; 0 is a square wave at full scale, minus infinity digital silence."""
    rms = audioop.rms(pcm, 2)
    return 20.0 * math.log10(rms / 32768.0) if rms else -math.inf
