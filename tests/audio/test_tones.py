"""Made-up audio has the frequencies and levels it says, and no clicks."""

import numpy as np
import pytest

from gateway.audio.mixing import level_dbfs
from gateway.audio.tones import DTMF_KEYS, dtmf, silence, sine

KEYS = {
    "1": (697, 1209), "2": (697, 1336), "3": (697, 1477), "A": (697, 1633),
    "4": (770, 1209), "5": (770, 1336), "6": (770, 1477), "B": (770, 1633),
    "7": (852, 1209), "8": (852, 1336), "9": (852, 1477), "C": (852, 1633),
    "*": (941, 1209), "0": (941, 1336), "#": (941, 1477), "D": (941, 1633),
}  # fmt: skip


def values(pcm: bytes) -> np.ndarray:
    return np.frombuffer(pcm, "<i2").astype(float)


def peaks_hz(pcm: bytes, rate_hz: int, count: int) -> list[float]:
    size = 1 << 16
    spectrum = np.abs(np.fft.rfft(values(pcm) * np.hanning(len(pcm) // 2), size))
    found = []
    for _ in range(count):
        top = int(spectrum.argmax())
        found.append(top * rate_hz / size)
        width = 40 * size // rate_hz
        spectrum[max(0, top - width) : top + width] = 0
    return sorted(found)


@pytest.mark.parametrize("key", DTMF_KEYS)
@pytest.mark.parametrize("rate_hz", [8000, 16000])
def test_each_key_sounds_its_two_tones(key, rate_hz):
    assert peaks_hz(dtmf(key, 100, rate_hz), rate_hz, 2) == pytest.approx(list(KEYS[key]), abs=3)


def test_keys_cover_the_keypad_and_letters_may_be_small():
    assert set(DTMF_KEYS) == set(KEYS)
    assert dtmf("a") == dtmf("A")


@pytest.mark.parametrize("key", ["", "12", "E", " "])
def test_another_key_is_refused(key):
    with pytest.raises(ValueError, match="no key"):
        dtmf(key)


def test_lengths_are_exact():
    assert len(dtmf("5", 100)) == 1600
    assert len(silence(20)) == 320
    assert len(sine(440, 500, 24000)) == 24000
    assert set(silence(20)) == {0}
    assert sine(440, 0) == b""


def test_golden_levels():
    assert level_dbfs(sine(1000, 1000, level_db=0)) == pytest.approx(-3.0, abs=0.1)
    assert level_dbfs(sine(1000, 1000)) == pytest.approx(-12.0, abs=0.1)
    assert level_dbfs(dtmf("5", 1000)) == pytest.approx(-9.0, abs=0.1)
    assert np.abs(values(dtmf("D", 1000))).max() < 32767


def test_edges_rise_and_fall_without_a_click():
    tone = values(sine(1000, 100))
    largest_step = np.abs(np.diff(tone)).max()
    joined = np.concatenate([np.zeros(8), tone, np.zeros(8)])
    assert np.abs(np.diff(joined[:12])).max() < largest_step / 10
    assert np.abs(np.diff(joined[-12:])).max() < largest_step / 10
