"""Every expectation gets its verdict, with a detail that helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.simulate.caller import StepSpan
from gateway.simulate.judge import judge
from gateway.simulate.result import RunResult, Verdict
from gateway.simulate.scenario import parse_scenario
from tests.simulate import sample


def verdicts(expect: str) -> Sequence[Verdict]:
    scenario = parse_scenario(f"caller: [{{hangup: true}}]\nexpect:\n{expect}", Path("x.yaml"))
    return judge(replace(sample.log(), scenario=scenario))


@pytest.mark.parametrize(
    ("expect", "ok", "detail"),
    [
        ("- heard: WELCOME to", True, "at 0.40s"),
        ("- heard: ^how can", False, "heard: Welcome"),
        ("- heard: today\\?$", True, "at 0.40s"),
        ("- heard: today. there is", True, "at 0.40s"),
        ("- heard: until noon", False, "heard: Welcome"),
        ("- heard: power cut\n  within: 5s", True, "at 10.30s"),
        ("- heard: power cut\n  within: 2s", False, "heard only at 10.30s"),
        ("- heard: welcome\n  within: 1s", True, "at 0.40s"),
        ("- heard: power cut\n  after: {kind: user_text}", True, "at 10.30s"),
        ("- heard: welcome\n  after: {kind: user_text}", False, "heard only at 0.40s"),
        ("- heard: welcome\n  before: {kind: user_text}", True, "at 0.40s"),
        ("- heard: power cut\n  before: user_text", False, "heard only at 10.30s"),
        ("- heard: welcome\n  after: inactivity", False, "after: inactivity never happened"),
        ("- heard: welcome\n  before: transfer", False, "before: transfer never happened"),
        ("- not_heard: internal error", True, ""),
        ("- not_heard: welcome", False, "at 0.40s: Welcome"),
        ("- not_heard: welcome\n  after: user_text", True, ""),
        ("- not_heard: until noon", True, ""),
        ("- event: barge_in", True, "at 14.10s"),
        ("- event: {kind: barge_in, by: dtmf}", False, "1 of its kind, the last with {'by'"),
        ("- event: inactivity", False, "there is no inactivity"),
        ("- event: {kind: utterance_ended, count: 3}", True, "3 times at 3.90s, 10.20s, 14.10s"),
        ("- event: {kind: utterance_ended, count: 2}", False, "3 times"),
        ("- event: transfer\n  count: 0", True, "0 times"),
        ("- event: user_text\n  after: barge_in", True, "at 15.50s"),
        ("- event: user_text\n  after: call_ended", False, "only at 6.60s"),
        ("- event: barge_in\n  within: 9s", True, "at 14.10s"),
        ("- event: barge_in\n  within: 100ms", True, "at 14.10s"),
        ("- event: {kind: utterance_ended, id: 2}\n  within: 4s", False, "only at 10.20s"),
        ("- event: utterance_ended\n  count: 1\n  before: user_text", True, "1 times at 3.90s"),
        ("- ended: completed", True, ""),
        ("- ended: remote_hangup", False, "it ended completed"),
    ],
)
def test_verdict(expect: str, ok: bool, detail: str) -> None:
    (verdict,) = verdicts(expect)
    assert (verdict.ok, verdict.detail[: len(detail)]) == (ok, detail)
    assert str(verdict).startswith("✓" if ok else "✗")


def test_a_caller_who_could_not_do_a_step_fails_the_run() -> None:
    vain = StepSpan(3, "wait", "wait for agent_quiet", 9, 0.0, problem="waited 2 s in vain")
    (verdict,) = judge(replace(sample.log(), scenario=_nothing_expected(), steps=[vain]))
    assert verdict == Verdict(False, "caller: wait for agent_quiet", "waited 2 s in vain", 9)


def test_a_message_that_the_platform_refuses_fails_the_run() -> None:
    log = replace(sample.log(), scenario=_nothing_expected(), complaints=["a mark without a name"])
    result = RunResult(log, judge(log))
    assert not result.ok
    assert result.verdicts[0].detail == "a mark without a name"


def test_with_nothing_expected_nothing_fails() -> None:
    log = replace(sample.log(), scenario=_nothing_expected())
    assert RunResult(log, judge(log)).ok


def test_a_call_whose_end_nobody_saw() -> None:
    scenario = parse_scenario("caller: [{hangup: true}]\nexpect: [{ended: completed}]", Path("x"))
    (verdict,) = judge(replace(sample.log(), scenario=scenario, timeline=[]))
    assert verdict.detail == "it ended not at all"


def _nothing_expected():  # type: ignore[no-untyped-def]
    return parse_scenario("caller: [{hangup: true}]", Path("x.yaml"))
