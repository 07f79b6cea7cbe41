"""Makes speech of any engine equally loud and takes the dead air from its ends."""

from __future__ import annotations

import numpy as np

from gateway.speech.models import Floats

TARGET_DBFS = -20.0
"""Root mean square of the sounding parts."""
PEAK_DBFS = -3.0
"""No sample is louder; where both cannot hold, this one does."""
FLOOR_DBFS = -45.0
"""Frames this far below full scale, relative to a peak at 0 dB, count as silent."""
LEAD_MS = 40
TAIL_MS = 240
_FRAME_MS = 10


def _frame_levels(samples: Floats, rate_hz: int) -> Floats:
    size = rate_hz * _FRAME_MS // 1000
    count = -(-len(samples) // size)
    padded = np.zeros(count * size, np.float32)
    padded[: len(samples)] = samples
    levels: Floats = np.sqrt(np.mean(np.square(padded.reshape(count, size)), axis=1))
    return levels


def even_out(samples: Floats, rate_hz: int) -> Floats:
    """Speech at -20 dBFS RMS, peak at most -3 dBFS, with 40 ms before it and 240 ms after it.

    Silence stays as it is and comes back empty.
    """
    peak = float(np.max(np.abs(samples), initial=0.0))
    if peak < 1e-4:
        return np.zeros(0, np.float32)
    levels = _frame_levels(samples, rate_hz)
    sounding = np.flatnonzero(levels > peak * 10 ** (FLOOR_DBFS / 20))
    if not len(sounding):
        return np.zeros(0, np.float32)
    size = rate_hz * _FRAME_MS // 1000
    start = max(0, (int(sounding[0]) - LEAD_MS // _FRAME_MS) * size)
    end = (int(sounding[-1]) + 1 + TAIL_MS // _FRAME_MS) * size
    rms = float(np.sqrt(np.mean(np.square(levels[sounding]))))
    gain = min(10 ** (TARGET_DBFS / 20) / rms, 10 ** (PEAK_DBFS / 20) / peak)
    speech: Floats = samples[start:end] * np.float32(gain)
    return speech
