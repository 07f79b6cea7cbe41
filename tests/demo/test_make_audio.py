"""The demo's audio: levels, lengths, seamless loops, and the same again from the script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from gateway.demo import APP_PATH
from gateway.demo.make_audio import (
    MUSIC_DBFS,
    PEAK_DBFS,
    RATE_HZ,
    Samples,
    chime,
    hold_music,
    levelled,
    note,
    pcm,
    wait_music,
    write_alaw,
    write_wav,
)

AUDIO = APP_PATH / "audio"
FIXTURES = APP_PATH.parents[2] / "audio_fixtures"


def read(path: Path) -> Samples:
    """The samples of a mono file at the demo's rate."""
    samples, rate_hz = soundfile.read(path, dtype="float64")
    assert rate_hz == RATE_HZ
    assert samples.ndim == 1
    return np.asarray(samples)


def rms_dbfs(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(samples**2)))


def peak_dbfs(samples: Samples) -> float:
    return float(20 * np.log10(np.abs(samples).max()))


@pytest.mark.parametrize(
    ("name", "subtype", "shortest_s", "longest_s", "level_dbfs"),
    [
        ("greeting.wav", "PCM_16", 3.0, 6.0, -21.0),
        ("hold_music.wav", "PCM_16", 12.0, 20.0, MUSIC_DBFS),
        ("async_music.wav", "ALAW", 12.0, 20.0, MUSIC_DBFS),
        ("closing.wav", "PCM_16", 1.0, 2.0, MUSIC_DBFS),
    ],
)
def test_each_file_has_its_encoding_length_and_level(
    name: str, subtype: str, shortest_s: float, longest_s: float, level_dbfs: float
) -> None:
    samples = read(AUDIO / name)
    assert soundfile.info(AUDIO / name).subtype == subtype
    assert shortest_s <= samples.size / RATE_HZ <= longest_s
    assert rms_dbfs(samples) == pytest.approx(level_dbfs, abs=1.0)
    assert peak_dbfs(samples) <= PEAK_DBFS + 0.1


@pytest.mark.parametrize(("name", "made"), [("hold_music.wav", hold_music), ("closing.wav", chime)])
def test_the_script_makes_the_stored_music_again(name: str, made: object) -> None:
    assert callable(made)
    stored = np.round(read(AUDIO / name) * 32768)
    assert np.abs(stored - pcm(made())).max() <= 1


def test_music_repeats_without_a_click() -> None:
    for music in (hold_music(), wait_music()):
        steps = np.abs(np.diff(music))
        seam = abs(music[0] - music[-1])
        assert seam <= np.quantile(steps, 0.999)


def test_a_note_has_nothing_above_the_telephone_band() -> None:
    sound = note(84, 1.0)
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(sound.size)))
    edge = int(3500 * sound.size / RATE_HZ)
    assert spectrum[edge:].max() < spectrum.max() * 1e-3


def test_a_level_gives_way_to_the_peak() -> None:
    spike = np.zeros(8000)
    spike[100] = 0.1
    assert peak_dbfs(levelled(spike, -20.0)) == pytest.approx(PEAK_DBFS)


def test_both_encodings_hold_what_was_written(tmp_path: Path) -> None:
    sound = chime()
    write_wav(tmp_path / "plain.wav", sound)
    write_alaw(tmp_path / "alaw.wav", sound)
    assert np.abs(read(tmp_path / "plain.wav") - sound).max() < 1e-4
    assert np.abs(read(tmp_path / "alaw.wav") - sound).max() < 0.02


def test_caller_recordings_are_speech_at_telephone_level_and_noise_is_quiet() -> None:
    names = {path.stem for path in FIXTURES.glob("*.wav")}
    assert {"yes", "no", "hello", "balance", "power_out", "goodbye", "noise"} <= names
    for name in names:
        samples = read(FIXTURES / f"{name}.wav")
        assert rms_dbfs(samples) == pytest.approx(-40.0 if name == "noise" else -21.0, abs=1.0)
        assert 1.0 <= samples.size / RATE_HZ <= 4.0
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}.wav`" in readme for name in names)
