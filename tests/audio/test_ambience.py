"""An ambience loop has no seam, keeps its level, and fits the frame clock."""

import numpy as np
import pytest

from gateway.audio.ambience import loop
from gateway.audio.mixing import level_dbfs
from gateway.audio.tones import sine


def soft_noise(seconds: float, rate_hz: int = 8000) -> bytes:
    """Noise without highs: neighbouring samples are close, so a seam would stand out."""
    raw = np.random.default_rng(3).normal(size=round(seconds * rate_hz) + 63)
    smooth = np.convolve(raw, np.hanning(64), "valid")
    return np.rint(smooth / np.abs(smooth).max() * 8000).astype("<i2").tobytes()


def steps(pcm: bytes) -> np.ndarray:
    return np.abs(np.diff(np.frombuffer(pcm, "<i2").astype(int)))


def test_the_seam_steps_no_further_than_the_sound_itself():
    clip = soft_noise(3)
    looped = loop(clip, 8000)
    around_seam = steps(looped[-160:] + looped[:160])
    assert around_seam.max() <= steps(clip).max()


def test_the_end_of_the_crossfade_has_no_seam_either():
    clip = soft_noise(3)
    looped = loop(clip, 8000)
    assert steps(looped[2 * 3900 : 2 * 4100]).max() <= steps(clip).max()


def test_without_the_crossfade_there_would_be_a_seam():
    tone = sine(437.3, 3000)[2 * 40 : -2 * 41]
    assert steps(tone[-160:] + tone[:160]).max() > steps(tone).max() * 1.5
    looped = loop(tone, 8000)
    assert steps(looped[-160:] + looped[:160]).max() <= steps(tone).max() * 1.05


def test_the_level_holds_through_the_crossfade():
    looped = loop(soft_noise(20), 8000)
    fade, rest = looped[: 2 * 4000], looped[2 * 4000 :]
    assert level_dbfs(fade) == pytest.approx(level_dbfs(rest), abs=1.5)


@pytest.mark.parametrize("gain_db", [-20.0, -6.0, 0.0])
def test_the_gain_is_applied_once(gain_db):
    plain, scaled = loop(soft_noise(3), 8000), loop(soft_noise(3), 8000, gain_db)
    assert level_dbfs(scaled) == pytest.approx(level_dbfs(plain) + gain_db, abs=0.05)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("seconds", [0.1, 0.777, 3.3333])
def test_a_loop_is_whole_frames(rate_hz, seconds):
    looped = loop(soft_noise(seconds, rate_hz), rate_hz)
    assert looped
    assert len(looped) % (rate_hz // 50 * 2) == 0


@pytest.mark.parametrize("size", [0, 1, 2, 3, 100])
def test_a_clip_shorter_than_a_frame_still_loops(size):
    looped = loop(bytes(2 * size), 8000)
    assert len(looped) // 2 == size - size // 3
