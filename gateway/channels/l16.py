"""Linear16 as platforms write it, made into little-endian mono samples and back.

Messages may end anywhere; what is left of a sample, or of a pair of channels, is carried.
"""

from __future__ import annotations

import numpy as np

from gateway.audio.native import audioop


class FirstChannel:
    """The first of two interleaved channels."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def process(self, data: bytes) -> bytes:
        """The first channel of all whole pairs so far that were not returned before."""
        data = self._rest + data
        whole = len(data) & ~3
        self._rest = data[whole:]
        return audioop.tomono(data[:whole], 2, 1, 0)


class Swapper:
    """Swaps the bytes of each sample: big endian to little endian, or back."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def process(self, data: bytes) -> bytes:
        """All whole samples so far that were not returned before."""
        data = self._rest + data
        whole = len(data) & ~1
        self._rest = data[whole:]
        return audioop.byteswap(data[:whole], 2)


def without_minus_one(pcm: bytes) -> bytes:
    """Samples of -1 made -2, for platforms to which 0xFFFF means something else."""
    if b"\xff\xff" not in pcm:
        return pcm
    samples = np.frombuffer(pcm, "<i2")
    tamed: bytes = (samples - (samples == -1)).tobytes()
    return tamed
