"""Short and long fades: half a cosine, whose slope is zero at both ends, so nothing clicks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm


@lru_cache(maxsize=64)
def _rise(samples: int) -> NDArray[np.float64]:
    """Factors from just above 0 to just below 1."""
    rise: NDArray[np.float64] = np.sin((np.arange(samples) + 0.5) * (np.pi / 2 / max(1, samples)))
    return rise * rise


def _scaled(pcm: Pcm, factors: NDArray[np.float64]) -> Pcm:
    return np.rint(np.frombuffer(pcm, "<i2") * factors).astype("<i2").tobytes()


def fade_in(pcm: Pcm) -> Pcm:
    """All of `pcm`, rising from silence."""
    return _scaled(pcm, _rise(len(pcm) // 2))


def fade_out(pcm: Pcm) -> Pcm:
    """All of `pcm`, falling to silence."""
    return _scaled(pcm, _rise(len(pcm) // 2)[::-1])


def rising(pcm: Pcm, start: int, total: int) -> Pcm:
    """A piece of a long fade-in: it begins `start` bytes into a fade of `total` bytes."""
    count = len(pcm) // 2
    factors = np.ones(count)
    part = _rise(total // 2)[start // 2 : start // 2 + count]
    factors[: len(part)] = part
    return _scaled(pcm, factors)
