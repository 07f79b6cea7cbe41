"""Google's voices over the wire: the real client against the published service on loopback."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.cloud.texttospeech_v1.types import cloud_tts

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.audio.resample import resample_clip
from gateway.call.profile import VoiceConfig
from gateway.config import SpeechSettings
from gateway.errors import ConfigError, SpeechError
from gateway.speech.google_tts import GoogleSynthesiser
from tests.speech.google_voices import GoogleVoices, voice_of

STREAMED = VoiceConfig("en-US-Chirp3-HD-Aoede")
WHOLE = VoiceConfig("en-US-Neural2-C")
TEXT = "Your balance is twelve pounds."
LINEAR_16K = AudioFormat(Encoding.LINEAR16, 16000)


@pytest.fixture
async def service() -> AsyncIterator[GoogleVoices]:
    service = GoogleVoices()
    await service.start()
    yield service
    await service.stop()


@asynccontextmanager
async def engine(
    service: GoogleVoices, speech: dict[str, Any] | None = None, **google: Any
) -> AsyncIterator[GoogleSynthesiser]:
    settings = SpeechSettings.model_validate(
        {
            **(speech or {}),
            "google": {"tts_endpoint": service.endpoint, "plaintext": True, **google},
        }
    )
    made = GoogleSynthesiser(settings)
    await made.start()
    try:
        yield made
    finally:
        await made.aclose()


async def spoken(
    made: GoogleSynthesiser,
    text: str = TEXT,
    voice: VoiceConfig = STREAMED,
    line: AudioFormat = MULAW_8K,
    language: str = "en-US",
) -> Pcm:
    return b"".join([pcm async for pcm in made.stream(text, voice, language, line)])


def original(line: AudioFormat, text: str = TEXT) -> bytes:
    """What the service sent, on the wire of the line."""
    return g711.encode(voice_of(text, line.rate_hz), line.encoding)


@pytest.mark.parametrize("line", [MULAW_8K, ALAW_8K, LINEAR_16K], ids=str)
@pytest.mark.parametrize("voice", [STREAMED, WHOLE], ids=["streamed", "whole"])
async def test_the_line_gets_what_the_service_made_to_the_byte(
    service: GoogleVoices, line: AudioFormat, voice: VoiceConfig
) -> None:
    async with engine(service) as made:
        pcm = await spoken(made, voice=voice, line=line)
    assert g711.encode(pcm, line.encoding) == original(line)
    assert (len(service.streams), len(service.whole)) == ((1, 0) if voice is STREAMED else (0, 1))


async def test_speech_is_there_before_the_service_has_made_all_of_it(
    service: GoogleVoices,
) -> None:
    service.gate = asyncio.Event()
    async with engine(service) as made:
        pieces = made.stream(TEXT, STREAMED, "en-US", MULAW_8K)
        async with aclosing(pieces):
            first = await anext(pieces)
            assert 0 < len(first) < len(voice_of(TEXT, 8000))
            service.gate.set()
            rest = b"".join([pcm async for pcm in pieces])
    assert g711.encode(first + rest, Encoding.MULAW) == original(MULAW_8K)


async def test_a_header_within_a_stream_never_plays(service: GoogleVoices) -> None:
    service.faults.append("header")
    async with engine(service) as made:
        assert g711.encode(await spoken(made), Encoding.MULAW) == original(MULAW_8K)


async def test_a_voice_that_does_not_stream_after_all_is_remembered(
    service: GoogleVoices,
) -> None:
    service.streaming_voices = re.compile("nothing streams")
    async with engine(service) as made:
        for text in ("One.", "Two."):
            pcm = await spoken(made, text)
            assert g711.encode(pcm, Encoding.MULAW) == original(MULAW_8K, text)
    assert (len(service.streams), len(service.whole)) == (1, 2)


async def test_ssml_goes_out_as_it_is_and_whole(service: GoogleVoices) -> None:
    ssml = '<speak>One <break time="1s"/> two.</speak>'
    async with engine(service) as made:
        assert await spoken(made, ssml) == g711.decode(original(MULAW_8K, ssml), Encoding.MULAW)
    (request,) = service.whole
    assert (request.input.ssml, request.input.text) == (ssml, "")


async def test_rate_model_and_instruction_reach_the_service(service: GoogleVoices) -> None:
    gemini = VoiceConfig(
        "en-GB-Chirp3-HD-Zephyr", 1.25, "gemini-3.1-flash-tts-preview", "Speak softly."
    )
    async with engine(service) as made:
        await spoken(made, voice=gemini, language="en-GB")
        await made.synthesise("<speak>Two</speak>", replace(WHOLE, speaking_rate=0.5), "en", 8000)
    config, given = service.streams[0][0].streaming_config, service.streams[0][1].input
    assert config.voice.name == "Zephyr"
    assert config.voice.model_name == "gemini-3.1-flash-tts-preview"
    assert config.voice.language_code == "en-GB"
    assert config.streaming_audio_config.speaking_rate == 1.25
    assert given.prompt == "Speak softly."
    assert service.whole[0].audio_config.speaking_rate == 0.5


async def test_a_voice_is_asked_for_in_its_own_language(service: GoogleVoices) -> None:
    async with engine(service) as made:
        await spoken(made, voice=VoiceConfig("en-US-Chirp3-HD-Kore"), language="en-GB")
        await spoken(made, voice=VoiceConfig(), language="de-DE")
    assert service.streams[0][0].streaming_config.voice.language_code == "en-US"
    assert service.whole[0].voice == cloud_tts.VoiceSelectionParams(language_code="de-DE")


async def test_what_the_engine_cannot_do_is_named_and_not_sent(service: GoogleVoices) -> None:
    voice = replace(STREAMED, instruction="Softly.", sample_uri="gs://b/me.wav")
    assert GoogleSynthesiser.unsupported(voice) == ("voiceSampleGcsUri", "instruction")
    assert GoogleSynthesiser.unsupported(STREAMED) == ()
    async with engine(service) as made:
        await spoken(made, voice=voice)
    assert service.streams[0][1].input.prompt == ""


@pytest.mark.parametrize("voice", [STREAMED, WHOLE], ids=["streamed", "whole"])
@pytest.mark.parametrize("fault", ["quota", "unavailable", "empty", "text", "silent"])
async def test_a_fault_is_followed_by_another_try(
    service: GoogleVoices, fault: str, voice: VoiceConfig
) -> None:
    service.faults.append(fault)
    async with engine(service, timeout_s=0.3) as made:
        assert g711.encode(await spoken(made, voice=voice), Encoding.MULAW) == original(MULAW_8K)
    assert service.requests == 2


@pytest.mark.parametrize("voice", [STREAMED, WHOLE], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("quota", "speech.quota"),
        ("unavailable", "speech.unavailable"),
        ("empty", "speech.empty"),
        ("text", "speech.bad_audio"),
        ("silent", "speech.timeout"),
    ],
)
async def test_tries_are_bounded(
    service: GoogleVoices, fault: str, code: str, voice: VoiceConfig
) -> None:
    service.faults.extend([fault] * 10)
    async with engine(service, timeout_s=0.2, attempts=2) as made:
        with pytest.raises(SpeechError) as raised:
            await spoken(made, voice=voice)
    assert raised.value.code == code
    assert TEXT not in str(raised.value)
    assert service.requests == 2


@pytest.mark.parametrize(
    ("fault", "code"), [("refused", "speech.refused"), ("denied", "speech.denied")]
)
async def test_what_another_try_cannot_mend_is_not_tried_again(
    service: GoogleVoices, fault: str, code: str
) -> None:
    service.faults.append(fault)
    async with engine(service) as made:
        with pytest.raises(SpeechError) as raised:
            await spoken(made, voice=WHOLE)
    assert raised.value.code == code
    assert raised.value.hint
    assert service.requests == 1


async def test_a_stream_that_breaks_off_is_followed_by_the_whole_sentence(
    service: GoogleVoices,
) -> None:
    service.faults.append("cut")
    async with engine(service) as made:
        pcm = await spoken(made)
        assert g711.encode(pcm, Encoding.MULAW).endswith(original(MULAW_8K))
        assert len(pcm) > 2 * len(original(MULAW_8K))
        # What is kept for the next call is the whole one alone.
        assert g711.encode(await spoken(made), Encoding.MULAW) == original(MULAW_8K)
    assert service.requests == 2


async def test_another_rate_than_asked_for_is_mended(service: GoogleVoices) -> None:
    service.faults.append("wrong_rate")
    async with engine(service) as made:
        pcm = await spoken(made, voice=WHOLE, line=AudioFormat(Encoding.LINEAR16, 8000))
    wanted = resample_clip(voice_of(TEXT, 24000), 24000, 8000)
    assert abs(len(pcm) - len(wanted)) < 320
    assert wanted[2000:4000] in pcm


async def test_a_repeated_phrase_is_made_once_also_for_calls_at_the_same_time(
    service: GoogleVoices,
) -> None:
    async with engine(service) as made:
        together = await asyncio.gather(*(spoken(made) for _ in range(5)))
        later = await spoken(made)
        assert service.requests == 1
        assert {*together, later} == {later}
        await spoken(made, voice=replace(STREAMED, speaking_rate=0.9))
        await spoken(made, line=ALAW_8K)
    assert service.requests == 3


async def test_a_call_that_hangs_up_does_not_take_the_phrase_from_another(
    service: GoogleVoices,
) -> None:
    service.gate = asyncio.Event()
    async with engine(service) as made:
        pieces = made.stream(TEXT, STREAMED, "en-US", MULAW_8K)
        await anext(pieces)
        other = asyncio.create_task(spoken(made))
        await pieces.aclose()
        service.gate.set()
        assert g711.encode(await other, Encoding.MULAW) == original(MULAW_8K)
    assert service.requests == 1


async def test_phrases_outlive_the_process_where_there_is_a_folder_for_them(
    service: GoogleVoices, tmp_path: Path
) -> None:
    folder = {"cache_folder": tmp_path / "phrases"}
    async with engine(service, folder) as made:
        first = await spoken(made)
    async with engine(service, folder) as made:
        assert await spoken(made) == first
    assert service.requests == 1


async def test_closing_ends_a_sentence_under_way(service: GoogleVoices) -> None:
    service.faults.append("silent")
    async with engine(service) as made:
        speech = asyncio.create_task(spoken(made))
        while not service.streams:
            await asyncio.sleep(0)
        await made.aclose()
        with pytest.raises(SpeechError) as raised:
            await speech
    assert raised.value.code == "speech.closed"


def test_speech_never_leaves_the_machine_in_the_clear() -> None:
    settings = SpeechSettings.model_validate(
        {"google": {"tts_endpoint": "speech.example.com:80", "plaintext": True}}
    )
    with pytest.raises(ConfigError) as raised:
        GoogleSynthesiser(settings)
    assert (raised.value.code, raised.value.where) == (
        "config.plaintext",
        "speech.google.tts_endpoint",
    )


async def test_without_credentials_the_start_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    made = GoogleSynthesiser(SpeechSettings())
    with pytest.raises(SpeechError) as raised:
        await made.start()
    assert raised.value.code == "speech.credentials"
    assert "GOOGLE_APPLICATION_CREDENTIALS" in (raised.value.hint or "")
