"""The speech services of a simulation: the same engines, run at once in the caller's thread."""

from __future__ import annotations

from functools import lru_cache

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.speech.base import SpeechServices, VoiceActivity
from gateway.speech.cache import SpeechCache, SpeechKey
from gateway.speech.choose import choose
from gateway.speech.energy import EnergyActivity
from gateway.speech.engines import EnginePlan, Engines, load_engines
from gateway.speech.silero import InlineSilero, SileroModel


@lru_cache(maxsize=2)
def shared_engines(plan: EnginePlan) -> Engines:
    """Loaded once a process: a suite of scenarios would spend its time in loading otherwise."""
    return load_engines(plan)


@lru_cache(maxsize=1)
def _silero() -> SileroModel:
    return SileroModel()


class InlineSynthesiser:
    """Synthesis in the caller's thread. A repeated sentence sounds the same to the bit."""

    def __init__(self, plan: EnginePlan, cache_bytes: int) -> None:
        self.name = plan.tts
        self._plan = plan
        self._cache = SpeechCache(cache_bytes)

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one prepared sentence at `rate_hz`. Raises SpeechError."""
        spoken = VoiceConfig(speaking_rate=voice.speaking_rate)
        wanted = AudioFormat(Encoding.LINEAR16, rate_hz)
        key = SpeechKey(self.name, spoken, language, text, wanted)
        pcm = self._cache.get(key)
        if pcm is None:
            pcm = shared_engines(self._plan).synthesise(text, voice, language, rate_hz)
            self._cache.put(key, pcm)
        return pcm


class InlineRecogniser:
    """Recognition in the caller's thread."""

    def __init__(self, plan: EnginePlan) -> None:
        self.name = plan.stt
        self._plan = plan

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one segment. Raises SpeechError."""
        return shared_engines(self._plan).recognise(pcm, rate_hz, language)


class InlineTurnDetector:
    """Turn detection in the caller's thread."""

    def __init__(self, plan: EnginePlan) -> None:
        self.name = plan.turn
        self._plan = plan

    async def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Whether the turn is over. Raises SpeechError."""
        return shared_engines(self._plan).complete(pcm, rate_hz)


def inline(settings: Settings) -> SpeechServices:
    """The services of a simulation; `start` loads what is not loaded yet. Raises ConfigError.

    A simulation needs no network and repeats to the bit: the offline engine that stands behind a
    cloud engine takes its place.
    """
    plan = choose(settings.speech)
    activity: VoiceActivity
    activity = InlineSilero(_silero()) if plan.vad == "silero" else EnergyActivity()

    async def start() -> None:
        shared_engines(plan)

    return SpeechServices(
        synthesiser=InlineSynthesiser(plan, settings.speech.cache_bytes),
        recogniser=InlineRecogniser(plan),
        turn_detector=InlineTurnDetector(plan),
        voice_activity=activity,
        on_start=start,
    )
