"""Mixing: sums saturate, gains are decibels, levels have golden values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.mixing import factor, gain, level_dbfs, mix

samples = st.lists(st.integers(-32768, 32767), max_size=40)


def pcm(values: list[int]) -> bytes:
    return np.array(values, "<i2").tobytes()


def values(data: bytes) -> list[int]:
    return np.frombuffer(data, "<i2").tolist()


@given(a=samples, b=samples)
def test_a_mix_is_the_saturated_sum_as_long_as_the_longer(a, b):
    length = max(len(a), len(b))
    padded = zip(a + [0] * (length - len(a)), b + [0] * (length - len(b)), strict=True)
    expected = [max(-32768, min(32767, left + right)) for left, right in padded]
    assert values(mix(pcm(a), pcm(b))) == expected


def test_a_gain_of_zero_changes_nothing():
    data = pcm([1, -2, 32767])
    assert gain(data, 0) is data


@pytest.mark.parametrize(("gain_db", "expected"), [(-6.0206, 500), (6.0206, 2000), (-20, 100)])
def test_a_gain_is_decibels_of_amplitude(gain_db, expected):
    assert values(gain(pcm([1000]), gain_db))[0] == pytest.approx(expected, abs=1)


def test_a_loud_gain_saturates():
    assert values(gain(pcm([20000, -20000]), 20)) == [32767, -32768]


def test_minus_infinity_is_silence():
    assert factor(-math.inf) == 0.0
    assert values(gain(pcm([20000, -20000]), -math.inf)) == [0, 0]


def test_golden_levels():
    square = pcm([32767, -32767] * 500)
    sine = pcm([round(32767 * math.sin(2 * math.pi * at / 100)) for at in range(1000)])
    assert level_dbfs(square) == pytest.approx(0.0, abs=0.01)
    assert level_dbfs(sine) == pytest.approx(-3.01, abs=0.01)
    assert level_dbfs(gain(sine, -20)) == pytest.approx(-23.01, abs=0.02)
    assert level_dbfs(pcm([0] * 10)) == -math.inf
    assert level_dbfs(b"") == -math.inf
