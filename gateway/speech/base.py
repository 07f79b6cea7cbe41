"""What the gateway asks of speech engines: one small interface each, and the bundle of a process.

All audio is 16-bit mono PCM. Engines of a live process run outside the event loop's thread; those
of a simulation run inside the call, so that a run repeats byte for byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.audio.formats import Pcm
from gateway.call.profile import VoiceConfig

VAD_RATE_HZ = 8000
"""Rate at which voice activity is judged: that of the telephone, so no call needs resampling."""

VAD_WINDOW_SAMPLES = 256
"""Samples of one voice activity window: 32 ms."""

OnWindow = Callable[[float, float], None]
"""Called with a window's speech probability (0..1) and its end in seconds since the first feed."""


class Synthesiser(Protocol):
    """Makes speech of text."""

    name: str

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one prepared sentence at `rate_hz`. Raises SpeechError, also on no audio."""
        ...


class Recogniser(Protocol):
    """Makes text of speech."""

    name: str

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one speech segment, "" where there are none. Raises SpeechError."""
        ...


class TurnDetector(Protocol):
    """Tells a finished turn from a pause for thought."""

    name: str

    async def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Whether the caller has finished, from the segment so far. Raises SpeechError."""
        ...


class VoiceActivityStream(Protocol):
    """The voice activity of one call."""

    def feed(self, pcm_8k: Pcm) -> None:
        """Take caller audio at 8 kHz, any length in whole samples. Never blocks."""
        ...

    def close(self) -> None:
        """Forget the stream; no window is reported afterwards. May be called twice."""
        ...


class VoiceActivity(Protocol):
    """Finds speech in the audio of many calls at once."""

    name: str

    def open(self, on_window: OnWindow) -> VoiceActivityStream:
        """A new stream. `on_window` runs in the caller's thread (the event loop's, when live)."""
        ...


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class SpeechServices:
    """The engines of one process. `start()` before the first use, `aclose()` after the last."""

    synthesiser: Synthesiser
    recogniser: Recogniser
    turn_detector: TurnDetector
    voice_activity: VoiceActivity
    on_start: Callable[[], Awaitable[None]] = _nothing
    on_close: Callable[[], Awaitable[None]] = _nothing

    async def start(self) -> None:
        """Load the engines; returns when they can serve. Raises SpeechError."""
        await self.on_start()

    async def aclose(self) -> None:
        """End workers and threads; jobs under way fail with speech.closed. May be called twice."""
        await self.on_close()
