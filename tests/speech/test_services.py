"""Live and simulated services are the same engines: same sound, same words, same verdicts."""

from __future__ import annotations

import asyncio
import threading

import psutil
import pytest
from structlog.testing import capture_logs

from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.errors import SpeechError
from gateway.speech import build, inline
from gateway.speech.base import SpeechServices
from tests.speech.conftest import VOICE
from tests.speech.telephone import over_the_line, words

TEXT = "I want to pay my bill."


async def say_and_hear(services: SpeechServices) -> tuple[bytes, str, bool]:
    pcm = await services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000)
    line = over_the_line(pcm)
    return (
        pcm,
        await services.recogniser.recognise(line, 8000, "en-US"),
        await services.turn_detector.complete(line, 8000),
    )


async def test_live_and_simulated_services_agree_to_the_bit() -> None:
    live, simulated = build(Settings()), inline(Settings())
    threads = threading.active_count()
    await live.start()
    await simulated.start()
    try:
        alive = await say_and_hear(live)
        assert alive == await say_and_hear(simulated)
        assert words(alive[1]) == words(TEXT)
        assert alive[2] is True
    finally:
        await live.aclose()
        await live.aclose()
        await simulated.aclose()
    assert psutil.Process().children() == []
    assert threading.active_count() == threads


SMALL = Settings.model_validate(
    {"speech": {"tts": "nanotts", "stt": "none", "vad": "energy", "turn": "silence"}}
)


async def test_a_sentence_that_many_calls_want_is_made_once() -> None:
    services = build(SMALL)
    await services.start()
    try:
        together = await asyncio.gather(
            *(services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000) for _ in range(20))
        )
        later = await services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000)
        assert all(pcm is later for pcm in together)
        slower = await services.synthesiser.synthesise(
            TEXT, VoiceConfig(speaking_rate=0.5), "en-US", 8000
        )
        assert len(slower) > len(later)
    finally:
        await services.aclose()


async def test_a_call_that_hangs_up_does_not_take_the_sentence_from_another() -> None:
    services = build(SMALL)
    await services.start()
    try:
        first = asyncio.create_task(services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000))
        second = asyncio.create_task(services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000))
        await asyncio.sleep(0)
        first.cancel()
        assert len(await second) > 8000
    finally:
        await services.aclose()


async def test_closing_ends_a_synthesis_under_way() -> None:
    services = build(SMALL)
    await services.start()
    speech = asyncio.create_task(
        services.synthesiser.synthesise("Hello. " * 100, VOICE, "en-US", 8000)
    )
    await asyncio.sleep(0)
    await services.aclose()
    with pytest.raises(SpeechError) as raised:
        await speech
    assert raised.value.code == "speech.closed"


async def test_a_voice_that_the_engine_does_not_have_is_noted_once() -> None:
    services = build(SMALL)
    await services.start()
    try:
        with capture_logs() as logs:
            for text in ("One.", "Two."):
                await services.synthesiser.synthesise(
                    text, VoiceConfig(voice="en-US-Chirp3-HD-Aoede"), "en-US", 8000
                )
        assert [log["event"] for log in logs] == ["speech.voice_ignored"]
        assert logs[0]["log_level"] == "debug"
    finally:
        await services.aclose()


async def test_a_simulation_never_leaves_its_thread() -> None:
    services = inline(Settings())
    await services.start()
    threads = threading.active_count()
    pcm = await services.synthesiser.synthesise(TEXT, VOICE, "en-US", 8000)
    seen: list[float] = []
    stream = services.voice_activity.open(lambda probability, at: seen.append(probability))
    stream.feed(pcm)
    assert len(seen) == len(pcm) // 512, "all is reported before feed returns"
    assert threading.active_count() == threads
    await services.aclose()
