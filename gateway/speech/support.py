"""What an app wants of its voices and the engine lacks: said at the start, not in a call."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.base import StreamingSynthesiser, Synthesiser

_HINTS = {
    "voiceSampleGcsUri": "name a voice instead; cloned voices need Google's own runtime",
    "instruction": "it needs speech.tts: google, and a model that takes instructions",
    "model": "it needs speech.tts: google",
}


def unsupported(synthesiser: Synthesiser, voices: Mapping[str, VoiceConfig]) -> list[SpeechError]:
    """A speech.not_supported for each field that changes nothing, with its path in the app.

    Offline engines have one voice of their own; that the app names another goes without saying.
    """
    return [
        SpeechError(
            "speech.not_supported",
            f"{name} is not supported by the engine {synthesiser.name}",
            where=f"app:audioProcessingConfig.synthesizeSpeechConfigs.{language}.{name}",
            hint=_HINTS.get(name),
        )
        for language, voice in voices.items()
        for name in _missing(synthesiser, voice)
    ]


def _missing(synthesiser: Synthesiser, voice: VoiceConfig) -> tuple[str, ...]:
    if isinstance(synthesiser, StreamingSynthesiser):
        return synthesiser.unsupported(voice)
    given = {
        "voiceSampleGcsUri": voice.sample_uri,
        "model": voice.model,
        "instruction": voice.instruction,
    }
    return tuple(name for name, value in given.items() if value)
