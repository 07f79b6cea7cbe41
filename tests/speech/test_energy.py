"""The model-free voice activity follows the same contract."""

from __future__ import annotations

from gateway.speech.energy import EnergyActivity
from gateway.speech.engines import Engines
from tests.speech.conftest import VOICE
from tests.speech.telephone import noise, over_the_line, silence


def test_speech_is_found_after_silence_and_positions_are_window_ends(engines: Engines) -> None:
    pcm = over_the_line(
        silence(1) + engines.synthesise("Hello there.", VOICE, "en-US", 8000) + silence(1)
    )
    out: list[tuple[float, float]] = []
    stream = EnergyActivity().open(lambda probability, at: out.append((probability, at)))
    for start in range(0, len(pcm), 320):
        stream.feed(pcm[start : start + 320])
    assert [round(at / 0.032) for _, at in out] == list(range(1, len(pcm) // 512 + 1))
    first = next(at for probability, at in out if probability > 0.5)
    assert 1.0 < first < 1.3
    assert max(probability for probability, at in out if at < 1.0) < 0.2


def test_steady_noise_is_not_speech_for_long() -> None:
    out: list[float] = []
    stream = EnergyActivity().open(lambda probability, at: out.append(probability))
    stream.feed(noise(6, -40))
    assert max(out[-60:]) < 0.5


def test_a_closed_stream_reports_nothing() -> None:
    out: list[float] = []
    stream = EnergyActivity().open(lambda probability, at: out.append(probability))
    stream.close()
    stream.feed(silence(1))
    assert out == []
