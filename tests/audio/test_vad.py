"""The energy gate: speech over a floor that follows the noise."""

from pathlib import Path

import numpy as np
import pytest

from gateway.audio.files import decode
from gateway.audio.mixing import mix
from gateway.audio.tones import silence
from gateway.audio.vad import WINDOW_SAMPLES, EnergyGate

FIXTURES = Path(__file__).parents[2] / "audio_fixtures"
WINDOW_S = WINDOW_SAMPLES / 8000


def probabilities(pcm: bytes) -> list[float]:
    gate = EnergyGate()
    step = WINDOW_SAMPLES * 2
    return [gate.probability(pcm[at : at + step]) for at in range(0, len(pcm) - step + 1, step)]


def noise(seconds: float, level_dbfs: float, *, hiss: bool) -> bytes:
    size = round(seconds * 8000)
    raw = np.random.default_rng(1).normal(size=size + 31)
    shaped = raw[:size] if hiss else np.convolve(raw, np.hanning(32), "valid")
    shaped *= 32768 * 10 ** (level_dbfs / 20) / np.sqrt((shaped**2).mean())
    return np.rint(shaped).clip(-32768, 32767).astype("<i2").tobytes()


def recording(name: str) -> bytes:
    path = FIXTURES / name
    clip = decode(path.read_bytes(), name)
    assert clip.rate_hz == 8000
    return clip.pcm


@pytest.mark.parametrize("name", ["hello.wav", "yes.wav", "balance.wav"])
def test_recorded_speech_is_heard_and_the_silence_around_it_is_not(name):
    judged = probabilities(recording(name))
    assert max(judged) > 0.9
    assert sum(value > 0.5 for value in judged) * WINDOW_S > 0.3
    assert max(judged[:5]) < 0.35
    assert max(judged[-5:]) < 0.35


def test_speech_over_noise_is_heard_once_the_floor_is_known():
    before = noise(3, -45, hiss=False)
    speech = recording("hello.wav")
    judged = probabilities(before + mix(speech, noise(len(speech) / 16000, -45, hiss=False)))
    after_floor = judged[round(2 / WINDOW_S) : round(3 / WINDOW_S)]
    assert max(after_floor) < 0.35
    assert max(judged[round(3 / WINDOW_S) :]) > 0.9


def test_steady_noise_is_noise_after_a_second_and_a_half():
    judged = probabilities(noise(5, -40, hiss=False))
    assert max(judged[round(1.6 / WINDOW_S) :]) < 0.35


def test_hiss_is_noise_at_once():
    assert max(probabilities(noise(2, -30, hiss=True))) < 0.35


def test_silence_and_what_is_too_soft_are_nothing():
    assert set(probabilities(silence(1000))) == {0.0}
    assert set(probabilities(noise(1, -60, hiss=False))) == {0.0}


def test_a_probability_is_one():
    loud = np.where(np.arange(8000) // 40 % 2, 32767, -32768).astype("<i2").tobytes()
    assert all(0.0 <= value <= 1.0 for value in probabilities(loud + silence(500) + loud))
