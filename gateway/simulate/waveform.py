"""A track of samples as the outline of its waveform, for a picture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gateway.audio.formats import Pcm

FLOOR_DB = -48.0
"""Level drawn as no height at all: the scale is logarithmic, so soft speech shows."""


def outline(pcm: Pcm, rate_hz: int, seconds: float, columns: int) -> list[float]:
    """Height 0..1 of each of `columns` equal stretches of `seconds`."""
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) / 32768.0
    wanted = int(seconds * rate_hz)
    if wanted <= 0 or columns <= 0:
        return []
    padded = np.zeros(wanted, dtype=np.float32)
    padded[: min(wanted, len(samples))] = np.abs(samples[:wanted])
    edges = np.linspace(0, wanted, columns + 1).astype(int)
    heights: list[float] = []
    for start, end in pairwise(edges):
        peak = float(padded[start:end].max()) if end > start else 0.0
        decibels = 20.0 * np.log10(max(peak, 1e-6))
        heights.append(max(0.0, min(1.0, 1.0 - float(decibels) / FLOOR_DB)))
    return heights


def path(heights: list[float], x: float, step: float, middle: float, reach: float) -> str:
    """The outline as the data of one closed SVG path, mirrored at `middle`."""
    if not heights:
        return ""
    upper = [f"{x + (i + 0.5) * step:.1f},{middle - h * reach:.1f}" for i, h in enumerate(heights)]
    lower = [f"{x + (i + 0.5) * step:.1f},{middle + h * reach:.1f}" for i, h in enumerate(heights)]
    return f"M{' '.join(upper)} {' '.join(reversed(lower))}Z"
