"""Lateness is judged against the schedule that the frames themselves show."""

from __future__ import annotations

import pytest

from gateway.load.lateness import FrameClock

FRAME_S = 0.02


def late(arrivals: list[float], stretch: int = 1) -> list[float]:
    clock = FrameClock()
    for moment in arrivals:
        clock.arrived(moment, FRAME_S, stretch)
    clock.close()
    return [round(value, 6) for value in clock.late_s]


def test_frames_on_their_grid_are_on_time() -> None:
    assert late([10 + n * FRAME_S for n in range(50)]) == [0.0] * 50


def test_a_burst_sent_ahead_is_on_time() -> None:
    burst = [10.0] * 5
    steady = [10.0 + n * FRAME_S for n in range(1, 40)]
    assert max(late(burst + steady)) == 0.0


def test_a_burst_that_ran_further_ahead_makes_nothing_after_it_late() -> None:
    burst = [10.0] * 6
    steady = [10.018 + n * FRAME_S for n in range(1, 40)]
    assert max(late(burst + steady)) == 0.0


def test_one_early_frame_makes_no_other_late() -> None:
    arrivals = [10 + n * FRAME_S for n in range(40)]
    arrivals[9] -= 0.018
    assert max(late(arrivals)) < 1e-6


def test_one_late_frame_is_late_by_what_it_is() -> None:
    arrivals = [10 + n * FRAME_S for n in range(20)]
    arrivals[7] += 0.013
    assert late(arrivals)[7] == pytest.approx(0.013)
    assert sum(late(arrivals)) == pytest.approx(0.013)


def test_a_long_wait_is_a_stall_and_begins_a_new_schedule() -> None:
    clock = FrameClock()
    for moment in (1.0, 1.02, 1.04, 2.0, 2.02):
        clock.arrived(moment, FRAME_S, 1)
    clock.close()
    assert [round(s, 3) for s in clock.stalls_s] == [0.96]
    assert max(clock.late_s) < 1e-9


def test_messages_that_hold_more_than_a_stall_lasts_have_a_schedule_too() -> None:
    clock = FrameClock()
    message_s = 0.24
    for n in range(20):
        clock.arrived(1.0 + n * message_s + (0.03 if n == 7 else 0.0), message_s, 1)
    clock.close()
    assert not clock.stalls_s
    assert clock.late_s[7] == pytest.approx(0.03)
    assert sum(clock.late_s) == pytest.approx(0.03)


def test_a_pause_between_two_stretches_is_no_stall() -> None:
    clock = FrameClock()
    clock.arrived(1.0, FRAME_S, 1)
    clock.arrived(9.0, FRAME_S, 2)
    clock.close()
    assert not clock.stalls_s
    assert list(clock.late_s) == [0.0, 0.0]
