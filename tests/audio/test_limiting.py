"""What would clip is bent softly; everything else is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.limiting import FULL_SCALE, KNEE, add, limit, louder
from gateway.audio.mixing import factor

samples = st.lists(st.integers(-32768, 32767), min_size=1, max_size=40)


def pcm(values: list[int]) -> bytes:
    return np.array(values, "<i2").tobytes()


def values(data: bytes) -> list[int]:
    return np.frombuffer(data, "<i2").tolist()


@given(samples)
def test_below_the_knee_a_sum_is_a_sum(a: list[int]) -> None:
    b = [v // 3 for v in a]
    total = [x + y for x, y in zip(a, b, strict=True)]
    made = values(add(pcm(a), pcm(b)))
    for want, got in zip(total, made, strict=True):
        assert got == want if abs(want) <= KNEE else KNEE - 1 <= abs(got) <= FULL_SCALE


@given(st.lists(st.floats(-3e5, 3e5), min_size=2, max_size=50))
def test_the_curve_keeps_order_and_sign_and_full_scale(raw: list[float]) -> None:
    ordered = sorted(raw)
    made = values(limit(np.array(ordered)))
    assert made == sorted(made)
    assert all(abs(v) <= FULL_SCALE for v in made)
    assert all(v * r >= 0 for v, r in zip(made, ordered, strict=True))


def test_the_curve_has_no_corner_at_the_knee() -> None:
    steps = np.diff(values(limit(np.arange(KNEE - 300, KNEE + 300, 1.0))))
    assert set(steps) <= {0, 1}


def test_neighbours_in_different_frames_do_not_part() -> None:
    """A frame that needs bending and one that does not meet without a step."""
    loud, quiet = pcm([KNEE + 4000, KNEE + 10]), pcm([KNEE - 10, 0])
    last = values(add(loud, bytes(4)))[-1]
    first = values(add(quiet, bytes(4)))[0]
    assert 0 <= last - first <= 21


@pytest.mark.parametrize("gain_db", [-30.0, -6.0, 3.0, 12.0])
def test_a_gain_is_exact_below_the_knee(gain_db: float) -> None:
    assert values(louder(pcm([2000]), gain_db))[0] == pytest.approx(2000 * factor(gain_db), abs=1)


def test_a_gain_beyond_full_scale_is_bent() -> None:
    made = values(louder(pcm([20000, -20000, 1000]), 6.0))
    assert KNEE < made[0] < FULL_SCALE
    assert made[1] == -made[0]
    assert made[2] == pytest.approx(1995, abs=1)


def test_no_gain_is_the_same_object() -> None:
    data = pcm([1, 2])
    assert louder(data, 0.0) is data
