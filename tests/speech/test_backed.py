"""Cloud engines in a live process: when the service fails, the call goes on with offline ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, Encoding, Pcm
from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.errors import ConfigError, SpeechError
from gateway.speech import build, inline
from gateway.speech.backed import BackedRecogniser, BackedSynthesiser
from gateway.speech.base import SpeechServices, StreamingRecogniser, StreamingSynthesiser
from gateway.speech.google_stt import GoogleRecogniser
from gateway.speech.google_tts import GoogleSynthesiser
from gateway.speech.local import InlineRecogniser, InlineSynthesiser
from tests.speech.conftest import PLAN
from tests.speech.google_ears import RATE_HZ, GoogleEars, say
from tests.speech.google_voices import GoogleVoices, voice_of

VOICE = VoiceConfig("en-US-Chirp3-HD-Aoede")
TEXT = "I want to pay my bill."


@pytest.fixture
async def voices() -> AsyncIterator[GoogleVoices]:
    service = GoogleVoices()
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
async def ears() -> AsyncIterator[GoogleEars]:
    service = GoogleEars()
    await service.start()
    yield service
    await service.stop()


def settings(**google: Any) -> Settings:
    wanted = {"plaintext": True, "project": "p", "attempts": 1, **google}
    return Settings.model_validate({"speech": {"tts": "google", "stt": "google", "google": wanted}})


@pytest.fixture
async def synthesiser(voices: GoogleVoices) -> AsyncIterator[BackedSynthesiser]:
    google = GoogleSynthesiser(settings(tts_endpoint=voices.endpoint).speech)
    await google.start()
    yield BackedSynthesiser(google, InlineSynthesiser(PLAN, 1 << 20), cool_down_s=0.0)
    await google.aclose()


async def spoken(engine: StreamingSynthesiser, text: str = TEXT) -> Pcm:
    return b"".join([pcm async for pcm in engine.stream(text, VOICE, "en-US", MULAW_8K)])


def google_said(text: str) -> Pcm:
    return g711.decode(g711.encode(voice_of(text, 8000), Encoding.MULAW), Encoding.MULAW)


async def offline_said(text: str) -> Pcm:
    return await InlineSynthesiser(PLAN, 0).synthesise(text, VoiceConfig(), "en-US", 8000)


async def test_the_offline_voice_speaks_when_the_service_fails_and_it_is_logged_once(
    voices: GoogleVoices, synthesiser: BackedSynthesiser
) -> None:
    voices.faults.extend(["unavailable"] * 3)
    with capture_logs() as logs:
        for _ in range(3):
            assert await spoken(synthesiser) == await offline_said(TEXT)
        assert await spoken(synthesiser) == google_said(TEXT)
        voices.faults.append("quota")
        assert await spoken(synthesiser, "Two.") == await offline_said("Two.")
    assert [(log["event"], log["log_level"], log.get("code")) for log in logs] == [
        ("speech.fallback", "warning", "speech.unavailable"),
        ("speech.back", "info", None),
        ("speech.fallback", "warning", "speech.quota"),
    ]
    assert TEXT not in str(logs)


async def test_a_service_that_is_away_costs_its_time_out_once(voices: GoogleVoices) -> None:
    google = GoogleSynthesiser(settings(tts_endpoint=voices.endpoint, timeout_s=0.2).speech)
    await google.start()
    try:
        engine = BackedSynthesiser(google, InlineSynthesiser(PLAN, 1 << 20), cool_down_s=1000)
        voices.faults.append("silent")
        for text in ("One.", "Two.", "Three."):
            assert await spoken(engine, text) == await offline_said(text)
        assert voices.requests == 1
    finally:
        await google.aclose()


async def test_a_text_that_the_service_refuses_is_no_outage(
    voices: GoogleVoices, synthesiser: BackedSynthesiser
) -> None:
    voices.faults.extend(["refused"] * 4)
    with capture_logs() as logs:
        assert await spoken(synthesiser) == await offline_said(TEXT)
        assert await spoken(synthesiser) == await offline_said(TEXT)
        assert await spoken(synthesiser) == google_said(TEXT)
    assert [(log["event"], log["code"]) for log in logs] == [("speech.fallback", "speech.refused")]


async def test_a_sentence_that_breaks_off_is_said_again_by_the_offline_voice(
    voices: GoogleVoices, synthesiser: BackedSynthesiser
) -> None:
    voices.faults.append("cut")
    assert (await spoken(synthesiser)).endswith(await offline_said(TEXT))


async def test_the_offline_voice_is_given_the_words_without_their_markup(
    voices: GoogleVoices, synthesiser: BackedSynthesiser
) -> None:
    voices.faults.append("refused")
    ssml = "<speak>Hello. <break time='1s'/>Goodbye.</speak>"
    expected = await offline_said("Hello.") + await offline_said("Goodbye.")
    assert await spoken(synthesiser, ssml) == expected


async def test_what_no_voice_can_say_fails_with_the_services_own_error(
    voices: GoogleVoices, synthesiser: BackedSynthesiser
) -> None:
    voices.faults.append("quota")
    with pytest.raises(SpeechError) as raised:
        await spoken(synthesiser, "你好")
    assert raised.value.code == "speech.quota"


async def test_words_that_the_stream_has_lost_are_recognised_offline(ears: GoogleEars) -> None:
    speech = await offline_said(TEXT)
    google = GoogleRecogniser(settings(stt_endpoint=ears.endpoint).speech)
    await google.start()
    try:
        engine = BackedRecogniser(google, InlineRecogniser(PLAN), cool_down_s=1000)
        stream = engine.open(RATE_HZ, ("en-US",), lambda heard: None)
        ears.faults.extend(["unavailable"] * 10)
        stream.feed(speech)
        with capture_logs() as logs:
            with pytest.raises(SpeechError):
                await stream.words(0.0, len(speech) / 16000)
            words = await engine.recognise(speech, RATE_HZ, "en-US")
        assert "bill" in words
        assert ears.whole == [], "a service that has just failed is not asked again"
        assert [(log["event"], log["need"]) for log in logs] == [("speech.fallback", "stt")]
    finally:
        await google.aclose()


async def test_a_recogniser_that_is_back_is_used_again(ears: GoogleEars) -> None:
    google = GoogleRecogniser(settings(stt_endpoint=ears.endpoint).speech)
    await google.start()
    try:
        engine = BackedRecogniser(google, InlineRecogniser(PLAN), cool_down_s=0.0)
        ears.faults.append("quota")
        with capture_logs() as logs:
            assert await engine.recognise(bytes(1600), RATE_HZ, "en-US") == ""
            assert await engine.recognise(say(3), RATE_HZ, "en-US") == "w3"
        assert [log["event"] for log in logs] == ["speech.fallback", "speech.back"]
    finally:
        await google.aclose()


async def running(wanted: Settings) -> SpeechServices:
    services = build(wanted)
    await services.start()
    return services


async def test_a_live_process_has_both_and_leaves_nothing_behind(
    voices: GoogleVoices, ears: GoogleEars
) -> None:
    wanted = settings(tts_endpoint=voices.endpoint, stt_endpoint=ears.endpoint)
    services = await running(wanted)
    try:
        assert (services.synthesiser.name, services.recogniser.name) == ("google", "google")
        assert isinstance(services.synthesiser, StreamingSynthesiser)
        assert isinstance(services.recogniser, StreamingRecogniser)
        assert await spoken(services.synthesiser) == google_said(TEXT)
        assert await services.recogniser.recognise(say(8), RATE_HZ, "en-US") == "w8"
        voices.faults.append("quota")
        assert await spoken(services.synthesiser, "Two.") == await offline_said("Two.")
    finally:
        await services.aclose()


async def test_a_simulation_needs_no_cloud() -> None:
    services = inline(settings())
    assert (services.synthesiser.name, services.recogniser.name) == ("hibari", "moonshine")
    assert not isinstance(services.synthesiser, StreamingSynthesiser)


@pytest.mark.parametrize(("need", "module"), [("tts", "texttospeech_v1"), ("stt", "speech_v2")])
def test_a_cloud_engine_without_its_library_is_an_error(
    need: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.speech.google_client.has_module", lambda name: module not in name)
    with pytest.raises(ConfigError) as raised:
        build(Settings.model_validate({"speech": {need: "google"}}))
    assert (raised.value.code, raised.value.where) == ("config.speech_engine", f"speech.{need}")
    assert "voice-gateway[google]" in (raised.value.hint or "")
