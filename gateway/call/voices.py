"""Which voice speaks a language."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.call.profile import VoiceConfig

DEFAULT_VOICE = VoiceConfig()
"""The provider's own choice."""


def voice_for(voices: Mapping[str, VoiceConfig], language: str) -> VoiceConfig:
    """The entry for `language`, ignoring case: exact code, then root language, then default."""
    wanted = _normal(language)
    by_code = {_normal(code): voice for code, voice in voices.items()}
    return by_code.get(wanted) or by_code.get(wanted.partition("-")[0]) or DEFAULT_VOICE


def _normal(code: str) -> str:
    return code.strip().replace("_", "-").lower()
