"""The pace of a platform's clock, as its audio tells."""

from __future__ import annotations

import random

import pytest

from gateway.call.pace import Pace

RATE_HZ = 8000


def moved(
    ppm: float, seconds: float, *, frame_ms: int = 20, jitter_s: float = 0.0, seed: int = 1
) -> float:
    """What a pace says in all of a clock that is off by `ppm`."""
    chance = random.Random(seed)
    pace = Pace(RATE_HZ, 0.0)
    frame_s = frame_ms / 1000 / (1 + ppm / 1e6)
    total = 0.0
    at = 0.0
    for n in range(1, round(seconds / frame_s)):
        at = max(at, n * frame_s + chance.random() ** 3 * jitter_s)
        total += pace.heard(RATE_HZ * frame_ms // 1000, at)
    return total


@pytest.mark.parametrize("ppm", [-200.0, 0.0, 200.0])
@pytest.mark.parametrize("frame_ms", [20, 30, 40, 200])
def test_it_follows_the_clock_whatever_the_frames(ppm: float, frame_ms: int) -> None:
    # The first window and the last one are not told of.
    assert moved(ppm, 600, frame_ms=frame_ms) == pytest.approx(-600 * ppm / 1e6, abs=0.005)


def test_jitter_is_not_drift() -> None:
    assert moved(200, 600, jitter_s=0.08) == pytest.approx(-0.12, abs=0.006)


@pytest.mark.parametrize("away_s", [0.1, 5.0, 30.0])
def test_a_silence_or_a_stall_is_not_drift(away_s: float) -> None:
    pace = Pace(RATE_HZ, 0.0)
    total, at = 0.0, 0.0
    for n in range(6000):
        # Once nothing was sent, and once it came late and all at once.
        at = n * 0.02 + (away_s if n > 2000 else 0.0)
        if 4000 <= n < 4000 + away_s / 0.02:
            at = 4000 * 0.02 + 2 * away_s
        total += pace.heard(160, at)
    assert total == pytest.approx(0.0, abs=1e-6)
