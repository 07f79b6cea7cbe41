"""`audioProcessingConfig` and languages: ranges, sources, codes."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

from gateway.agent.app.check.problem import Code, Problems
from gateway.agent.app.check.tree import Object, Place, Tree

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
RATE_MIN, RATE_MAX = 0.25, 2.0
GAIN_MIN_DB, GAIN_MAX_DB, GAIN_LOUD_DB = -96.0, 16.0, 10.0
_SOURCES = ("prebuiltAmbientSound", "prebuiltAmbientNoise", "gcsUri")
_AUDIO = "audioProcessingConfig"


def check_audio(tree: Tree) -> None:
    """Report what a speech engine or the mixer could not use."""
    app = tree.app
    if app is None:
        return
    voices = app.get(_AUDIO, "synthesizeSpeechConfigs")
    if isinstance(voices, dict):
        seen: set[str] = set()
        for code, voice in voices.items():
            place: Place = (_AUDIO, "synthesizeSpeechConfigs", code)
            _language(app, place, code, tree.problems)
            if code.lower() in seen:
                tree.problems.error(
                    Code.LANGUAGE,
                    app.file,
                    app.line(*place),
                    f"the language {code!r} has two voices (letter case does not count)",
                    "Keep one of them.",
                )
            seen.add(code.lower())
            if isinstance(voice, dict):
                _voice(app, place, tree.problems)
    _ambient(app, tree.problems)
    _languages(app, tree.problems)


def _voice(app: Object, place: Place, problems: Problems) -> None:
    rate = _number(app.get(*place, "speakingRate"))
    if rate is not None and rate != 0 and not RATE_MIN <= rate <= RATE_MAX:
        problems.error(
            Code.AUDIO_RANGE,
            app.file,
            app.line(*place, "speakingRate"),
            f"speakingRate {rate:g} is out of range",
            f"It lies between {RATE_MIN} and {RATE_MAX}; 1.0 is the voice's own pace.",
        )
    _bucket(app, (*place, "voiceSampleGcsUri"), problems)


def _ambient(app: Object, problems: Problems) -> None:
    place: Place = (_AUDIO, "ambientSoundConfig")
    config = app.get(*place)
    if not isinstance(config, dict):
        return
    gain = _number(app.get(*place, "volumeGainDb"))
    line = app.line(*place, "volumeGainDb")
    if gain is not None and not GAIN_MIN_DB <= gain <= GAIN_MAX_DB:
        problems.error(
            Code.AUDIO_RANGE,
            app.file,
            line,
            f"volumeGainDb {gain:g} is out of range",
            f"It lies between {GAIN_MIN_DB:g} and {GAIN_MAX_DB:g} dB; -6 halves the level.",
        )
    elif gain is not None and gain > GAIN_LOUD_DB:
        problems.warn(
            Code.AUDIO_RANGE,
            app.file,
            line,
            f"volumeGainDb {gain:g} drowns the speech",
            f"Stay below {GAIN_LOUD_DB:g} dB.",
        )
    sources = [name for name in _SOURCES if app.get(*place, name)]
    if len(sources) != 1:
        problems.error(
            Code.AUDIO_SOURCE,
            app.file,
            app.line(*place),
            f"the ambient sound has {' and '.join(sources) or 'no source'}",
            f"Give exactly one of {', '.join(_SOURCES)}.",
        )
    _bucket(app, (*place, "gcsUri"), problems)


def _bucket(app: Object, place: Place, problems: Problems) -> None:
    uri = app.get(*place)
    if isinstance(uri, str) and uri and not uri.startswith(("gs://", "$")):
        problems.error(
            Code.AUDIO_SOURCE,
            app.file,
            app.line(*place),
            f"{place[-1]} is not a gs:// address",
            "Write it like gs://bucket/path/file.wav.",
        )


def _languages(app: Object, problems: Problems) -> None:
    default = app.get("languageSettings", "defaultLanguageCode")
    if isinstance(default, str) and default:
        _language(app, ("languageSettings", "defaultLanguageCode"), default, problems)
    for place, code in app.texts("languageSettings", "supportedLanguageCodes"):
        _language(app, place, code, problems)
    zone = app.get("timeZoneSettings", "timeZone")
    if isinstance(zone, str) and zone and not zone.startswith("$"):
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            problems.error(
                Code.LANGUAGE,
                app.file,
                app.line("timeZoneSettings", "timeZone"),
                f"{zone[:60]!r} is not a time zone",
                "Write it like Europe/Berlin.",
            )


def _language(app: Object, place: Place, code: str, problems: Problems) -> None:
    if not LANGUAGE.fullmatch(code) and not code.startswith("$"):
        problems.error(
            Code.LANGUAGE,
            app.file,
            app.line(*place),
            f"{code[:40]!r} is not a language code",
            "Write it like en-US or de.",
        )


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None
