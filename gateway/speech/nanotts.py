"""Synthesis by py-nanotts (SVOX Pico): small, no model runtime needed, five languages.

The engine holds the interpreter lock while it speaks, and one text in many comes out in a second
variant that differs in a few samples.
"""

from __future__ import annotations

from gateway.call.profile import VoiceConfig
from gateway.speech.models import Floats, has_module, to_floats

INSTALL = "pip install py-nanotts==0.1.1"

_VOICES = {
    "en-gb": "en-GB",
    "en": "en-US",
    "de": "de-DE",
    "es": "es-ES",
    "fr": "fr-FR",
    "it": "it-IT",
}


def available() -> bool:
    """Whether the wheel is installed."""
    return has_module("py_nanotts")


def voice_name(language: str) -> str:
    """The engine's voice for a language code; American English where it has none."""
    code = language.lower()
    return _VOICES.get(code) or _VOICES.get(code.split("-")[0]) or _VOICES["en"]


class NanoTts:
    """One voice a language; `speaking_rate` is followed by the engine itself."""

    name = "nanotts"
    rate_hz = 16000

    def __init__(self) -> None:
        from py_nanotts import NanoTTS

        self._engine = NanoTTS()

    def speak(self, text: str, voice: VoiceConfig, language: str) -> Floats:
        """Speech at `rate_hz`; empty where nothing in the text can be spoken."""
        speed = min(max(voice.speaking_rate, 0.25), 2.0)
        return to_floats(self._engine.speak(text, voice=voice_name(language), speed=speed))
