"""How calls of an app behave: its `audioProcessingConfig` under the operator's settings."""

from __future__ import annotations

from gateway.agent.app import App
from gateway.audio.formats import AudioFormat, Encoding
from gateway.audio.scenes import SOUNDS
from gateway.bidi import SESSION_START
from gateway.call.profile import AmbientSound, BargeIn, CallProfile, ProtectedKeys, VoiceConfig
from gateway.config import Settings
from gateway.errors import AppError
from gateway.runtime.audio import AudioTerms

RATE_MIN, RATE_MAX = 0.25, 2.0
GOOGLE_HZ = 16000
"""No higher rate is known to be taken by Google's service."""
END_GRACE_S = 0.5
"""A service behind the network may end its session before its last words have come."""
_NO_NOISE = "PREBUILT_AMBIENT_NOISE_UNSPECIFIED"


def call_profile(app: App, settings: Settings) -> CallProfile:
    """The profile of every call of `app`. Raises AppError naming the key at fault."""
    audio = app.audio_processing_config
    voices: dict[str, VoiceConfig] = {}
    for language, config in audio.synthesize_speech_configs.items():
        rate = config.speaking_rate or 1.0
        if not RATE_MIN <= rate <= RATE_MAX:
            raise AppError(
                "app.speaking_rate",
                f"speakingRate {rate:g} is outside [{RATE_MIN}, {RATE_MAX}]",
                where=f"app:audioProcessingConfig.synthesizeSpeechConfigs.{language}.speakingRate",
                hint="1.0 is normal speed; leave it out for the default.",
            )
        voices[language] = VoiceConfig(
            config.voice, rate, config.model, config.instruction, config.voice_sample_gcs_uri
        )
    call, runtime, google = settings.call, settings.runtime, settings.runtime.google
    inactivity_s = app.inactivity_s if call.inactivity_s is None else call.inactivity_s
    return CallProfile(
        language=app.language,
        voices=voices,
        variables=_variables(app, settings),
        language_variable=call.language_variable,
        languages=_other_languages(app),
        inactivity_s=inactivity_s or None,
        disable_barge_in=audio.barge_in_config.disable_barge_in,
        forbid_barge_in=app.channel_profile.disable_barge_in_control,
        barge_in_awareness=audio.barge_in_config.barge_in_awareness,
        disable_dtmf=app.channel_profile.disable_dtmf,
        audio_runtime=runtime.hears,
        noise_suppression=google.noise_suppression or app.channel_profile.noise_suppression_level,
        kickoff=google.kickoff if google.app else SESSION_START,
        first_words=google.initial_text,
        single_keys=bool(google.app),
        end_grace_s=END_GRACE_S if runtime.hears or google.app else 0.0,
        # A runtime that speaks mixes its background itself.
        ambience=None if runtime.hears else _ambience(app, call.ambience),
        lead_ms=call.lead_ms,
        barge_in=BargeIn(call.barge_in),
        barge_in_words=call.barge_in_words,
        echo_guard=call.echo_guard,
        echo_guard_windows=call.echo_guard_windows,
        back_channel={k: tuple(v) for k, v in call.back_channel.items()},
        resume_after_noise=call.resume_after_noise,
        resume_wait_s=call.resume_wait_s,
        fade_ms=call.fade_ms,
        keys_under_protection=ProtectedKeys(call.keys_under_protection),
        dtmf_finish_digit=call.dtmf_finish_digit,
        dtmf_timeout_s=call.dtmf_timeout_s,
        dtmf_max_digits=call.dtmf_max_digits,
        start_timeout_s=settings.runtime.start_timeout_s,
        turn_timeout_s=settings.runtime.turn_timeout_s,
        drain_s=call.drain_s,
        max_call_s=call.max_call_s,
        fallback_message=call.fallback_message,
        vad_start=call.vad_start,
        vad_stop=call.vad_stop,
        pause_s=call.pause_s,
        end_silence_s=call.end_silence_s,
        number_silence_s=max(call.number_silence_s, call.end_silence_s),
        faint_words=call.faint_words,
    )


def _variables(app: App, settings: Settings) -> frozenset[str] | None:
    google = settings.runtime.google
    if google.variables is not None:
        return frozenset(google.variables)
    if google.app and settings.app is None:
        return None
    return frozenset(app.variable_declarations)


def runtime_audio(settings: Settings) -> AudioTerms:
    """In what form an audio runtime takes and gives sound."""
    runtime = settings.runtime
    highest_hz = GOOGLE_HZ if runtime.google.app else None
    if runtime.audio == "line":
        return AudioTerms(None, runtime.audio_chunk_ms, highest_hz)
    encoding, _, rate = runtime.audio.partition("/")
    wanted = AudioFormat(Encoding(encoding), int(rate))
    return AudioTerms(wanted, runtime.audio_chunk_ms, highest_hz)


def _ambience(app: App, when: str) -> AmbientSound | None:
    """The app's ambient sound. Raises AppError for two sources or a name that is not built in."""
    config = app.audio_processing_config.ambient_sound_config
    if config is None or when == "off":
        return None
    where = "app:audioProcessingConfig.ambientSoundConfig"
    given = {
        "prebuiltAmbientSound": config.prebuilt_ambient_sound,
        "prebuiltAmbientNoise": config.prebuilt_ambient_noise.removeprefix(_NO_NOISE),
        "gcsUri": config.gcs_uri,
    }
    named = {key: value for key, value in given.items() if value}
    if not named:
        return None
    if len(named) > 1:
        raise AppError(
            "app.ambient_source",
            f"an ambient sound has one source, not {' and '.join(named)}",
            where=where,
            hint="keep one of them",
        )
    ((key, source),) = named.items()
    builtin = key != "gcsUri"
    if builtin and source not in SOUNDS:
        raise AppError(
            "app.ambient_name",
            f"there is no ambient sound {source!r}",
            where=f"{where}.{key}",
            hint=f"one of: {', '.join(SOUNDS)}",
        )
    return AmbientSound(source, builtin, config.volume_gain_db, whole_call=when == "call")


def _other_languages(app: App) -> tuple[str, ...]:
    settings = app.definition.language_settings
    if not settings.enable_multilingual_support:
        return ()
    return tuple(code for code in settings.supported_language_codes if code != app.language)
