"""Percentiles are nearest-rank, and a run that measured itself is void."""

from __future__ import annotations

from array import array

import pytest

from gateway.load.result import LoadResult, Spread, Tally, percentile


@pytest.mark.parametrize(
    ("percent", "value"), [(50, 50), (95, 95), (99, 99), (99.9, 100), (100, 100), (1, 1)]
)
def test_percentiles(percent: float, value: float) -> None:
    assert percentile([float(n) for n in range(1, 101)], percent) == value


def test_nothing_measured_is_zero() -> None:
    assert Spread.of([]) == Spread(0, 0, 0, 0, 0, 0)


def tally() -> Tally:
    counted = Tally(started=2, completed=2)
    counted.late_s = array("d", [0.0, 0.005, 0.02, 0.001])
    counted.own_late_s = array("d", [0.001])
    return counted


def test_a_good_run() -> None:
    result = LoadResult.of(tally(), "twilio", 2, 10.0, 0.3)
    assert result.ok
    assert result.frames_within_10_ms == 0.75
    document = result.to_json()
    assert document["frame_late_ms"]["max"] == 20.0
    assert document["generator_cpu_share"] == 0.3


def test_a_busy_generator_makes_the_run_void() -> None:
    result = LoadResult.of(tally(), "twilio", 2, 10.0, 0.71)
    assert not result.ok
    assert "71%" in result.void[0]


def test_so_does_a_late_one() -> None:
    counted = tally()
    counted.own_late_s = array("d", [0.03])
    assert "30.0 ms late" in LoadResult.of(counted, "twilio", 2, 10.0, 0.1).void[0]


@pytest.mark.parametrize("name", ["refused", "failed"])
def test_a_call_that_was_not_served_fails_the_run(name: str) -> None:
    counted = tally()
    getattr(counted, name)["503"] += 1
    assert not LoadResult.of(counted, "twilio", 2, 10.0, 0.1).ok


def test_a_run_without_a_call_is_no_success() -> None:
    assert not LoadResult.of(Tally(), "twilio", 2, 10.0, 0.1).ok
