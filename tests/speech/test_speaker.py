"""The voice of a call: streamed as it is made, counted as it is heard, broken off at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import pytest

from gateway.audio.formats import MULAW_8K, AudioFormat, Pcm
from gateway.call.events import Action, Synthesize
from gateway.call.profile import CallProfile, VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.base import StreamingSynthesiser
from gateway.speech.local import InlineSynthesiser
from gateway.speech.speaker import Speaker
from tests.speech.conftest import PLAN

PIECE = bytes(320)
SSML = '<speak>Hello <break time="1s"/> <sub alias="World Wide Web">WWW</sub>.</speak>'


class Voice:
    """Three pieces a sentence; each waits for its leave where `gate` is set."""

    name = "pieces"

    def __init__(self) -> None:
        self.said: list[tuple[str, VoiceConfig, str, AudioFormat]] = []
        self.gate: asyncio.Semaphore | None = None
        self.fails_after: int | None = None
        self.open = 0

    def unsupported(self, voice: VoiceConfig) -> tuple[str, ...]:
        return ()

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        raise AssertionError("a streaming engine is asked to stream")

    async def stream(
        self, text: str, voice: VoiceConfig, language: str, audio_format: AudioFormat
    ) -> AsyncGenerator[Pcm, None]:
        self.said.append((text, voice, language, audio_format))
        self.open += 1
        try:
            for number in range(3):
                if number == self.fails_after:
                    raise SpeechError("speech.unavailable", "gone")
                if self.gate is not None:
                    await self.gate.acquire()
                yield PIECE
        finally:
            self.open -= 1


class Sink:
    """Writes down what it is given."""

    output_format = MULAW_8K

    def __init__(self) -> None:
        self.given: list[tuple[object, ...]] = []

    def buffered_s(self) -> float:
        return 0.0

    def speech_audio(
        self, utterance_id: int, text: str, pcm: Pcm, now: float, more: bool = False
    ) -> list[Action]:
        self.given.append((utterance_id, text, len(pcm), more))
        return []

    def speech_finished(self, utterance_id: int, now: float) -> list[Action]:
        self.given.append((utterance_id, "finished"))
        return []

    def speech_failed(self, utterance_id: int, error: SpeechError, now: float) -> list[Action]:
        self.given.append((utterance_id, error.code))
        return []


@pytest.fixture
async def run() -> AsyncIterator[Callable[[Speaker], asyncio.Task[None]]]:
    tasks: list[asyncio.Task[None]] = []

    def start(speaker: Speaker) -> asyncio.Task[None]:
        work = speaker.run(lambda actions: None, lambda: 0.0)
        tasks.append(asyncio.get_running_loop().create_task(work))
        return tasks[-1]

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


Run = Callable[[Speaker], "asyncio.Task[None]"]
PROFILE = CallProfile(voices={"en": VoiceConfig("english"), "de": VoiceConfig("deutsch")})


async def reached(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_pieces_are_given_on_as_they_come(run: Run) -> None:
    voice, sink = Voice(), Sink()
    voice.gate = asyncio.Semaphore(2)
    speaker = Speaker(voice, PROFILE, sink)
    assert speaker.say(Synthesize(1, "Hello there.", "en-US"))
    task = run(speaker)
    await reached(lambda: len(sink.given) == 2)
    assert sink.given == [(1, "Hello there.", 320, True)] * 2
    voice.gate.release()
    await task
    assert sink.given[2:] == [
        (1, "Hello there.", 320, True),
        (1, "Hello there.", 0, False),
        (1, "finished"),
    ]


async def test_the_voice_follows_the_language_from_the_next_utterance_on(run: Run) -> None:
    voice = Voice()
    speaker = Speaker(voice, PROFILE, Sink())
    speaker.say(Synthesize(1, "Hello.", "en-US"))
    speaker.say(Synthesize(2, "Guten Tag.", "de-DE"))
    speaker.say(Synthesize(3, "Bonjour.", "fr-FR"))
    await run(speaker)
    assert [(said[1].voice, said[2]) for said in voice.said] == [
        ("english", "en-US"),
        ("deutsch", "de-DE"),
        ("", "fr-FR"),
    ]
    assert {said[3] for said in voice.said} == {MULAW_8K}


async def test_an_engine_that_reads_ssml_is_given_it_and_the_words_are_what_is_heard(
    run: Run,
) -> None:
    voice, sink = Voice(), Sink()
    speaker = Speaker(voice, PROFILE, sink)
    speaker.say(Synthesize(1, f" {SSML} ", "en-US"))
    await run(speaker)
    assert [said[0] for said in voice.said] == [SSML]
    assert sink.given[0] == (1, "Hello World Wide Web.", 320, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<speak>Broken & open", ["Broken & open"]),
        ("Just <b>bold</b>. And **more**.", ["Just bold.", "And more."]),
        ("<speak>" + "Long, long words. " * 400 + "</speak>", ["Long, long words."] * 400),
        ("Звонок 123 456.", ["Звонок 123 456."]),
        ("... !", []),
        ("<!DOCTYPE speak><speak>Hi.</speak>", ["Hi."]),
    ],
    ids=["not well-formed", "other markup", "too long", "another script", "no words", "declares"],
)
async def test_what_is_not_ssml_is_read_by_sentence_as_it_was_written(
    run: Run, text: str, said: list[str]
) -> None:
    voice = Voice()
    speaker = Speaker(voice, PROFILE, Sink())
    speaker.say(Synthesize(1, text, "en-US"))
    await run(speaker)
    assert [words for words, *_ in voice.said] == said


async def test_an_engine_without_streams_gets_prepared_sentences(run: Run) -> None:
    sink = Sink()
    engine = InlineSynthesiser(PLAN, 1 << 20)
    assert not isinstance(engine, StreamingSynthesiser)
    speaker = Speaker(engine, PROFILE, sink)
    speaker.say(Synthesize(1, SSML, "en-US"))
    await run(speaker)
    assert [given[1] for given in sink.given] == ["Hello", "World Wide Web.", "finished"]
    assert all(given[3] is False for given in sink.given[:2])


async def test_a_cancelled_utterance_holds_nothing_up(run: Run) -> None:
    voice, sink = Voice(), Sink()
    voice.gate = asyncio.Semaphore(1)
    speaker = Speaker(voice, PROFILE, sink)
    for number in (1, 2, 3):
        speaker.say(Synthesize(number, "Hello there.", "en-US"))
    task = run(speaker)
    await reached(lambda: len(sink.given) == 1)
    speaker.cancel(1)
    speaker.cancel(2)
    for _ in range(3):
        voice.gate.release()
    await task
    assert [given[0] for given in sink.given] == [1, 3, 3, 3, 3, 3]
    assert sink.given[-1] == (3, "finished")
    assert voice.open == 0


async def test_the_end_of_the_call_ends_the_sentence(run: Run) -> None:
    voice, sink = Voice(), Sink()
    voice.gate = asyncio.Semaphore(1)
    speaker = Speaker(voice, PROFILE, sink)
    speaker.say(Synthesize(1, "Hello there.", "en-US"))
    task = run(speaker)
    await reached(lambda: len(sink.given) == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert voice.open == 0
    assert len(sink.given) == 1
    assert len(asyncio.all_tasks()) == 1


async def test_a_failure_ends_the_utterance_and_not_the_next(run: Run) -> None:
    voice, sink = Voice(), Sink()
    voice.fails_after = 1
    speaker = Speaker(voice, PROFILE, sink)
    speaker.say(Synthesize(1, "One. Two.", "en-US"))
    await run(speaker)
    assert sink.given == [(1, "One.", 320, True), (1, "speech.unavailable")]
    voice.fails_after = None
    assert speaker.say(Synthesize(2, "Three.", "en-US"))
    await run(speaker)
    assert sink.given[-1] == (2, "finished")
