"""Which calls a process has, and has had lately."""

from __future__ import annotations

from gateway.platforms import known_calls
from gateway.platforms.known_calls import KnownCalls


def test_a_finished_call_is_refused_for_a_while_and_a_live_one_always() -> None:
    known = KnownCalls(10.0)
    assert known.enter("twilio", "CA1", 0.0) == ""
    assert "already" in known.enter("twilio", "CA1", 1000.0)
    assert known.enter("telnyx", "CA1", 1000.0) == ""
    known.leave("twilio", "CA1", 1000.0)
    assert "over" in known.enter("twilio", "CA1", 1009.9)
    assert known.enter("twilio", "CA1", 1010.1) == ""


def test_no_time_means_that_only_live_ones_count() -> None:
    known = KnownCalls(0.0)
    known.enter("twilio", "CA1", 0.0)
    known.leave("twilio", "CA1", 1.0)
    assert known.enter("twilio", "CA1", 1.0) == ""


def test_the_oldest_is_forgotten_first() -> None:
    known = KnownCalls(10.0)
    for n in range(known_calls.MAX_FINISHED + 1):
        known.enter("twilio", f"CA{n}", 0.0)
        known.leave("twilio", f"CA{n}", 0.0)
    assert known.enter("twilio", "CA1", 0.0) != ""
    assert known.enter("twilio", "CA0", 0.0) == ""
