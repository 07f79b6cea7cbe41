"""What is synthesised is understood after the telephone line, and always sounds the same."""

from __future__ import annotations

import pytest

from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.engines import MAX_TEXT_CHARS, EnginePlan, Engines, load_engines
from gateway.speech.text import prepare, sentences
from tests.speech.conftest import VOICE
from tests.speech.telephone import (
    level_dbfs,
    noise,
    over_the_line,
    peak_dbfs,
    silence,
    sounding,
    words,
)


def said_and_heard(engines: Engines, text: str, rate_hz: int = 8000) -> str:
    heard = []
    for sentence in sentences(text):
        pcm = engines.synthesise(prepare(sentence), VOICE, "en-US", rate_hz)
        line = over_the_line(pcm) if rate_hz == 8000 else pcm
        heard.append(engines.recognise(line, rate_hz, "en-US"))
    return " ".join(heard)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, I would like to book a table for two at seven tonight.",
        "My name is Sarah Connor.",
        "What is my balance?",
        "Yes, please.",
        "No.",
        "There is no power in my house.",
        "I want to speak to a person.",
    ],
)
def test_the_words_survive_synthesis_mulaw_and_recognition(engines: Engines, text: str) -> None:
    assert words(said_and_heard(engines, text)) == words(text)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
def test_speech_comes_at_the_rate_of_the_channel(engines: Engines, rate_hz: int) -> None:
    pcm = engines.synthesise("Thank you for calling.", VOICE, "en-US", rate_hz)
    assert 1.0 < len(pcm) / 2 / rate_hz < 2.2
    assert words(engines.recognise(pcm, rate_hz, "en-US")) == ["thank", "you", "for", "calling"]


def test_a_telephone_number_is_heard_digit_by_digit(engines: Engines) -> None:
    heard = said_and_heard(engines, "<speak>Call <b>617-555-0100</b>.</speak>")
    assert "".join(c for c in heard if c.isdigit()) == "6175550100"


@pytest.mark.parametrize("tts", ["hibari", "nanotts"])
def test_both_voices_are_equally_loud_and_start_at_once(
    tts: str, engines: Engines, nano: Engines
) -> None:
    chosen = engines if tts == "hibari" else nano
    for text in ("Please hold the line.", "Yes.", "Your next bill is due on the third of May."):
        pcm = chosen.synthesise(text, VOICE, "en-US", 8000)
        loud = sounding(pcm, 8000)
        assert -22.5 < level_dbfs(loud) < -18.5
        assert peak_dbfs(loud) <= -2.9
        start = sounding(pcm[: 2 * 8000 // 5], 8000)
        assert len(start) > 0, "no more than 200 ms pass before the voice is heard"
        assert len(pcm) % 2 == 0


def test_the_second_voice_is_understood(engines: Engines, nano: Engines) -> None:
    pcm = nano.synthesise("I would like to book a table.", VOICE, "en-US", 8000)
    assert "book a table" in engines.recognise(over_the_line(pcm), 8000, "en-US")


@pytest.mark.parametrize("tts", ["hibari", "nanotts"])
def test_speaking_rate_is_followed(tts: str, engines: Engines, nano: Engines) -> None:
    chosen = engines if tts == "hibari" else nano
    slow, normal, fast = (
        len(chosen.synthesise("Please hold the line.", VoiceConfig(speaking_rate=r), "en-US", 8000))
        for r in (0.5, 1.0, 2.0)
    )
    assert slow > 1.5 * normal
    assert fast < 0.75 * normal


def test_synthesis_is_the_same_to_the_bit_and_follows_the_seed(engines: Engines) -> None:
    again = load_engines(EnginePlan("hibari", "none", "energy", "silence"))
    other = load_engines(EnginePlan("hibari", "none", "energy", "silence", seed=7))
    made = [e.synthesise("Good morning.", VOICE, "en-US", 8000) for e in (engines, again, other)]
    assert made[0] == made[1]
    assert made[0] != made[2]


@pytest.mark.parametrize("text", ["", "...", "😀"])
def test_text_without_sound_is_an_error(engines: Engines, text: str) -> None:
    with pytest.raises(SpeechError) as raised:
        engines.synthesise(text, VOICE, "en-US", 8000)
    assert raised.value.code == "speech.empty"


def test_a_text_that_was_not_cut_is_refused(engines: Engines) -> None:
    with pytest.raises(SpeechError) as raised:
        engines.synthesise("a" * (MAX_TEXT_CHARS + 1), VOICE, "en-US", 8000)
    assert raised.value.code == "speech.too_long"


def test_two_thousand_characters_without_punctuation_come_in_short_pieces(engines: Engines) -> None:
    pieces = sentences("hello " * 334)
    assert len(pieces) >= 10
    pcm = engines.synthesise(prepare(pieces[0]), VOICE, "en-US", 8000)
    assert 5.0 < len(pcm) / 16000 < 25.0


@pytest.mark.parametrize(
    "clip",
    [
        b"",
        silence(0.05),
        silence(1.0),
        noise(0.3, -30),
        noise(1.0, -20),
        noise(3.0, -40),
    ],
    ids=["nothing", "50 ms", "silence", "short noise", "noise", "soft noise"],
)
def test_no_words_are_made_up_where_nothing_is_said(engines: Engines, clip: bytes) -> None:
    assert engines.recognise(clip, 8000, "en-US") == ""


def test_an_engine_that_breaks_is_reported_without_the_text(engines: Engines) -> None:
    class Broken:
        name = "broken"
        rate_hz = 8000

        def speak(self, text: str, voice: VoiceConfig, language: str) -> None:
            raise ValueError(text)

    broken = Engines(Broken(), engines.ear, engines.judge)  # type: ignore[arg-type]
    with pytest.raises(SpeechError) as raised:
        broken.synthesise("my secret", VOICE, "en-US", 8000)
    assert raised.value.code == "speech.engine"
    assert "secret" not in str(raised.value)
