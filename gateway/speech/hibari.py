"""Synthesis by hibari-tts: English, one offline voice, more than 100 times faster than speech."""

from __future__ import annotations

import numpy as np

from gateway.call.profile import VoiceConfig
from gateway.speech.models import Floats, has_module

INSTALL = "pip install hibari-tts==0.2.1"


def available() -> bool:
    """Whether the wheel is installed."""
    return has_module("hibari") and has_module("onnxruntime")


class Hibari:
    """The voice `heart`, the only one whose model is in the wheel.

    `VoiceConfig.voice` is therefore not followed; `speaking_rate` is, by the model itself. The
    noise that the engine mixes in comes from a fixed seed, so a sentence always sounds the same.
    """

    name = "hibari"
    rate_hz = 24000

    def __init__(self, seed: int) -> None:
        from hibari import Hibari as Engine

        self._engine = Engine(voice="heart", threads=1)
        self._seed = seed

    def speak(self, text: str, voice: VoiceConfig, language: str) -> Floats:
        """Speech at `rate_hz`; empty where nothing in the text can be spoken."""
        speed = min(max(voice.speaking_rate, 0.25), 2.0)
        return np.asarray(self._engine(text, speed=speed, seed=self._seed), np.float32)
