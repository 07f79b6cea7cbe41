"""Which engine serves: the one that is asked for, or the best that is installed.

A fallback is never silent: it is logged with what is missing and how to install it. An engine that
is asked for by name and missing is a ConfigError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from gateway.config import SpeechSettings
from gateway.errors import ConfigError
from gateway.speech import google_client, hibari, moonshine, nanotts, silero, smart_turn
from gateway.speech.engines import EnginePlan

_log = structlog.get_logger()


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Option:
    """An engine: its name in the settings, whether it is there, how to get it."""

    name: str
    available: Callable[[], bool]
    install: str = ""


_TTS = (
    _Option("hibari", hibari.available, hibari.INSTALL),
    _Option("nanotts", nanotts.available, nanotts.INSTALL),
)
_STT = (
    _Option("moonshine", moonshine.available, moonshine.INSTALL),
    _Option("none", _always),
)
_VAD = (
    _Option("silero", silero.available, silero.INSTALL),
    _Option("energy", _always),
)
_TURN = (
    _Option("smart-turn", smart_turn.available, smart_turn.INSTALL),
    _Option("silence", _always),
)


_CLOUD = {
    "tts": _Option(
        "google", lambda: google_client.available("texttospeech_v1"), google_client.INSTALL
    ),
    "stt": _Option("google", lambda: google_client.available("speech_v2"), google_client.INSTALL),
}
"""Engines that are never taken unasked: they cost money and need an account."""


def choose(settings: SpeechSettings) -> EnginePlan:
    """Names of installed offline engines for every need. Raises ConfigError (speech_engine).

    Where a cloud engine is asked for, these stand behind it.
    """
    return EnginePlan(
        tts=_pick("tts", settings.tts, _TTS),
        stt=_pick("stt", settings.stt, _STT),
        vad=_pick("vad", settings.vad, _VAD),
        turn=_pick("turn", settings.turn, _TURN),
        seed=settings.seed,
    )


def check_cloud(settings: SpeechSettings) -> None:
    """Raise ConfigError where a cloud engine is asked for and its library is missing."""
    for need, option in _CLOUD.items():
        if getattr(settings, need) == option.name and not option.available():
            raise _missing(need, option)


def _pick(need: str, wanted: str, options: tuple[_Option, ...]) -> str:
    if wanted != "auto" and wanted != "google":
        option = next(option for option in options if option.name == wanted)
        if not option.available():
            raise _missing(need, option)
        return option.name
    for option in options:
        if option.available():
            if option is not options[0]:
                _log.warning(
                    "speech.fallback",
                    need=need,
                    using=option.name,
                    missing=options[0].name,
                    install=options[0].install,
                )
            return option.name
    raise _missing(need, options[0])


def _missing(need: str, option: _Option) -> ConfigError:
    return ConfigError(
        "config.speech_engine",
        f"the engine {option.name} is not installed",
        where=f"speech.{need}",
        hint=f"{option.install}, or choose another engine",
    )
