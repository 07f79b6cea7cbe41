"""The voice of one call: turns utterances into speech, sentence by sentence and in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from gateway.call.events import Action, Synthesize
from gateway.call.profile import CallProfile
from gateway.call.voices import voice_for
from gateway.errors import SpeechError
from gateway.speech.base import Synthesiser
from gateway.speech.text import prepare, sentences

AHEAD_S = 20.0
"""Speech made but not yet sent, above which synthesis waits."""
WAIT_S = 0.5


class SpeechSink(Protocol):
    """The engine's side that takes speech."""

    @property
    def output_rate_hz(self) -> int:
        """Rate of the PCM that the sink wants."""
        ...

    def buffered_s(self) -> float:
        """Seconds of audio waiting to be sent."""
        ...

    def speech_audio(self, utterance_id: int, text: str, pcm: bytes, now: float) -> list[Action]:
        """One sentence."""
        ...

    def speech_finished(self, utterance_id: int, now: float) -> list[Action]:
        """No more sentences."""
        ...

    def speech_failed(self, utterance_id: int, code: str, message: str, now: float) -> list[Action]:
        """The utterance cannot be spoken (further)."""
        ...


class Speaker:
    """Synthesises the utterances of one call; one sentence at a time is under way."""

    def __init__(self, synthesiser: Synthesiser, profile: CallProfile, sink: SpeechSink) -> None:
        self._synthesiser = synthesiser
        self._profile = profile
        self._sink = sink
        self._waiting: deque[Synthesize] = deque()
        self._cancelled: set[int] = set()
        self._running = False

    def say(self, request: Synthesize) -> bool:
        """Queue an utterance (the engine bounds how many); True where `run` must be started."""
        self._waiting.append(request)
        idle = not self._running
        self._running = True
        return idle

    def cancel(self, utterance_id: int) -> None:
        """Make no further sentence of this utterance."""
        if any(request.utterance_id == utterance_id for request in self._waiting):
            self._waiting = deque(r for r in self._waiting if r.utterance_id != utterance_id)
        else:
            self._cancelled.add(utterance_id)

    async def run(self, apply: Callable[[list[Action]], None], now: Callable[[], float]) -> None:
        """Work off the queue; returns when it is empty."""
        try:
            while self._waiting:
                request = self._waiting.popleft()
                self._cancelled.clear()
                await self._utter(request, apply, now)
        finally:
            self._running = False

    async def _utter(
        self,
        request: Synthesize,
        apply: Callable[[list[Action]], None],
        now: Callable[[], float],
    ) -> None:
        voice = voice_for(self._profile.voices, request.language)
        utterance_id = request.utterance_id
        for sentence in sentences(request.text):
            words = prepare(sentence)
            if not words:
                continue
            if not await self._room(utterance_id):
                return
            try:
                pcm = await self._synthesiser.synthesise(
                    words, voice, request.language, self._sink.output_rate_hz
                )
            except SpeechError as error:
                apply(self._sink.speech_failed(utterance_id, error.code, error.message, now()))
                return
            if utterance_id in self._cancelled:
                return
            apply(self._sink.speech_audio(utterance_id, sentence, pcm, now()))
        apply(self._sink.speech_finished(utterance_id, now()))

    async def _room(self, utterance_id: int) -> bool:
        """Wait until the engine has little enough ahead; False once the utterance is cancelled."""
        while utterance_id not in self._cancelled:
            if self._sink.buffered_s() <= AHEAD_S:
                return True
            # The buffer drains by the playout clock alone, so there is nothing to be woken by.
            await asyncio.sleep(WAIT_S)
        return False
