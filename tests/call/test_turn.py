"""Which agent turn is open, and what comes too late."""

from __future__ import annotations

from gateway.call.turn import Turn


def test_an_input_opens_and_a_completion_closes() -> None:
    turn = Turn(60.0)
    assert not turn.is_open
    turn.asked(0.0)
    assert turn.is_open
    assert turn.output(1, 1.0)
    assert turn.is_turn_open(1)
    assert turn.completed(1, 2.0)
    assert not turn.is_open
    assert turn.any_completed


def test_the_end_of_the_cancelled_turn_does_not_answer_the_new_input() -> None:
    turn = Turn(60.0)
    turn.output(3, 0.0)
    turn.interrupted(caller=True)
    turn.asked(1.0)
    assert turn.completed(3, 1.1)
    assert turn.is_open
    assert turn.output(4, 1.2)
    turn.completed(4, 1.3)
    assert not turn.is_open


def test_outputs_of_an_interrupted_turn_are_too_late_and_newer_ones_are_not() -> None:
    turn = Turn(60.0)
    turn.output(3, 0.0)
    turn.interrupted(caller=True)
    assert not turn.output(3, 0.1)
    assert not turn.output(2, 0.1)
    assert turn.output(4, 0.1)


def test_a_runtime_without_turn_indices_is_understood() -> None:
    turn = Turn(60.0)
    turn.asked(0.0)
    assert turn.output(0, 0.1)
    turn.interrupted(caller=True)
    turn.asked(0.2)
    assert turn.output(0, 0.3)
    turn.completed(0, 0.4)
    assert not turn.is_open


def test_a_turn_may_be_completed_more_than_once() -> None:
    turn = Turn(60.0)
    turn.output(1, 0.0)
    assert turn.completed(1, 0.1)
    assert not turn.completed(1, 0.2)
    turn.output(1, 0.3)
    assert turn.is_open
    assert turn.completed(1, 0.4)
    assert not turn.is_open


def test_silence_in_an_open_turn_is_bounded_and_outputs_defer_it() -> None:
    turn = Turn(10.0)
    turn.asked(0.0)
    assert not turn.timed_out(9.9)
    turn.output(1, 9.0)
    assert not turn.timed_out(18.9)
    assert turn.timed_out(19.0)
    turn.completed(1, 19.0)
    assert not turn.timed_out(1000.0)


def test_an_interruption_waits_for_the_callers_words() -> None:
    turn = Turn(10.0)
    turn.output(1, 0.0)
    turn.interrupted(caller=True)
    assert turn.caller_open
    assert not turn.timed_out(100.0)
    turn.asked(100.0)
    assert not turn.caller_open
