"""The real engines, loaded once for all tests of this folder."""

from __future__ import annotations

import pytest

from gateway.call.profile import VoiceConfig
from gateway.speech.engines import EnginePlan, Engines, load_engines
from gateway.speech.silero import SileroModel

PLAN = EnginePlan(tts="hibari", stt="moonshine", vad="silero", turn="smart-turn")
VOICE = VoiceConfig()


@pytest.fixture(scope="session")
def engines() -> Engines:
    return load_engines(PLAN)


@pytest.fixture(scope="session")
def silero() -> SileroModel:
    return SileroModel()
