"""Voice activity: one model for many calls, no window judged differently for being in a batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gateway.audio.formats import Pcm
from gateway.speech import silero as module
from gateway.speech.engines import Engines
from gateway.speech.models import to_floats, to_pcm
from gateway.speech.silero import (
    QUIET_WINDOWS,
    WINDOW_BYTES,
    InlineSilero,
    SileroModel,
    Track,
    advance,
)
from tests.speech.conftest import VOICE
from tests.speech.telephone import noise, over_the_line, silence

Windows = list[tuple[float, float]]


def judge(model: SileroModel, pcm: Pcm, chunk: int | None = None) -> Windows:
    out: Windows = []
    stream = InlineSilero(model).open(lambda probability, at: out.append((probability, at)))
    size = chunk or len(pcm)
    for start in range(0, len(pcm), size):
        stream.feed(pcm[start : start + size])
    stream.close()
    return out


def onset_s(windows: Windows) -> float:
    for (first, at), (second, _) in itertools.pairwise(windows):
        if first > 0.5 and second > 0.5:
            return at
    raise AssertionError("no speech found")


def mixed(speech: Pcm, gain_db: float, noise_dbfs: float | None) -> Pcm:
    samples = to_floats(speech) * np.float32(10 ** (gain_db / 20))
    if noise_dbfs is not None:
        hiss = to_floats(noise(len(samples) / 8000 + 1, noise_dbfs))
        samples = samples + hiss[: len(samples)]
    return over_the_line(to_pcm(samples))


@pytest.fixture(scope="module")
def spoken(engines: Engines) -> list[Pcm]:
    return [
        engines.synthesise(text, VOICE, "en-US", 8000)
        for text in ("Hello there.", "Some people say so.", "Four.", "How much is it?", "I see.")
    ]


def test_speech_is_found_and_silence_is_not(silero: SileroModel, spoken: list[Pcm]) -> None:
    for pcm in spoken:
        windows = judge(silero, over_the_line(silence(1) + pcm + silence(1)))
        assert 1.0 < onset_s(windows) < 1.3
        assert all(p < 0.2 for p, at in windows if at < 0.95 or at > 1.0 + len(pcm) / 16000 + 0.3)


@pytest.mark.parametrize("level_dbfs", [-60, -40, -25])
def test_noise_is_not_speech(silero: SileroModel, level_dbfs: float) -> None:
    assert all(p < 0.5 for p, _ in judge(silero, noise(4, level_dbfs)))


def test_positions_are_window_ends_and_chunking_changes_nothing(
    silero: SileroModel, spoken: list[Pcm]
) -> None:
    pcm = over_the_line(spoken[0])
    whole = judge(silero, pcm)
    assert [at for _, at in whole] == [0.032 * (n + 1) for n in range(len(pcm) // WINDOW_BYTES)]
    assert judge(silero, pcm, 320) == whole
    assert judge(silero, pcm, 2) == whole


def test_fifty_streams_in_a_batch_are_judged_like_fifty_single_ones(
    silero: SileroModel, spoken: list[Pcm]
) -> None:
    clips = [
        over_the_line(silence(n * 0.013) + spoken[n % len(spoken)] + silence(0.9))
        for n in range(50)
    ]
    tracks = [Track() for _ in clips]
    together: dict[int, Windows] = {id(track): [] for track in tracks}
    for start in range(0, max(map(len, clips)), 1024):
        for track, clip in zip(tracks, clips, strict=True):
            track.pending += clip[start : start + 1024]
        for track, probability, at in advance(silero, tracks):
            together[id(track)].append((probability, at))
    for track, clip in zip(tracks, clips, strict=True):
        single = judge(silero, clip)
        assert [at for _, at in together[id(track)]] == [at for _, at in single]
        assert np.allclose([p for p, _ in together[id(track)]], [p for p, _ in single], atol=1e-3)


class CountingModel(SileroModel):
    """Counts the windows that reach the model."""

    count = 0

    def run(self, windows: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.count += len(windows)
        return super().run(windows, memory)


@pytest.mark.parametrize("level_dbfs", [None, -65])
def test_silence_and_comfort_noise_do_not_reach_the_model(level_dbfs: float | None) -> None:
    model = CountingModel()
    pcm = silence(10) if level_dbfs is None else noise(10, level_dbfs)
    windows = judge(model, pcm)
    assert model.count == QUIET_WINDOWS
    assert [p for p, _ in windows[QUIET_WINDOWS:]] == [0.0] * (len(windows) - QUIET_WINDOWS)


def test_the_gate_moves_no_onset_by_more_than_a_window(
    silero: SileroModel, spoken: list[Pcm], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = []
    for gain_db in (0, -20):
        for noise_dbfs in (None, -70, -55):
            for pcm in spoken:
                line = mixed(silence(1) + pcm + silence(0.3), gain_db, noise_dbfs)
                gated = onset_s(judge(silero, line))
                with monkeypatch.context() as patch:
                    patch.setattr(module, "QUIET_RMS", -1)
                    late.append(gated - onset_s(judge(silero, line)))
    assert max(late) < 0.033
    assert np.mean(late) < 0.004


def test_a_closed_stream_reports_nothing(silero: SileroModel) -> None:
    out: Windows = []
    stream = InlineSilero(silero).open(lambda probability, at: out.append((probability, at)))
    stream.close()
    stream.close()
    stream.feed(silence(1))
    assert out == []


def test_a_stream_may_be_closed_from_its_own_report(silero: SileroModel) -> None:
    out: list[float] = []

    def first_only(probability: float, at: float) -> None:
        out.append(at)
        stream.close()

    stream = InlineSilero(silero).open(first_only)
    stream.feed(silence(1))
    assert out == [0.032]
