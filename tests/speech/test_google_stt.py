"""Google's recogniser over the wire: the real client against the published service on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.audio.formats import Pcm
from gateway.config import SpeechSettings
from gateway.errors import SpeechError
from gateway.speech.base import Heard
from gateway.speech.google_stream import KEEP_S, GoogleStream
from gateway.speech.google_stt import GoogleRecogniser
from tests.speech.google_ears import RATE_HZ, GoogleEars, quiet, say

PIECE_BYTES = 1600


@pytest.fixture
async def service() -> AsyncIterator[GoogleEars]:
    service = GoogleEars()
    await service.start()
    yield service
    await service.stop()


@asynccontextmanager
async def recogniser(service: GoogleEars, **google: Any) -> AsyncIterator[GoogleRecogniser]:
    wanted = {"stt_endpoint": service.endpoint, "plaintext": True, "project": "p", **google}
    made = GoogleRecogniser(SpeechSettings.model_validate({"google": wanted}))
    await made.start()
    try:
        yield made
    finally:
        await made.aclose()


class Caller:
    """One call: feeds audio as fast as the service takes it, and keeps what it heard."""

    def __init__(
        self,
        made: GoogleRecogniser,
        service: GoogleEars,
        languages: tuple[str, ...] = ("en-US",),
    ) -> None:
        self._service = service
        self.heard: list[Heard] = []
        self.stream: GoogleStream = made.open(RATE_HZ, languages, self.heard.append)
        self.position_s = 0.0

    async def say(self, pcm: Pcm) -> None:
        for at in range(0, len(pcm), PIECE_BYTES):
            taken = self._service.pieces
            self.stream.feed(pcm[at : at + PIECE_BYTES])
            if len(pcm) - at >= PIECE_BYTES:
                await self.until(
                    lambda n=taken: self._service.pieces > n or not self.stream.connected
                )
        self.position_s += len(pcm) / 2 / RATE_HZ

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0)

    async def words(self, start_s: float = 0.0) -> list[str]:
        """All words up to now."""
        return (await self.stream.words(start_s, self.position_s)).split()


def names(*values: int) -> list[str]:
    return [f"w{value}" for value in values]


async def test_at_a_pause_the_service_says_its_last_word(service: GoogleEars) -> None:
    async with recogniser(service, location="eu", recognizer="mine", model="chirp_2") as made:
        caller = Caller(made, service, ("de-DE",))
        await caller.say(quiet(0.3) + say(5, 6))
        assert await caller.words() == names(5, 6)
    (stream,) = service.streams
    assert stream.ended
    assert stream.request.recognizer == "projects/p/locations/eu/recognizers/mine"
    assert stream.request.streaming_config.streaming_features.interim_results
    assert (stream.config.model, stream.languages) == ("chirp_2", ["de-DE"])


async def test_interim_words_come_while_the_caller_speaks(service: GoogleEars) -> None:
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(quiet(1.0) + say(5))
        await caller.until(lambda: bool(caller.heard))
        assert not service.streams[0].ended
        await caller.say(say(6) + quiet(0.6))
        await caller.until(lambda: caller.heard[-1].final)
    assert [(h.text, h.final) for h in caller.heard] == [
        ("w5", False),
        ("w5 w6", False),
        ("w5 w6", True),
    ]
    assert 1.0 < caller.heard[0].end_s <= 1.3 + 1e-6


async def test_a_sentence_that_goes_on_after_a_pause_is_asked_for_again(
    service: GoogleEars,
) -> None:
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(say(1, 2))
        assert await caller.words() == names(1, 2)
        await caller.say(say(3, 4))
        assert await caller.words() == names(1, 2, 3, 4)
        start_s = caller.position_s
        await caller.say(say(5))
        assert await caller.words(start_s) == names(5)
        assert await caller.words(start_s) == names(5), "asked twice"


@pytest.mark.parametrize("times", [True, False], ids=["timed", "untimed"])
async def test_words_of_another_stretch_are_not_counted(service: GoogleEars, times: bool) -> None:
    service.word_times = times
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(say(1, 2) + quiet(0.8))
        start_s = caller.position_s - 0.2
        await caller.say(say(3))
        assert await caller.words(start_s) == names(3)
    assert made.word_times is times


async def test_no_words_are_no_error(service: GoogleEars) -> None:
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(quiet(1.0))
        assert await caller.words() == []
        assert caller.heard == []


def talk(count: int) -> tuple[Pcm, list[str]]:
    """Words in groups of four."""
    pcm, said = b"", []
    for first in range(1, count, 4):
        group = range(first, first + 4)
        pcm += say(*group) + quiet(0.5)
        said += names(*group)
    return pcm, said


async def test_a_stream_is_replaced_before_the_limit_and_no_word_is_lost(
    service: GoogleEars,
) -> None:
    service.limit_s = 9.0
    pcm, said = talk(40)
    async with recogniser(service, stream_s=5.0) as made:
        caller = Caller(made, service)
        await caller.say(pcm)
        assert await caller.words() == said
    assert len(service.streams) >= 5
    assert service.limits_met == 0


async def test_a_limit_that_was_met_after_all_loses_no_word(service: GoogleEars) -> None:
    service.limit_s = 7.0
    pcm, said = talk(40)
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(pcm)
        assert await caller.words() == said
    assert service.limits_met >= 3


@pytest.mark.parametrize("after_s", [0.25, 1.05, 1.3, 2.2, 3.1])
async def test_a_stream_that_breaks_off_loses_no_word(service: GoogleEars, after_s: float) -> None:
    service.faults.append(after_s)
    pcm, said = talk(8)
    async with recogniser(service) as made:
        caller = Caller(made, service)
        await caller.say(pcm)
        assert await caller.words() == said
    assert len(service.streams) == 2


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("quota", "speech.quota"),
        ("unavailable", "speech.unavailable"),
        ("denied", "speech.denied"),
        ("silent", "speech.timeout"),
    ],
)
async def test_a_service_that_fails_says_so_in_time(
    service: GoogleEars, fault: str, code: str
) -> None:
    service.faults.extend([fault] * 100)
    async with recogniser(service, timeout_s=0.3) as made:
        caller = Caller(made, service)
        caller.stream.feed(quiet(0.02))
        if fault != "silent":
            await caller.until(lambda: not caller.stream.connected)
        caller.stream.feed(say(1, 2, 3))
        caller.position_s = 1.52
        with pytest.raises(SpeechError) as raised:
            await caller.words()
    assert raised.value.code == code


async def test_a_service_that_is_away_is_not_asked_all_the_time(service: GoogleEars) -> None:
    service.faults.extend(["unavailable"] * 1000)
    async with recogniser(service, cool_down_s=100) as made:
        caller = Caller(made, service)
        async with asyncio.timeout(20):
            while len(service.streams) < 4:
                caller.stream.feed(quiet(0.02))
                await asyncio.sleep(0.001)
        await caller.until(lambda: not caller.stream.connected)
        for _ in range(500):
            caller.stream.feed(quiet(0.02))
            await asyncio.sleep(0)
        assert len(service.streams) == 4


async def test_a_service_that_is_back_hears_again(service: GoogleEars) -> None:
    service.faults.extend(["unavailable"] * 2)
    async with recogniser(service) as made:
        caller = Caller(made, service)
        async with asyncio.timeout(20):
            while len(service.streams) < 3:
                caller.stream.feed(quiet(0.02))
                caller.position_s += 0.02
                await asyncio.sleep(0.001)
        start_s = caller.position_s
        await caller.say(say(7))
        assert await caller.words(start_s) == names(7)


async def test_audio_that_the_service_does_not_take_is_dropped_and_said_to_be(
    service: GoogleEars,
) -> None:
    service.faults.append("deaf")
    async with recogniser(service) as made:
        caller = Caller(made, service)
        caller.stream.feed(quiet(0.1))
        await caller.until(lambda: len(service.streams) == 1)
        caller.position_s = 0.1
        async with asyncio.timeout(20):
            while len(service.streams) == 1:
                caller.stream.feed(say(9, word_s=0.8))
                caller.position_s += 1.0
                assert caller.stream.behind_s <= KEEP_S + 1
                await asyncio.sleep(0.001)
        assert caller.position_s > KEEP_S
        with pytest.raises(SpeechError) as raised:
            await caller.words()
        assert raised.value.code == "speech.behind"
        start_s = caller.position_s
        await caller.say(say(7))
        assert await caller.words(start_s) == names(7)


async def test_another_language_is_heard_from_there_on(service: GoogleEars) -> None:
    service.language = "de-de"
    async with recogniser(service) as made:
        caller = Caller(made, service, ("en-US", "de-DE", "fr-FR", "it-IT"))
        await caller.say(say(1))
        caller.stream.speak("en-US")
        await caller.say(say(2))
        caller.stream.speak("de-DE")
        await caller.say(say(3))
        assert await caller.words() == names(1, 2, 3)
        assert caller.heard[-1].language == "de-de"
    assert [stream.languages for stream in service.streams] == [
        ["en-US", "de-DE", "fr-FR"],
        ["de-DE", "en-US", "fr-FR"],
    ]


async def test_a_closed_stream_tells_nothing_more(service: GoogleEars) -> None:
    async with recogniser(service) as made:
        caller = Caller(made, service)
        caller.stream.feed(say(1))
        await caller.stream.aclose()
        await caller.stream.aclose()
        caller.stream.feed(say(2))
        with pytest.raises(SpeechError) as raised:
            await caller.words()
        assert raised.value.code == "speech.closed"
        assert caller.heard == []


async def test_a_segment_alone_is_recognised_at_once(service: GoogleEars) -> None:
    service.faults.append("quota")
    async with recogniser(service) as made:
        assert await made.recognise(say(4, 5), RATE_HZ, "en-US") == "w4 w5"
        assert await made.recognise(quiet(1), RATE_HZ, "en-US") == ""
        service.faults.extend(["unavailable"] * 2)
        with pytest.raises(SpeechError) as raised:
            await made.recognise(say(4), RATE_HZ, "en-US")
    assert raised.value.code == "speech.unavailable"
    assert len(service.whole) == 5


async def test_without_a_project_the_start_says_what_to_set(service: GoogleEars) -> None:
    with pytest.raises(SpeechError) as raised:
        async with recogniser(service, project=""):
            pass
    assert raised.value.code == "speech.project"
    assert raised.value.where == "speech.google.project"
