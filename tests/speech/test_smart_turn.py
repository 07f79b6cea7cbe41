"""The turn model tells a finished sentence from one that was cut off."""

from __future__ import annotations

import numpy as np

from gateway.speech.engines import Engines
from gateway.speech.models import to_floats, to_pcm
from gateway.speech.smart_turn import SmartTurn, features
from tests.speech.conftest import VOICE
from tests.speech.telephone import noise, over_the_line, silence

SENTENCES = [
    "I would like to pay my electricity bill today.",
    "My name is Sarah Connor and I live in Boston.",
    "There is no power in my house since this morning.",
    "Can you please tell me how much I have to pay?",
    "I moved last week and need to change my address.",
    "I want to talk to somebody about my new contract.",
]


def pause_after(voiced: bytes) -> bytes:
    """What is asked about: the voice, 200 ms of a quiet line, all through mu-law."""
    clip = voiced + silence(0.2)
    hum = to_floats(noise(len(clip) / 16000 + 1, -50))[: len(clip) // 2]
    return over_the_line(to_pcm(to_floats(clip) + hum))


def test_whole_sentences_pass_and_cut_ones_far_less(engines: Engines) -> None:
    whole, cut = [], []
    for text in SENTENCES:
        pcm = engines.synthesise(text, VOICE, "en-US", 8000)
        samples = len(pcm) // 2 - 8000 * 240 // 1000
        whole.append(engines.complete(pause_after(pcm[: 2 * samples]), 8000))
        cut += [
            engines.complete(pause_after(pcm[: 2 * int(samples * share)]), 8000)
            for share in (0.35, 0.75)
        ]
    assert np.mean(whole) >= 0.85
    assert np.mean(cut) <= np.mean(whole) - 0.2


def test_a_sentence_that_hangs_on_because_is_not_over(engines: Engines) -> None:
    for text in ("I called because", "I want to change my address because"):
        pcm = engines.synthesise(text, VOICE, "en-US", 8000)
        assert not engines.complete(pause_after(pcm[: -2 * 8000 * 240 // 1000]), 8000)


def test_features_are_a_picture_of_eight_seconds() -> None:
    wave = np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000).astype(np.float32)
    picture = features(wave)
    assert picture.shape == (80, 800)
    assert picture.dtype == np.float32
    # The last second holds the tone; 1 kHz is 15 of 47 mel up to 8 kHz, so band 25 of 80.
    assert int(np.argmax(picture[:, 750])) in (25, 26)
    assert picture[:, :690].max() < picture[:, 750].max() - 1.5


def test_of_a_long_clip_the_end_counts() -> None:
    wave = np.random.default_rng(0).normal(size=20 * 16000).astype(np.float32)
    assert np.array_equal(features(wave), features(wave[-8 * 16000 :]))


def test_the_shortest_clips_are_judged() -> None:
    judge = SmartTurn()
    for clip in (b"", silence(0.01), silence(0.1)):
        assert 0.0 <= judge.probability(clip, 8000) <= 1.0
