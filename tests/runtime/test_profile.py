"""What an app says about voice, as the profile of its calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.agent.app import App
from gateway.agent.app.models import duration_s
from gateway.agent.app.read import read_files
from gateway.agent.prompt import instructions
from gateway.audio.formats import AudioFormat, Encoding
from gateway.call.profile import AmbientSound, BargeIn, CallProfile, ProtectedKeys, VoiceConfig
from gateway.call.voices import DEFAULT_VOICE, voice_for
from gateway.config import Settings, load
from gateway.errors import AppError
from gateway.runtime.audio import AudioTerms
from gateway.runtime.profile import call_profile, runtime_audio
from tests.agent.app.memory import MemoryFiles


def app(audio: dict[str, Any], **more: Any) -> App:
    definition = {
        "displayName": "X",
        "rootAgent": "Main",
        "audioProcessingConfig": audio,
        **more,
    }
    files = {"app.json": json.dumps(definition), "agents/Main/Main.yaml": "displayName: Main\n"}
    return read_files(MemoryFiles(files))


def profile(audio: dict[str, Any], settings: Settings | None = None, **more: Any) -> CallProfile:
    return call_profile(app(audio, **more), settings or Settings())


def test_every_field_of_a_voice_is_taken_over() -> None:
    entry = {
        "voice": "en-GB-Chirp3-HD-Zephyr",
        "speakingRate": 1.25,
        "model": "gemini-3.1-flash-tts-preview",
        "instruction": "Softly.",
        "voiceSampleGcsUri": "gs://b/me.wav",
    }
    voices = profile({"synthesizeSpeechConfigs": {"en-GB": entry}}).voices
    assert voices["en-GB"] == VoiceConfig(*entry.values())  # type: ignore[arg-type]


def test_keys_are_found_by_case_root_and_default() -> None:
    entries = {"en-us": {"voice": "us"}, "EN": {"voice": "root"}, "de-DE": {}}
    voices = profile({"synthesizeSpeechConfigs": entries}).voices
    found = {code: voice_for(voices, code).voice for code in ("en-US", "en-gb", "de-de", "de")}
    assert found == {"en-US": "us", "en-gb": "root", "de-de": "", "de": ""}
    assert voice_for(voices, "de") is DEFAULT_VOICE


@pytest.mark.parametrize("rate", [0.25, 1.0, 2.0])
def test_speaking_rates_in_range_are_taken(rate: float) -> None:
    voices = profile({"synthesizeSpeechConfigs": {"en": {"speakingRate": rate}}}).voices
    assert voices["en"].speaking_rate == rate


@pytest.mark.parametrize("entry", [{}, {"speakingRate": 0}, {"speakingRate": None}])
def test_no_speaking_rate_is_normal_speed(entry: dict[str, Any]) -> None:
    assert profile({"synthesizeSpeechConfigs": {"en": entry}}).voices["en"].speaking_rate == 1.0


@pytest.mark.parametrize("rate", [0.1, 0.2499, 2.01, -1, 100, "fast"])
def test_a_speaking_rate_out_of_range_names_its_key(rate: object) -> None:
    with pytest.raises(AppError) as raised:
        profile({"synthesizeSpeechConfigs": {"en-US": {"speakingRate": rate}}})
    assert "audioProcessingConfig.synthesizeSpeechConfigs.en-US.speakingRate" in (
        raised.value.where or ""
    )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("8s", 8.0),
        ("0.5s", 0.5),
        ("2.000s", 2.0),
        ("300s", 300.0),
        ("1.000000001s", 1.000000001),
        ("8", 8.0),
        (" 8 s ", 8.0),
        (".5s", 0.5),
        (8, 8.0),
        (7.5, 7.5),
        ({"seconds": 8}, 8.0),
        ({"seconds": "8", "nanos": 500_000_000}, 8.5),
        ({"nanos": 500_000_000}, 0.5),
        ("31536000s", 31536000.0),
    ],
)
def test_every_form_of_the_inactivity_timeout(value: object, seconds: float) -> None:
    assert profile({"inactivityTimeout": value}).inactivity_s == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("audio", [{}, {"inactivityTimeout": None}, {"inactivityTimeout": ""}])
def test_without_an_inactivity_timeout_there_is_never_a_tick(audio: dict[str, Any]) -> None:
    assert profile(audio).inactivity_s is None


@pytest.mark.parametrize("value", ["0s", 0, {"seconds": 0}])
def test_no_time_at_all_is_never_as_well(value: object) -> None:
    assert profile({"inactivityTimeout": value}).inactivity_s is None


@pytest.mark.parametrize(
    "value", ["soon", "8m", "-8s", "1e3s", "nan", "8ss", {"minutes": 1}, {"seconds": "x"}, "1_0s"]
)
def test_what_is_no_duration_names_its_key(value: object) -> None:
    with pytest.raises(AppError) as raised:
        profile({"inactivityTimeout": value})
    assert raised.value.code == "app.duration"
    assert raised.value.where == "app:audioProcessingConfig.inactivityTimeout"


def test_true_is_no_duration() -> None:
    with pytest.raises(AppError):
        duration_s(True, "here")


def test_the_operator_may_set_the_timeout() -> None:
    settings = Settings.model_validate({"call": {"inactivity_s": 5}})
    assert profile({"inactivityTimeout": "8s"}, settings).inactivity_s == 5


def test_a_multilingual_app_lets_callers_change_the_language() -> None:
    languages = {
        "defaultLanguageCode": "en-US",
        "supportedLanguageCodes": ["en-US", "de-DE", "fr-FR"],
    }
    assert profile({}, languageSettings=languages).languages == ()
    languages["enableMultilingualSupport"] = True  # type: ignore[assignment]
    assert profile({}, languageSettings=languages).languages == ("de-DE", "fr-FR")


# ---- ambient sound, channel profile, the operator's settings


@pytest.mark.parametrize(
    ("config", "source", "builtin"),
    [
        ({"prebuiltAmbientSound": "coffee_shop"}, "coffee_shop", True),
        ({"prebuiltAmbientNoise": "OUTDOOR"}, "OUTDOOR", True),
        ({"gcsUri": "gs://b/office.wav"}, "gs://b/office.wav", False),
    ],
)
def test_an_ambient_sound_has_a_name_or_a_file(
    config: dict[str, Any], source: str, builtin: bool
) -> None:
    sound = profile({"ambientSoundConfig": {**config, "volumeGainDb": -3.5}}).ambience
    assert sound == AmbientSound(source, builtin, -3.5, whole_call=True)


@pytest.mark.parametrize(
    "config",
    [{}, {"volumeGainDb": 3}, {"prebuiltAmbientNoise": "PREBUILT_AMBIENT_NOISE_UNSPECIFIED"}, None],
)
def test_without_a_source_there_is_none(config: dict[str, Any] | None) -> None:
    assert profile({"ambientSoundConfig": config}).ambience is None


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"prebuiltAmbientSound": "jungle"}, "app.ambient_name"),
        ({"prebuiltAmbientNoise": "OUTDOORS"}, "app.ambient_name"),
        ({"prebuiltAmbientSound": "hum", "gcsUri": "gs://b/x.wav"}, "app.ambient_source"),
    ],
)
def test_a_wrong_ambient_sound_is_named(config: dict[str, Any], code: str) -> None:
    with pytest.raises(AppError) as caught:
        profile({"ambientSoundConfig": config})
    assert caught.value.code == code
    assert caught.value.where is not None
    assert caught.value.where.startswith("app:audioProcessingConfig.ambientSoundConfig")


@pytest.mark.parametrize(("when", "whole"), [("call", True), ("speech", False), ("off", None)])
def test_a_setting_says_when_it_sounds(when: str, whole: bool | None) -> None:
    settings = load(flags=[f"call.ambience={json.dumps(when)}"])
    sound = profile({"ambientSoundConfig": {"prebuiltAmbientSound": "hum"}}, settings).ambience
    assert (sound.whole_call if sound is not None else None) is whole


def test_the_channel_profile_and_the_app_forbid_each_in_its_own_rank() -> None:
    made = profile(
        {"bargeInConfig": {"disableBargeIn": True}},
        defaultChannelProfile={
            "disableBargeInControl": True,
            "disableDtmf": True,
            "noiseSuppressionLevel": "high",
        },
    )
    assert made.disable_barge_in
    assert made.forbid_barge_in
    assert made.disable_dtmf
    assert made.noise_suppression == "high"


def test_the_persona_is_told_to_the_model() -> None:
    concise = app({}, defaultChannelProfile={"personaProperty": {"persona": "CONCISE"}})
    chatty = app({}, defaultChannelProfile={"personaProperty": {"persona": "CHATTY"}})
    assert "short" in instructions(concise, concise.root_agent)
    assert "warmly" in instructions(chatty, chatty.root_agent)
    assert instructions(app({}), app({}).root_agent) == ""


def test_the_operators_voice_settings_reach_the_call() -> None:
    made = profile(
        {},
        load(
            flags=[
                "call.barge_in=words",
                "call.barge_in_words=2",
                "call.back_channel={en: [sure thing]}",
                "call.resume_after_noise=true",
                "call.keys_under_protection=keep",
                "call.number_silence_s=0.2",
                "call.fade_ms=20",
            ]
        ),
    )
    assert made.barge_in is BargeIn.WORDS
    assert made.barge_in_words == 2
    assert made.back_channel == {"en": ("sure thing",)}
    assert made.resume_after_noise
    assert made.keys_under_protection is ProtectedKeys.KEEP
    assert made.number_silence_s == made.end_silence_s
    assert made.fade_ms == 20


def test_a_runtime_that_speaks_brings_its_own_background() -> None:
    settings = load(flags=["runtime.modality=audio", "runtime.audio=LINEAR16/16000"])
    made = profile({"ambientSoundConfig": {"prebuiltAmbientSound": "hum"}}, settings)
    assert made.audio_runtime
    assert made.ambience is None
    assert runtime_audio(settings) == AudioTerms(AudioFormat(Encoding.LINEAR16, 16000), 60)
    assert runtime_audio(Settings()) == AudioTerms()
