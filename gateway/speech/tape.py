"""The last stretch of a caller's audio, addressed from the first sample of the call on."""

from __future__ import annotations

from gateway.audio.formats import Pcm


class AudioTape:
    """A bounded buffer of PCM; positions are bytes since the start, and stay true when it drops."""

    def __init__(self, rate_hz: int, keep_s: float) -> None:
        self.rate_hz = rate_hz
        self._keep = self.position(keep_s)
        self._audio = bytearray()
        self.start = 0
        """Oldest byte that is still there."""

    @property
    def end(self) -> int:
        """Where the next audio goes."""
        return self.start + len(self._audio)

    def position(self, seconds: float) -> int:
        """The byte at a time."""
        return round(seconds * self.rate_hz) * 2

    def seconds(self, position: int) -> float:
        """The time of a byte."""
        return position / (2 * self.rate_hz)

    def append(self, pcm: Pcm) -> None:
        """Add audio; the oldest goes, a second's worth at a time, once more is there than kept."""
        audio = self._audio
        audio += pcm
        if len(audio) > self._keep + 2 * self.rate_hz:
            surplus = len(audio) - self._keep
            del audio[:surplus]
            self.start += surplus

    def read(self, position: int, end: int) -> Pcm:
        """The audio between two bytes, as far as it is there."""
        first = max(0, position - self.start)
        return bytes(self._audio[first : max(first, end - self.start)])
