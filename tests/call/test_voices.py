"""Rules of a call: Voices."""

from __future__ import annotations

from gateway.call.profile import VoiceConfig
from gateway.call.voices import DEFAULT_VOICE, voice_for

GB, EN, DE = VoiceConfig("gb"), VoiceConfig("en"), VoiceConfig("de")
VOICES = {"en-GB": GB, "EN": EN, "de_de": DE}


def test_exact_code_then_root_language_then_default() -> None:
    expected = {
        "en-GB": GB,
        "EN-gb": GB,
        "en_gb": GB,
        "en-US": EN,
        "en": EN,
        "de-DE": DE,
        "de": DEFAULT_VOICE,
        "fr-FR": DEFAULT_VOICE,
        "": DEFAULT_VOICE,
    }
    assert {language: voice_for(VOICES, language) for language in expected} == expected


def test_no_voices_at_all_is_legal() -> None:
    assert voice_for({}, "en-US") is DEFAULT_VOICE
