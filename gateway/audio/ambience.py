"""Background sound: a clip made into a loop without a seam."""

from __future__ import annotations

import numpy as np

from gateway.audio.formats import FRAME_MS, Pcm
from gateway.audio.limiting import limit
from gateway.audio.mixing import factor

CROSSFADE_MS = 500


def loop(pcm: Pcm, rate_hz: int, gain_db: float = 0.0) -> Pcm:
    """`pcm` scaled by `gain_db` and ready to be repeated end to start without a click.

    The end is faded into the start at equal power, which shortens the clip by up to 500 ms
    (a third, if it is short). A loop of at least one frame is cut to whole 20 ms frames.
    """
    samples = np.frombuffer(pcm, "<i2").astype(np.float64)
    fade = min(rate_hz * CROSSFADE_MS // 1000, len(samples) // 3)
    length = len(samples) - fade
    frame = rate_hz * FRAME_MS // 1000
    if length >= frame:
        length -= length % frame
    looped = samples[:length].copy()
    # The first sample is what follows the last one in the clip; from there the start fades in.
    angle = np.linspace(0, np.pi / 2, fade, endpoint=False)
    looped[:fade] *= np.sin(angle)
    looped[:fade] += samples[length : length + fade] * np.cos(angle)
    return limit(looped * factor(gain_db))
