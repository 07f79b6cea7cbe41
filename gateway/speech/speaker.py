"""The voice of one call: turns utterances into speech, sentence by sentence and in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Protocol

from gateway.audio.formats import AudioFormat, Pcm
from gateway.call.events import Action, Synthesize
from gateway.call.profile import CallProfile
from gateway.call.voices import voice_for
from gateway.errors import SpeechError
from gateway.speech.base import StreamingSynthesiser, Synthesiser
from gateway.speech.text import is_ssml, prepare, sentences, without_markdown

AHEAD_S = 20.0
"""Speech made but not yet sent, above which synthesis waits."""
WAIT_S = 0.5
MAX_SSML_BYTES = 5000
"""A longer document is spoken sentence by sentence, without its markup."""


class SpeechSink(Protocol):
    """The engine's side that takes speech."""

    @property
    def output_format(self) -> AudioFormat:
        """The line's format; PCM is wanted at its rate."""
        ...

    def buffered_s(self) -> float:
        """Seconds of audio waiting to be sent."""
        ...

    def speech_audio(
        self, utterance_id: int, text: str, pcm: Pcm, now: float, more: bool = False
    ) -> list[Action]:
        """One sentence, or a piece of it: with `more`, the sentence goes on in the next call."""
        ...

    def speech_finished(self, utterance_id: int, now: float) -> list[Action]:
        """No more sentences."""
        ...

    def speech_failed(self, utterance_id: int, error: SpeechError, now: float) -> list[Action]:
        """The utterance cannot be spoken (further)."""
        ...


class Speaker:
    """Synthesises the utterances of one call; one sentence at a time is under way."""

    def __init__(self, synthesiser: Synthesiser, profile: CallProfile, sink: SpeechSink) -> None:
        self._synthesiser = synthesiser
        self._streaming = synthesiser if isinstance(synthesiser, StreamingSynthesiser) else None
        self._profile = profile
        self._sink = sink
        self._waiting: deque[Synthesize] = deque()
        self._current: tuple[int, asyncio.Task[None]] | None = None
        self._running = False

    def say(self, request: Synthesize) -> bool:
        """Queue an utterance (the engine bounds how many); True where `run` must be started."""
        self._waiting.append(request)
        idle = not self._running
        self._running = True
        return idle

    def cancel(self, utterance_id: int) -> None:
        """Make no further sentence of this utterance, and do not wait for the one under way."""
        if self._current is not None and self._current[0] == utterance_id:
            self._current[1].cancel()
        else:
            self._waiting = deque(r for r in self._waiting if r.utterance_id != utterance_id)

    async def run(self, apply: Callable[[list[Action]], None], now: Callable[[], float]) -> None:
        """Work off the queue; returns when it is empty."""
        try:
            while self._waiting:
                request = self._waiting.popleft()
                task = asyncio.create_task(self._utter(request, apply, now), name="utterance")
                self._current = (request.utterance_id, task)
                await asyncio.wait({task})
                self._current = None
                if not task.cancelled():
                    task.result()
        finally:
            self._running = False
            if self._current is not None:
                # The call is over.
                self._current[1].cancel()
                await asyncio.wait({self._current[1]})

    async def _utter(
        self,
        request: Synthesize,
        apply: Callable[[list[Action]], None],
        now: Callable[[], float],
    ) -> None:
        voice = voice_for(self._profile.voices, request.language)
        utterance_id = request.utterance_id
        try:
            for text, words in self._units(request.text):
                await self._room()
                if self._streaming is None:
                    pcm = await self._synthesiser.synthesise(
                        words, voice, request.language, self._sink.output_format.rate_hz
                    )
                    apply(self._sink.speech_audio(utterance_id, text, pcm, now()))
                    continue
                pieces = self._streaming.stream(
                    words, voice, request.language, self._sink.output_format
                )
                async with aclosing(pieces):
                    async for pcm in pieces:
                        apply(self._sink.speech_audio(utterance_id, text, pcm, now(), True))
                apply(self._sink.speech_audio(utterance_id, text, b"", now()))
        except SpeechError as error:
            apply(self._sink.speech_failed(utterance_id, error, now()))
        else:
            apply(self._sink.speech_finished(utterance_id, now()))

    def _units(self, text: str) -> list[tuple[str, str]]:
        """What is said at once, as it reads and as the engine is to take it."""
        if self._streaming is None:
            spoken = [(one, prepare(one)) for one in sentences(text)]
        elif is_ssml(text) and len(text.encode()) <= MAX_SSML_BYTES:
            spoken = [(" ".join(sentences(text)), text.strip())]
        else:
            spoken = [(one, without_markdown(one)) for one in sentences(text)]
        return [(one, words) for one, words in spoken if any(char.isalnum() for char in words)]

    async def _room(self) -> None:
        """Wait until the engine has little enough ahead."""
        while True:
            if self._sink.buffered_s() <= AHEAD_S:
                return
            # The buffer drains by the playout clock alone, so there is nothing to be woken by.
            await asyncio.sleep(WAIT_S)
