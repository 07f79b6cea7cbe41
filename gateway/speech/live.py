"""The speech services of a live process: engines in workers, voice activity in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.errors import SpeechError
from gateway.speech.backed import BackedRecogniser, BackedSynthesiser
from gateway.speech.base import Recogniser, SpeechServices, Synthesiser, VoiceActivity
from gateway.speech.cache import SpeechCache, SpeechKey
from gateway.speech.choose import check_cloud, choose
from gateway.speech.energy import EnergyActivity
from gateway.speech.engines import Silence
from gateway.speech.google_stt import GoogleRecogniser
from gateway.speech.google_tts import GoogleSynthesiser
from gateway.speech.jobs import JudgeTurn, Recognise, Speech, Synthesise, Verdict, Words
from gateway.speech.phrases import Phrases
from gateway.speech.pool import WorkerPool
from gateway.speech.vad_thread import SileroThread

_log = structlog.get_logger()


def _wrong(answer: object) -> SpeechError:
    return SpeechError("speech.worker_lost", f"a worker answered with {type(answer).__name__}")


class PooledSynthesiser:
    """Synthesis in the workers. A sentence asked for by many calls at once is made once."""

    def __init__(self, name: str, pool: WorkerPool, cache_bytes: int) -> None:
        self.name = name
        self._pool = pool
        self._phrases = Phrases(self._make, SpeechCache(cache_bytes))
        self._noted: set[str] = set()

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one prepared sentence at `rate_hz`. Raises SpeechError."""
        self._note(voice.voice)
        spoken = VoiceConfig(speaking_rate=voice.speaking_rate)
        wanted = AudioFormat(Encoding.LINEAR16, rate_hz)
        return await self._phrases.whole(SpeechKey(self.name, spoken, language, text, wanted))

    async def _make(self, key: SpeechKey) -> AsyncIterator[Pcm]:
        answer = await self._pool.run(
            Synthesise(key.text, key.voice, key.language, key.format.rate_hz)
        )
        if not isinstance(answer, Speech):
            raise _wrong(answer)
        yield answer.pcm

    def _note(self, voice: str) -> None:
        if voice and voice not in self._noted and len(self._noted) < 100:
            self._noted.add(voice)
            _log.debug("speech.voice_ignored", engine=self.name, voice=voice)

    async def aclose(self) -> None:
        """Break off what is under way."""
        await self._phrases.aclose()


class PooledRecogniser:
    """Recognition in the workers."""

    def __init__(self, name: str, pool: WorkerPool) -> None:
        self.name = name
        self._pool = pool

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one segment. Raises SpeechError."""
        if self.name == "none":
            return ""
        answer = await self._pool.run(Recognise(pcm, rate_hz, language))
        if not isinstance(answer, Words):
            raise _wrong(answer)
        return answer.text


class PooledTurnDetector:
    """Turn detection in the workers."""

    def __init__(self, name: str, pool: WorkerPool) -> None:
        self.name = name
        self._pool = pool

    async def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        """Whether the turn is over. Raises SpeechError."""
        if self.name == Silence.name:
            return False
        answer = await self._pool.run(JudgeTurn(pcm, rate_hz))
        if not isinstance(answer, Verdict):
            raise _wrong(answer)
        return answer.complete


def build(settings: Settings) -> SpeechServices:
    """The services of a live process, not yet started. Raises ConfigError."""
    speech = settings.speech
    check_cloud(speech)
    plan = choose(speech)
    pool = WorkerPool(
        plan,
        processes=speech.processes,
        queue_size=speech.queue_size,
        timeout_s=speech.timeout_s,
    )
    offline = PooledSynthesiser(plan.tts, pool, speech.cache_bytes)
    synthesiser: Synthesiser = offline
    recogniser: Recogniser = PooledRecogniser(plan.stt, pool)
    clouds: list[GoogleSynthesiser | GoogleRecogniser] = []
    if speech.tts == "google":
        voice = GoogleSynthesiser(speech)
        clouds.append(voice)
        synthesiser = BackedSynthesiser(voice, offline, speech.google.cool_down_s)
    if speech.stt == "google":
        ear = GoogleRecogniser(speech)
        clouds.append(ear)
        recogniser = BackedRecogniser(ear, recogniser, speech.google.cool_down_s)
    thread = SileroThread() if plan.vad == "silero" else None
    activity: VoiceActivity = thread or EnergyActivity()

    async def close() -> None:
        for cloud in clouds:
            await cloud.aclose()
        await pool.aclose()
        await offline.aclose()
        if thread is not None:
            await thread.aclose()

    async def start() -> None:
        try:
            if thread is not None:
                await thread.start()
            await pool.start()
            for cloud in clouds:
                await cloud.start()
        except BaseException:
            await close()
            raise
        _log.info(
            "speech.ready", tts=synthesiser.name, stt=recogniser.name, vad=plan.vad, turn=plan.turn
        )

    return SpeechServices(
        synthesiser=synthesiser,
        recogniser=recogniser,
        turn_detector=PooledTurnDetector(plan.turn, pool),
        voice_activity=activity,
        on_start=start,
        on_close=close,
    )
