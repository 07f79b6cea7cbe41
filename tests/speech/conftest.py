"""The real engines, loaded once for all tests of this folder."""

from __future__ import annotations

import pytest

from gateway.call.profile import VoiceConfig
from gateway.speech.engines import EnginePlan, Engines
from gateway.speech.local import shared_engines
from gateway.speech.silero import SileroModel

PLAN = EnginePlan(tts="hibari", stt="moonshine", vad="silero", turn="smart-turn")
VOICE = VoiceConfig()


@pytest.fixture(scope="session")
def engines() -> Engines:
    return shared_engines(PLAN)


@pytest.fixture(scope="session")
def nano() -> Engines:
    return shared_engines(EnginePlan(tts="nanotts", stt="none", vad="energy", turn="silence"))


@pytest.fixture(scope="session")
def silero() -> SileroModel:
    return SileroModel()
