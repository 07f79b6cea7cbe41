"""Cloud engines with offline engines behind them: when the service fails, the call goes on.

After a failure that is the service's, the offline engine serves for a while before the service is
asked again, so that a service that is away costs its time-out once and not at every sentence. It
is logged when the service fails and when it is back, not for every sentence between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.base import (
    OnHeard,
    Recogniser,
    RecognitionStream,
    StreamingRecogniser,
    StreamingSynthesiser,
    Synthesiser,
)
from gateway.speech.text import prepare, sentences

THIS_TEXT = frozenset({"speech.refused", "speech.too_long", "speech.empty", "speech.not_supported"})
"""Failures over one text or voice: the next may go well."""
MAX_NOTED = 100

_log = structlog.get_logger()


class Outage:
    """Whether a service is worth asking, and the log of its failures."""

    def __init__(self, engine: str, need: str, cool_down_s: float) -> None:
        self._engine = engine
        self._need = need
        self._cool_down_s = cool_down_s
        self._until = 0.0
        self._down = False
        self._noted: set[tuple[str, str]] = set()

    @property
    def over(self) -> bool:
        """Whether the service may be asked."""
        return not self._down or asyncio.get_running_loop().time() >= self._until

    def failed(self, error: SpeechError, what: str, using: str) -> None:
        """The service failed over `what` (a voice or a model), and `using` serves instead."""
        if error.code in THIS_TEXT:
            note = (error.code, what)
            if note in self._noted or len(self._noted) >= MAX_NOTED:
                return
            self._noted.add(note)
        else:
            self._until = asyncio.get_running_loop().time() + self._cool_down_s
            if self._down:
                return
            self._down = True
        _log.warning(
            "speech.fallback",
            need=self._need,
            using=using,
            instead_of=self._engine,
            what=what,
            code=error.code,
            reason=error.message,
            hint=error.hint,
        )

    def served(self) -> None:
        """The service did its work."""
        if self._down:
            self._down = False
            _log.info("speech.back", need=self._need, engine=self._engine)


class BackedSynthesiser:
    """A streaming synthesiser that cannot fail where its backup does not."""

    def __init__(
        self, engine: StreamingSynthesiser, backup: Synthesiser, cool_down_s: float
    ) -> None:
        self.name = engine.name
        self._engine = engine
        self._backup = backup
        self._outage = Outage(engine.name, "tts", cool_down_s)

    def unsupported(self, voice: VoiceConfig) -> tuple[str, ...]:
        """What the first engine cannot honour."""
        return self._engine.unsupported(voice)

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one sentence at `rate_hz`. Raises SpeechError."""
        wanted = AudioFormat(Encoding.LINEAR16, rate_hz)
        return b"".join([pcm async for pcm in self.stream(text, voice, language, wanted)])

    async def stream(
        self, text: str, voice: VoiceConfig, language: str, audio_format: AudioFormat
    ) -> AsyncGenerator[Pcm, None]:
        """Speech as it comes; a text that broke off is spoken again, whole, by the backup."""
        error = None
        if self._outage.over:
            try:
                pieces = self._engine.stream(text, voice, language, audio_format)
                async with aclosing(pieces):
                    async for pcm in pieces:
                        yield pcm
                self._outage.served()
                return
            except SpeechError as failure:
                if failure.code == "speech.closed":
                    raise
                self._outage.failed(failure, voice.voice or language, self._backup.name)
                error = failure
        spoken = False
        for sentence in sentences(text):
            if words := prepare(sentence):
                yield await self._backup.synthesise(words, voice, language, audio_format.rate_hz)
                spoken = True
        if not spoken:
            raise error or SpeechError("speech.empty", "the offline voice cannot say this text")


class BackedRecogniser:
    """A streaming recogniser that cannot fail where its backup does not."""

    def __init__(self, engine: StreamingRecogniser, backup: Recogniser, cool_down_s: float) -> None:
        self.name = engine.name
        self._engine = engine
        self._backup = backup
        self._outage = Outage(engine.name, "stt", cool_down_s)

    def open(
        self, rate_hz: int, languages: tuple[str, ...], on_heard: OnHeard
    ) -> RecognitionStream:
        """A new stream. When it fails over words, `recognise` is to be asked for them."""
        stream = self._engine.open(rate_hz, languages, on_heard)
        return _BackedStream(stream, self, languages[0])

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one segment. Raises SpeechError."""
        if self._outage.over:
            try:
                words = await self._engine.recognise(pcm, rate_hz, language)
            except SpeechError as error:
                self.failed(error, language)
            else:
                self.served()
                return words
        return await self._backup.recognise(pcm, rate_hz, language)

    def failed(self, error: SpeechError, language: str) -> None:
        """The service failed: the backup serves for a while."""
        if error.code != "speech.closed":
            self._outage.failed(error, language, self._backup.name)

    def served(self) -> None:
        """The service did its work."""
        self._outage.served()


class _BackedStream:
    """A stream whose failures keep its recogniser from asking the same service again at once."""

    def __init__(self, stream: RecognitionStream, owner: BackedRecogniser, language: str) -> None:
        self._stream = stream
        self._owner = owner
        self._language = language
        self.feed = stream.feed

    async def words(self, start_s: float, end_s: float) -> str:
        """The stream's words. Raises its SpeechError."""
        try:
            words = await self._stream.words(start_s, end_s)
        except SpeechError as error:
            self._owner.failed(error, self._language)
            raise
        self._owner.served()
        return words

    def speak(self, language: str) -> None:
        """Expect this language from here on."""
        self._language = language
        self._stream.speak(language)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
