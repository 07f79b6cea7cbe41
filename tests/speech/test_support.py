"""What an engine does not have is said by its path in the app."""

from __future__ import annotations

from gateway.call.profile import VoiceConfig
from gateway.config import SpeechSettings
from gateway.speech.google_tts import GoogleSynthesiser
from gateway.speech.local import InlineSynthesiser
from gateway.speech.support import unsupported
from tests.speech.conftest import PLAN

PATH = "app:audioProcessingConfig.synthesizeSpeechConfigs."
CHIRP = "en-US-Chirp3-HD-Aoede"
VOICES = {
    "en-US": VoiceConfig(CHIRP, 1.5, sample_uri="gs://b/me.wav"),
    "de": VoiceConfig(CHIRP, model="gemini-3.1-flash-tts-preview", instruction="Leise."),
    "fr": VoiceConfig(CHIRP, instruction="Doucement."),
    "it": VoiceConfig(CHIRP),
}


def test_an_offline_engine_has_no_models_instructions_or_cloned_voices() -> None:
    found = unsupported(InlineSynthesiser(PLAN, 0), VOICES)
    assert {(error.code, error.where) for error in found} == {
        ("speech.not_supported", f"{PATH}en-US.voiceSampleGcsUri"),
        ("speech.not_supported", f"{PATH}de.model"),
        ("speech.not_supported", f"{PATH}de.instruction"),
        ("speech.not_supported", f"{PATH}fr.instruction"),
    }
    assert all("hibari" in error.message and error.hint for error in found)


def test_googles_voices_lack_clones_from_a_sample_and_instructions_without_their_model() -> None:
    found = unsupported(GoogleSynthesiser(SpeechSettings()), VOICES)
    assert {error.where for error in found} == {
        f"{PATH}en-US.voiceSampleGcsUri",
        f"{PATH}fr.instruction",
    }
