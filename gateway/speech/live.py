"""The speech services of a live process: engines in workers, voice activity in a thread."""

from __future__ import annotations

import asyncio

import structlog

from gateway.audio.formats import Pcm
from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.errors import SpeechError
from gateway.speech.base import SpeechServices, VoiceActivity
from gateway.speech.cache import SpeechCache, SpeechKey
from gateway.speech.choose import choose
from gateway.speech.energy import EnergyActivity
from gateway.speech.engines import Silence
from gateway.speech.jobs import JudgeTurn, Recognise, Speech, Synthesise, Verdict, Words
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
        self._cache = SpeechCache(cache_bytes)
        self._under_way: dict[SpeechKey, asyncio.Task[Pcm]] = {}
        self._noted: set[str] = set()

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one prepared sentence at `rate_hz`. Raises SpeechError."""
        self._note(voice.voice)
        key = SpeechKey(text, voice.speaking_rate, language, rate_hz)
        if (kept := self._cache.get(key)) is not None:
            return kept
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._make(key, voice), name="speech-synthesis")
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._done(key, done))
        # A caller that gives up must not take the sentence from the others.
        return await asyncio.shield(task)

    async def _make(self, key: SpeechKey, voice: VoiceConfig) -> Pcm:
        answer = await self._pool.run(Synthesise(key.text, voice, key.language, key.rate_hz))
        if not isinstance(answer, Speech):
            raise _wrong(answer)
        self._cache.put(key, answer.pcm)
        return answer.pcm

    def _done(self, key: SpeechKey, task: asyncio.Task[Pcm]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # seen: its callers may all have gone

    def _note(self, voice: str) -> None:
        if voice and voice not in self._noted and len(self._noted) < 100:
            self._noted.add(voice)
            _log.debug("speech.voice_ignored", engine=self.name, voice=voice)

    async def aclose(self) -> None:
        """Wait for what is under way; the pool has been closed, so it ends at once."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)


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
    plan = choose(speech)
    pool = WorkerPool(
        plan,
        processes=speech.processes,
        queue_size=speech.queue_size,
        timeout_s=speech.timeout_s,
    )
    synthesiser = PooledSynthesiser(plan.tts, pool, speech.cache_bytes)
    thread = SileroThread() if plan.vad == "silero" else None
    activity: VoiceActivity = thread or EnergyActivity()

    async def close() -> None:
        await pool.aclose()
        await synthesiser.aclose()
        if thread is not None:
            await thread.aclose()

    async def start() -> None:
        try:
            if thread is not None:
                await thread.start()
            await pool.start()
        except BaseException:
            await close()
            raise
        _log.info("speech.ready", tts=plan.tts, stt=plan.stt, vad=plan.vad, turn=plan.turn)

    return SpeechServices(
        synthesiser=synthesiser,
        recogniser=PooledRecogniser(plan.stt, pool),
        turn_detector=PooledTurnDetector(plan.turn, pool),
        voice_activity=activity,
        on_start=start,
        on_close=close,
    )
