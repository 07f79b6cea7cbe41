"""What a telephone line does to speech, and how recognised words are compared."""

from __future__ import annotations

import re

import numpy as np

from gateway.audio import g711
from gateway.audio.formats import Encoding, Pcm
from gateway.speech.models import Floats, to_floats, to_pcm


def over_the_line(pcm: Pcm) -> Pcm:
    """8 kHz speech through mu-law and back."""
    return g711.decode(g711.encode(pcm, Encoding.MULAW), Encoding.MULAW)


def silence(seconds: float, rate_hz: int = 8000) -> Pcm:
    return bytes(2 * int(seconds * rate_hz))


def noise(seconds: float, level_dbfs: float, seed: int = 0, rate_hz: int = 8000) -> Pcm:
    samples = np.random.default_rng(seed).normal(size=int(seconds * rate_hz))
    return to_pcm((samples * 10 ** (level_dbfs / 20)).astype(np.float32))


def sounding(pcm: Pcm, rate_hz: int) -> Floats:
    """The 20 ms frames within 40 dB of the loudest."""
    size = rate_hz // 50
    samples = to_floats(pcm)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    levels = np.sqrt(np.mean(frames**2, axis=1))
    return frames[levels > levels.max() / 100].reshape(-1)


def level_dbfs(samples: Floats) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(samples**2))))


def peak_dbfs(samples: Floats) -> float:
    return float(20 * np.log10(np.max(np.abs(samples))))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower().replace("-", ""))
