"""The engines of one process, loaded once and called synchronously; each failure a SpeechError."""

from __future__ import annotations

from typing import Protocol

import msgspec

from gateway.audio.formats import Pcm
from gateway.audio.resample import resample_clip
from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.loudness import even_out
from gateway.speech.models import Floats, to_floats, to_pcm

MAX_TEXT_CHARS = 1500
"""Longest sentence that is spoken: a full one of `gateway.speech.text`, every digit spelled."""
MAX_CLIP_S = 60.0
"""Longest clip that is recognised; of a longer one the end counts."""


class EnginePlan(msgspec.Struct, frozen=True):
    """Which engine does what, by name; all are known to be installed."""

    tts: str
    stt: str
    vad: str
    turn: str
    seed: int = 0


class Voice(Protocol):
    """A synthesiser's own interface: floats at its own rate."""

    name: str
    rate_hz: int

    def speak(self, text: str, voice: VoiceConfig, language: str) -> Floats:
        """Speech; empty where nothing can be spoken."""
        ...


class Ear(Protocol):
    """A recogniser's own interface."""

    name: str

    def words(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of a clip, "" where there are none."""
        ...


class TurnJudge(Protocol):
    """A turn detector's own interface."""

    name: str

    def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Whether the turn is over."""
        ...


class NoEar:
    """Hears no words: calls are driven by keypad and text."""

    name = "none"

    def words(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """Always ""."""
        return ""


class Silence:
    """Never says that a turn is over: the fixed silence at its end decides."""

    name = "silence"

    def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Always False."""
        return False


class Engines:
    """What a worker does, and a simulation in its own thread."""

    def __init__(self, voice: Voice, ear: Ear, judge: TurnJudge) -> None:
        self.voice = voice
        self.ear = ear
        self.judge = judge

    def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech at `rate_hz`, evened out. Raises SpeechError (empty, too_long, engine)."""
        if len(text) > MAX_TEXT_CHARS:
            raise SpeechError(
                "speech.too_long",
                f"{len(text)} characters in one sentence",
                hint="cut the text with gateway.speech.text.sentences",
            )
        if not any(char.isalnum() for char in text):
            raise _silent(self.voice)
        try:
            made = self.voice.speak(text, voice, language)
            pcm = resample_clip(to_pcm(made), self.voice.rate_hz, rate_hz)
            speech = to_pcm(even_out(to_floats(pcm), rate_hz))
        except Exception as error:
            raise _failed(self.voice.name, error) from error
        if not speech:
            raise _silent(self.voice)
        return speech

    def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of a clip. Raises SpeechError (engine)."""
        try:
            return self.ear.words(pcm[-2 * int(MAX_CLIP_S * rate_hz) :], rate_hz, language)
        except Exception as error:
            raise _failed(self.ear.name, error) from error

    def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Whether the turn is over. Raises SpeechError (engine)."""
        try:
            return self.judge.complete(pcm, rate_hz)
        except Exception as error:
            raise _failed(self.judge.name, error) from error


def _silent(voice: Voice) -> SpeechError:
    return SpeechError("speech.empty", f"{voice.name} makes no sound of this text")


def _failed(engine: str, error: Exception) -> SpeechError:
    # The type only: an engine may quote the text that it failed on.
    return SpeechError("speech.engine", f"{engine} failed: {type(error).__name__}")


def load_engines(plan: EnginePlan) -> Engines:
    """Load what the plan names, about a second in all. Raises SpeechError (load)."""
    try:
        engines = Engines(_voice(plan), _ear(plan), _judge(plan))
        # A model's first run allocates its buffers; the first caller should not wait for that.
        pcm = engines.synthesise("Hello.", VoiceConfig(), "en-US", 8000)
        engines.recognise(pcm, 8000, "en-US")
        engines.complete(pcm, 8000)
    except SpeechError:
        raise
    except Exception as error:
        raise SpeechError(
            "speech.load",
            f"a speech engine does not load: {type(error).__name__}: {error}",
            hint="reinstall the wheels, or choose other engines under `speech`",
        ) from error
    return engines


def _voice(plan: EnginePlan) -> Voice:
    if plan.tts == "hibari":
        from gateway.speech.hibari import Hibari

        return Hibari(plan.seed)
    from gateway.speech.nanotts import NanoTts

    return NanoTts()


def _ear(plan: EnginePlan) -> Ear:
    if plan.stt == "none":
        return NoEar()
    from gateway.speech.moonshine import Moonshine

    return Moonshine()


def _judge(plan: EnginePlan) -> TurnJudge:
    if plan.turn == "silence":
        return Silence()
    from gateway.speech.smart_turn import SmartTurn

    return SmartTurn()
