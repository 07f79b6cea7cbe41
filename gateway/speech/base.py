"""What the gateway asks of speech engines: one small interface each, and the bundle of a process.

All audio is 16-bit mono PCM. Engines of a live process run outside the event loop's thread; those
of a simulation run inside the call, so that a run repeats byte for byte.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gateway.audio.formats import AudioFormat, Pcm
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


@runtime_checkable
class StreamingSynthesiser(Synthesiser, Protocol):
    """A synthesiser that gives speech as it is made, and reads text as it was written.

    It wants neither digits spelled nor letters dropped, and takes whole SSML documents.
    """

    def stream(
        self, text: str, voice: VoiceConfig, language: str, audio_format: AudioFormat
    ) -> AsyncGenerator[Pcm, None]:
        """Speech of one sentence or SSML document in pieces, PCM at the rate of `audio_format`.

        The format is that of the line: an engine that can make it asks for no other. Raises
        SpeechError, also after some pieces.
        """
        ...

    def unsupported(self, voice: VoiceConfig) -> tuple[str, ...]:
        """What of an app's entry it cannot honour: names of `SynthesizeSpeechConfig` fields."""
        ...


class Recogniser(Protocol):
    """Makes text of speech."""

    name: str

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one speech segment, "" where there are none. Raises SpeechError."""
        ...


@dataclass(frozen=True, slots=True)
class Heard:
    """Words that a streaming recogniser found.

    `final`: they will not change any more; else a later result replaces them. Times are seconds
    of the caller's audio since the first feed. `language`: as recognised, "" where not told.
    """

    text: str
    final: bool
    start_s: float
    end_s: float
    language: str = ""


OnHeard = Callable[[Heard], None]
"""Called in the event loop's thread with each result, in order."""


class RecognitionStream(Protocol):
    """The recognition of one call while it runs."""

    def feed(self, pcm: Pcm) -> None:
        """Take caller audio, any length in whole samples. Never blocks.

        Where the service takes no audio for long, the oldest is dropped.
        """
        ...

    async def words(self, start_s: float, end_s: float) -> str:
        """All words between two times of the caller's audio, as final as they get.

        Asked when the caller pauses at `end_s`. Raises SpeechError where the stream has lost any
        of that audio.
        """
        ...

    def speak(self, language: str) -> None:
        """Expect this language from here on."""
        ...

    async def aclose(self) -> None:
        """Close; nothing is reported afterwards. May be called twice."""
        ...


@runtime_checkable
class StreamingRecogniser(Recogniser, Protocol):
    """A recogniser that hears the caller all the time, not only by segments."""

    def open(
        self, rate_hz: int, languages: tuple[str, ...], on_heard: OnHeard
    ) -> RecognitionStream:
        """A new stream; it expects the first language, and maybe the others."""
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
