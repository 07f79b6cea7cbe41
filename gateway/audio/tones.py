"""Made-up audio: sines, keypad tones, silence. Edges are faded, so nothing clicks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm

_FADE_MS = 3
_ROWS_HZ = (697, 770, 852, 941)
_COLUMNS_HZ = (1209, 1336, 1477, 1633)
DTMF_KEYS = "123A456B789C*0#D"
"""The keypad, row by row."""


def silence(ms: float, rate_hz: int = 8000) -> Pcm:
    """`ms` milliseconds of digital silence."""
    return bytes(2 * round(ms * rate_hz / 1000))


def sine(hz: float, ms: float, rate_hz: int = 8000, level_db: float = -9.0) -> Pcm:
    """A sine with its peak at `level_db` below full scale."""
    return _tones((hz,), ms, rate_hz, level_db)


def dtmf(digit: str, ms: float = 100, rate_hz: int = 8000, level_db: float = -9.0) -> Pcm:
    """The two tones of a key of `DTMF_KEYS`, each with its peak at `level_db`.

    Raises ValueError for any other key.
    """
    place = DTMF_KEYS.find(digit.upper()) if len(digit) == 1 else -1
    if place < 0:
        raise ValueError(f"no key of a telephone: {digit!r}")
    return _tones((_ROWS_HZ[place // 4], _COLUMNS_HZ[place % 4]), ms, rate_hz, level_db)


def _tones(hz: tuple[float, ...], ms: float, rate_hz: int, level_db: float) -> Pcm:
    at = np.arange(round(ms * rate_hz / 1000)) / rate_hz
    total: NDArray[np.float64] = np.zeros(len(at))
    for one in hz:
        total += np.sin(2 * np.pi * one * at)
    edge = min(len(at) // 2, rate_hz * _FADE_MS // 1000)
    rise = np.sin(np.linspace(0, np.pi / 2, edge, endpoint=False)) ** 2
    total[:edge] *= rise
    total[len(at) - edge :] *= rise[::-1]
    scaled = np.rint(total * 32767 * 10 ** (level_db / 20))
    return np.clip(scaled, -32768, 32767).astype("<i2").tobytes()
