"""The audio of a call with a runtime that listens and speaks itself. No socket, no clock.

Up: the caller's audio without a gap, in chunks of 40 to 120 ms. Down: the runtime's audio as it
is where the formats agree; where they do not, it is only decoded and, at need, resampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.audio import g711
from gateway.audio.formats import FRAME_MS, AudioFormat, Encoding, Pcm
from gateway.audio.resample import Resampler
from gateway.call.events import (
    RuntimeAudio,
    RuntimeInterruption,
    RuntimeOutput,
    RuntimeTurnCompleted,
)
from gateway.runtime.arrivals import Arrivals

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


@dataclass(frozen=True, slots=True)
class AudioTerms:
    """In what form a runtime takes and gives sound."""

    wanted: AudioFormat | None = None
    """The one format, both ways; None: the line's own, each way."""
    chunk_ms: int = 60
    """How much of the caller's audio it is given at a time."""
    highest_hz: int | None = None
    """Where the line's rate is above this, the runtime has Linear16 at this rate."""

    def format(self, line: AudioFormat | None) -> AudioFormat | None:
        """The runtime's format for a direction of the line."""
        if line is None:
            return self.wanted
        if self.wanted is None and self.highest_hz is not None and line.rate_hz > self.highest_hz:
            return AudioFormat(Encoding.LINEAR16, self.highest_hz)
        return self.wanted or line


class AudioBridge:
    """Both directions of one call."""

    def __init__(
        self,
        line_in: AudioFormat | None,
        line_out: AudioFormat | None,
        terms: AudioTerms,
        noise_suppression: str = "",
    ) -> None:
        self._in = terms.format(line_in)
        self._out = terms.format(line_out)
        self._noise_suppression = noise_suppression
        self._up = Converter(line_in, self._in) if line_in and self._in else None
        self._down = Converter(self._out, line_out) if line_out and self._out else None
        self._as_it_is = self._out == line_out
        self._chunk_ms = terms.chunk_ms
        self._arrivals = Arrivals(line_out.rate_hz) if line_out is not None else None
        self._line_out = line_out
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

    def take(self, output: RuntimeOutput, now: float) -> RuntimeOutput | None:
        """What of an output goes on to the call: of audio, samples at the line's rate.

        With them the runtime's own bytes, where the line wants just these. None: nothing of it.
        """
        arrivals, down = self._arrivals, self._down
        if arrivals is None or down is None or self._line_out is None:
            return None if isinstance(output, RuntimeAudio) else output
        match output:
            case RuntimeAudio(data, turn):
                pcm = down.pcm(data)
                first, last, background = arrivals.take(pcm, turn, now)
                if first >= last:
                    return None
                pcm = pcm[first * 2 : last * 2]
                wire = b""
                if self._as_it_is:
                    linear = self._line_out.encoding is Encoding.LINEAR16
                    wire = pcm if linear else data[first:last]
                return RuntimeAudio(pcm, turn, wire, background)
            case RuntimeTurnCompleted():
                arrivals.pause()
            case RuntimeInterruption():
                arrivals.cut(now)
        return output
