"""When a connection is replaced, judged in time that the tests make."""

from __future__ import annotations

import pytest

from gateway.call.events import RuntimeAudio, RuntimeText, RuntimeTranscript, RuntimeTurnCompleted
from gateway.runtime.watch import PATIENCE_S, QUIET_S, LinkRules, LinkWatch, Verdict

AGE_S = 3300.0


def aged() -> LinkWatch:
    watch = LinkWatch(LinkRules(renew_s=AGE_S))
    watch.opened(0.0)
    return watch


def test_a_young_link_is_kept_however_quiet() -> None:
    assert aged().verdict(AGE_S - 0.001) is Verdict.KEEP


def test_an_old_link_is_replaced_after_a_quiet_second() -> None:
    watch = aged()
    assert watch.verdict(AGE_S + QUIET_S - 0.001) is Verdict.KEEP
    assert watch.verdict(AGE_S + QUIET_S) is Verdict.RENEW


@pytest.mark.parametrize("item", [RuntimeText("one", 3), RuntimeAudio(b"\0\0", 3)])
def test_not_in_the_middle_of_an_answer(item: RuntimeText | RuntimeAudio) -> None:
    watch = aged()
    watch.message([item], AGE_S - 1)
    assert watch.verdict(AGE_S + 30) is Verdict.KEEP
    watch.message([RuntimeTurnCompleted(3)], AGE_S + 30)
    assert watch.verdict(AGE_S + 30) is Verdict.RENEW


def test_not_while_the_caller_speaks() -> None:
    watch = aged()
    for second in range(20):
        watch.active(AGE_S + second)
        assert watch.verdict(AGE_S + second + 0.9) is Verdict.KEEP
    watch.message([RuntimeTranscript("and")], AGE_S + 20)
    assert watch.verdict(AGE_S + 20 + QUIET_S - 0.001) is Verdict.KEEP
    assert watch.verdict(AGE_S + 20 + QUIET_S) is Verdict.RENEW


def test_a_moment_that_never_comes_is_not_waited_for_beyond_the_hour() -> None:
    watch = aged()
    watch.message([RuntimeText("endless", 1)], AGE_S)
    watch.active(AGE_S + PATIENCE_S)
    assert watch.verdict(AGE_S + PATIENCE_S - 0.001) is Verdict.KEEP
    assert watch.verdict(AGE_S + PATIENCE_S) is Verdict.RENEW
    assert AGE_S + PATIENCE_S < 3600


def test_silence_counts_from_what_the_caller_said_and_nothing_came_after() -> None:
    watch = LinkWatch(LinkRules(silence_s=60.0))
    watch.opened(0.0)
    watch.asked(40.0)
    watch.message([], 50.0)
    watch.asked(70.0)
    watch.asked(100.0)
    assert watch.verdict(129.9) is Verdict.KEEP
    assert watch.verdict(130.0) is Verdict.DEAD


def test_where_nobody_says_anything_silence_is_no_death() -> None:
    watch = LinkWatch(LinkRules(silence_s=60.0))
    watch.opened(0.0)
    watch.message([RuntimeTurnCompleted(1)], 5.0)
    assert watch.verdict(3600.0) is Verdict.KEEP


def test_what_a_link_owes_the_next_one_owes() -> None:
    watch = LinkWatch(LinkRules(silence_s=60.0))
    watch.opened(0.0)
    watch.asked(1.0)
    watch.opened(61.0)
    assert watch.verdict(120.9) is Verdict.KEEP
    assert watch.verdict(121.0) is Verdict.DEAD


def test_the_next_look_is_never_too_late() -> None:
    watch = LinkWatch(LinkRules(renew_s=AGE_S, silence_s=60.0))
    watch.opened(0.0)
    assert watch.wait_s(10.0) == 15.0
    watch.asked(10.0)
    assert watch.wait_s(20.0) == 50.0
    watch.message([], AGE_S - 10)
    assert watch.wait_s(AGE_S - 10) == 10.0
    assert LinkWatch(LinkRules()).wait_s(5.0) is None
