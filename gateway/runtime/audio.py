"""The audio of a call with a runtime that listens and speaks itself. No socket, no clock.

Up: the caller's audio without a gap, in chunks of 40 to 120 ms. Down: the runtime's audio as it
is where the formats agree; where they do not, it is only decoded and, at need, resampled.
"""

from __future__ import annotations

from typing import Any

from gateway.audio import g711
from gateway.audio.formats import FRAME_MS, AudioFormat, Pcm
from gateway.audio.resample import Resampler

GAP_S = 0.2
"""After so much time without caller audio the runtime is given silence."""
HELD_S = 10.0
"""Caller audio kept for a runtime that is not open yet; the oldest is dropped beyond."""


def _config(audio: AudioFormat) -> dict[str, Any]:
    return {"audioEncoding": audio.encoding.value, "sampleRateHertz": audio.rate_hz}


class Converter:
    """A stream in one format made into another."""

    def __init__(self, source: AudioFormat, target: AudioFormat) -> None:
        self._decoder = g711.Decoder(source.encoding)
        self._same = source == target
        self._encoding = target.encoding
        self._resampler: Resampler | None = None
        if source.rate_hz != target.rate_hz:
            self._resampler = Resampler(source.rate_hz, target.rate_hz)

    def pcm(self, data: bytes) -> Pcm:
        """The samples at the target's rate."""
        pcm = self._decoder.process(data)
        return pcm if self._resampler is None else self._resampler.process(pcm)

    def wire(self, data: bytes) -> bytes:
        """The bytes in the target format; untouched where the formats agree."""
        return data if self._same else g711.encode(self.pcm(data), self._encoding)


class AudioBridge:
    """Both directions of one call.

    `wanted`: the one format that the runtime takes and gives; None: the line's own, each way.
    """

    def __init__(
        self,
        line_in: AudioFormat | None,
        line_out: AudioFormat | None,
        wanted: AudioFormat | None,
        chunk_ms: int,
        noise_suppression: str = "",
    ) -> None:
        self._in = wanted or line_in
        self._out = wanted or line_out
        self._noise_suppression = noise_suppression
        self._up = Converter(line_in, self._in) if line_in and self._in else None
        self._down = Converter(self._out, line_out) if line_out and self._out else None
        self._as_it_is = self._out == line_out
        self._chunk_ms = chunk_ms
        self._waiting = bytearray()
        self._open = False
        self._due: float | None = None
        """Up to when, on the call's clock, the runtime has been given audio."""

    @property
    def config(self) -> dict[str, Any]:
        """The audio part of the session's configuration."""
        config: dict[str, Any] = {}
        if self._up is not None and self._in is not None:
            config["inputAudioConfig"] = _config(self._in)
            if self._noise_suppression:
                config["inputAudioConfig"]["noiseSuppressionLevel"] = self._noise_suppression
        if self._down is not None and self._out is not None:
            config["outputAudioConfig"] = _config(self._out)
        return config

    # ---- up

    def open(self) -> None:
        """The runtime takes audio from now on."""
        self._open = True

    def _bytes(self, seconds: float) -> int:
        assert self._in is not None
        return round(seconds * self._in.rate_hz) * self._in.sample_bytes

    def hear(self, data: bytes, now: float) -> None:
        """Caller audio in the line's format."""
        if self._up is None or self._in is None:
            return
        made = self._up.wire(data)
        self._waiting += made
        seconds = len(made) / (self._in.rate_hz * self._in.sample_bytes)
        # A burst after a stall makes up for what was missing; the clock is not run ahead of.
        self._due = min(now, now - seconds if self._due is None else self._due) + seconds
        surplus = len(self._waiting) - self._bytes(HELD_S)
        if surplus > 0 and not self._open:
            del self._waiting[: surplus + surplus % self._in.sample_bytes]

    def chunks(self, now: float) -> list[bytes]:
        """What the runtime is to be given by now; silence where the caller's audio stays away."""
        if self._up is None or self._in is None or not self._open:
            return []
        if self._due is None:
            self._due = now
        if now - self._due >= GAP_S:
            frames = int((now - self._due) * 1000 / FRAME_MS)
            self._waiting += self._in.silence * frames
            self._due += frames * FRAME_MS / 1000
        size = self._bytes(self._chunk_ms / 1000)
        found: list[bytes] = []
        while len(self._waiting) >= size:
            found.append(bytes(self._waiting[:size]))
            del self._waiting[:size]
        return found

    # ---- down

    def say(self, data: bytes) -> tuple[Pcm, bytes]:
        """The runtime's audio: samples at the line's rate, and the same as the line wants it.

        The second is empty where it would not be the runtime's own bytes.
        """
        if self._down is None:
            return b"", b""
        return self._down.pcm(data), data if self._as_it_is else b""
