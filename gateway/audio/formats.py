"""What audio on a wire is: an encoding and a rate. Inside, audio is 16-bit PCM bytes, mono."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FRAME_MS = 20
"""Length of one media frame in milliseconds."""

Pcm = bytes
"""Signed 16-bit little-endian mono samples, no header."""


class Encoding(StrEnum):
    """Sample encodings of telephone platforms; values are the names of the session API."""

    LINEAR16 = "LINEAR16"
    MULAW = "MULAW"
    ALAW = "ALAW"


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """An encoding at a rate, mono."""

    encoding: Encoding
    rate_hz: int

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample on the wire."""
        return 2 if self.encoding is Encoding.LINEAR16 else 1

    @property
    def frame_samples(self) -> int:
        """Samples in one 20 ms frame."""
        return self.rate_hz * FRAME_MS // 1000

    @property
    def frame_bytes(self) -> int:
        """Bytes of one 20 ms frame on the wire."""
        return self.frame_samples * self.sample_bytes

    @property
    def pcm_frame_bytes(self) -> int:
        """Bytes of one 20 ms frame as 16-bit PCM."""
        return self.frame_samples * 2

    @property
    def silence(self) -> bytes:
        """One 20 ms frame of codec silence."""
        fill = {Encoding.LINEAR16: b"\x00\x00", Encoding.MULAW: b"\xff", Encoding.ALAW: b"\xd5"}
        return fill[self.encoding] * self.frame_samples


MULAW_8K = AudioFormat(Encoding.MULAW, 8000)
ALAW_8K = AudioFormat(Encoding.ALAW, 8000)
