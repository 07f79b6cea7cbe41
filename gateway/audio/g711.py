"""G.711 and Linear16: between what travels on a wire and `Pcm`.

One call of C code a frame, under a microsecond. Decoding and A-law encoding are the ITU tables;
mu-law encoding may be one code off for negative samples next to a decision boundary.
"""

from __future__ import annotations

from gateway.audio.formats import Encoding, Pcm
from gateway.audio.native import audioop


def encode(pcm: Pcm, encoding: Encoding) -> bytes:
    """Samples as wire bytes: one byte a sample for G.711, the same two for Linear16.

    Half a sample at the end is dropped.
    """
    if len(pcm) & 1:
        pcm = pcm[:-1]
    if encoding is Encoding.MULAW:
        return audioop.lin2ulaw(pcm, 2)
    if encoding is Encoding.ALAW:
        return audioop.lin2alaw(pcm, 2)
    return pcm


def decode(data: bytes, encoding: Encoding) -> Pcm:
    """Wire bytes as samples. Half a Linear16 sample at the end is dropped (see `Decoder`)."""
    if encoding is Encoding.MULAW:
        return audioop.ulaw2lin(data, 2)
    if encoding is Encoding.ALAW:
        return audioop.alaw2lin(data, 2)
    return data[:-1] if len(data) & 1 else data


class Decoder:
    """Decodes a stream whose messages may end in the middle of a Linear16 sample."""

    __slots__ = ("_encoding", "_half")

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._half = b""

    def process(self, data: bytes) -> Pcm:
        """The whole samples of all data so far that were not returned before."""
        if self._encoding is not Encoding.LINEAR16:
            return decode(data, self._encoding)
        if self._half:
            data = self._half + data
        if len(data) & 1:
            self._half = data[-1:]
            return data[:-1]
        self._half = b""
        return data
