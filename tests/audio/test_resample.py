"""Rate conversion by numbers: flat to 3.4 kHz, no aliases, under 5 ms, no seams."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.audio.resample import Resampler, resample_clip

PAIRS = [
    (8000, 16000),
    (8000, 24000),
    (8000, 48000),
    (16000, 8000),
    (22050, 8000),
    (24000, 8000),
    (24000, 16000),
    (32000, 8000),
    (44100, 8000),
    (44100, 16000),
    (48000, 8000),
]


def tone(rate_hz: int, hz: float, seconds: float = 0.5, peak: float = 16000.0) -> bytes:
    at = np.arange(round(rate_hz * seconds)) / rate_hz
    return np.rint(peak * np.sin(2 * math.pi * hz * at)).astype("<i2").tobytes()


def in_frames(pcm: bytes, in_hz: int, out_hz: int) -> np.ndarray:
    """The stream's output, fed in frames of 20 ms, without what swings in and out."""
    resampler = Resampler(in_hz, out_hz)
    frame = in_hz // 50 * 2
    out = b"".join(
        resampler.process(pcm[at : at + frame]) for at in range(0, len(pcm) - frame + 1, frame)
    )
    samples = np.frombuffer(out, "<i2").astype(float)
    return samples[out_hz // 50 : out_hz // 50 + out_hz * 2 // 5]


def amplitude(samples: np.ndarray, rate_hz: int, hz: float) -> float:
    turn = np.exp(-2j * math.pi * hz * np.arange(len(samples)) / rate_hz)
    window = np.blackman(len(samples))
    return 2 * abs((samples * window * turn).sum()) / window.sum()


@pytest.mark.parametrize(("in_hz", "out_hz"), PAIRS)
def test_the_pass_band_is_flat_within_half_a_decibel_to_3400_hz(in_hz, out_hz):
    for hz in (100, 300, 1000, 2000, 3000, 3400):
        level = amplitude(in_frames(tone(in_hz, hz), in_hz, out_hz), out_hz, hz)
        assert abs(20 * math.log10(level / 16000)) < 0.5, hz


@pytest.mark.parametrize(("in_hz", "out_hz"), [pair for pair in PAIRS if pair[0] > pair[1]])
def test_what_the_lower_rate_cannot_carry_is_gone_by_60_db(in_hz, out_hz):
    limit = out_hz // 2
    for hz in range(limit, in_hz // 2, max(100, (in_hz // 2 - limit) // 12)):
        left = in_frames(tone(in_hz, hz), in_hz, out_hz)
        assert 20 * math.log10(max(np.abs(left).max(), 1e-9) / 16000) < -60, hz


@pytest.mark.parametrize(("in_hz", "out_hz"), [pair for pair in PAIRS if pair[0] < pair[1]])
def test_images_of_a_tone_are_60_db_below_it(in_hz, out_hz):
    for hz in (500, 1500, 2500, 3400):
        samples = in_frames(tone(in_hz, hz), in_hz, out_hz)
        for multiple in range(in_hz, out_hz // 2 + in_hz, in_hz):
            for image in (multiple - hz, multiple + hz):
                if image < out_hz / 2:
                    level = amplitude(samples, out_hz, image)
                    assert 20 * math.log10(max(level, 1e-9) / 16000) < -60, (hz, image)


@pytest.mark.parametrize(("in_hz", "out_hz"), PAIRS)
def test_the_delay_is_what_it_says_and_below_5_ms(in_hz, out_hz):
    click = np.zeros(in_hz // 10, "<i2")
    click[in_hz // 50] = 30000
    resampler = Resampler(in_hz, out_hz)
    out = np.frombuffer(resampler.process(click.tobytes()), "<i2")
    late = int(np.abs(out.astype(int)).argmax()) - out_hz // 50
    assert late == resampler.delay_samples
    assert late / out_hz < 0.005


@pytest.mark.parametrize(("in_hz", "out_hz"), PAIRS)
def test_each_frame_of_20_ms_gives_one_of_20_ms_at_once(in_hz, out_hz):
    resampler = Resampler(in_hz, out_hz)
    for _ in range(60):
        assert len(resampler.process(bytes(in_hz // 50 * 2))) == out_hz // 50 * 2


@pytest.mark.parametrize(("in_hz", "out_hz"), PAIRS)
def test_a_tone_has_no_click_at_frame_edges(in_hz, out_hz):
    """What is left after the best-fitting sine is taken away stays 60 dB below it everywhere."""
    samples = in_frames(tone(in_hz, 1000), in_hz, out_hz)
    at = 2 * math.pi * 1000 * np.arange(len(samples)) / out_hz
    basis = np.stack([np.sin(at), np.cos(at)], axis=1)
    fit, *_ = np.linalg.lstsq(basis, samples, rcond=None)
    assert np.abs(samples - basis @ fit).max() < 16


@pytest.mark.parametrize(("in_hz", "out_hz"), PAIRS)
def test_a_constant_stays_that_constant(in_hz, out_hz):
    level = np.full(in_hz, 12345, "<i2").tobytes()
    assert set(in_frames(level, in_hz, out_hz)) == {12345.0}


@settings(max_examples=60, deadline=None)
@given(
    rates=st.sampled_from([*PAIRS, (11025, 8000), (8000, 44100), (8000, 8000), (8012, 8000)]),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(0, 3000),
    cuts=st.lists(st.integers(0, 3000), max_size=12),
)
def test_chunk_sizes_odd_ones_included_do_not_change_one_bit(rates, seed, size, cuts):
    data = np.random.default_rng(seed).bytes(size)
    whole = Resampler(*rates)
    expected = whole.process(data) + whole.flush()
    resampler = Resampler(*rates)
    edges = [0, *sorted(min(cut, size) for cut in cuts), size]
    pieces = [resampler.process(data[start:end]) for start, end in pairwise(edges)]
    assert b"".join(pieces) + resampler.flush() == expected


def test_a_stream_longer_than_a_working_slice_is_the_same_in_frames():
    data = np.random.default_rng(7).integers(-9000, 9000, 100_000).astype("<i2").tobytes()
    whole, frames = Resampler(24000, 8000), Resampler(24000, 8000)
    pieces = [frames.process(data[at : at + 960]) for at in range(0, len(data), 960)]
    assert b"".join(pieces) == whole.process(data)


@pytest.mark.parametrize(("in_hz", "out_hz"), [*PAIRS, (8000, 44100), (11025, 8000), (96000, 8000)])
def test_a_clip_keeps_its_length_and_its_time(in_hz, out_hz):
    clip = resample_clip(tone(in_hz, 1000), in_hz, out_hz)
    samples = np.frombuffer(clip, "<i2").astype(float)
    assert len(samples) == -(-round(in_hz * 0.5) * out_hz // in_hz)
    expected = 16000 * np.sin(2 * math.pi * 1000 * np.arange(len(samples)) / out_hz)
    edge = out_hz // 100
    assert np.abs(samples - expected)[edge:-edge].max() < 40


def test_equal_rates_pass_through_and_an_empty_clip_stays_empty():
    data = tone(8000, 440, 0.02)
    resampler = Resampler(8000, 8000)
    assert resampler.process(data) == data
    assert resampler.delay_samples == 0
    assert resampler.flush() == b""
    assert resample_clip(b"", 24000, 8000) == b""


def test_loud_input_saturates_and_never_wraps_round():
    square = np.where(np.arange(24000) // 60 % 2, 32767, -32768).astype("<i2")
    out = np.frombuffer(resample_clip(square.tobytes(), 24000, 8000), "<i2").astype(int)
    assert out.max() == 32767
    assert out.min() == -32768
    middle = out[10::20]  # ten samples after each edge, in the middle of a plateau
    assert (np.sign(middle[:-1]) == -np.sign(middle[1:])).all()


def test_after_a_flush_a_new_stream_begins():
    data = tone(16000, 700, 0.1)
    resampler = Resampler(16000, 8000)
    first = resampler.process(data) + resampler.flush()
    assert resampler.process(data) + resampler.flush() == first
    assert len(first) // 2 == 800 + resampler.delay_samples


@pytest.mark.parametrize("rate_hz", [0, -8000, 999, 400_000])
def test_an_absurd_rate_is_refused(rate_hz):
    with pytest.raises(ValueError, match="sane sample rate"):
        Resampler(rate_hz, 8000)
