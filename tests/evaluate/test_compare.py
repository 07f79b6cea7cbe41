"""How a golden turn is compared with what the agent did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.evaluate.result import Verdict
from tests.evaluate.made import (
    called,
    calls,
    did,
    expect,
    failures,
    judged,
    said,
    says,
    turn_of,
)

# ---- words


def test_the_whole_of_what_was_said_counts(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, says("Good morning. How can I help?"))
    assert not failures(judged(turn, did(said("Good morning."), said("How can I help?"))))
    more = did(said("Good morning."), said("How can I help?"), said("We also sell fine hats now."))
    assert failures(judged(turn, more))


def test_several_responses_share_what_was_said_in_order(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, says("Good morning."), says("Your parcel is here."))
    right = did(said("Good"), said("morning."), said("Your parcel is here."))
    assert not failures(judged(turn, right))
    wrong = judged(turn, did(said("Your parcel is here."), said("Good morning.")))
    assert failures(wrong)


def test_nothing_said_is_a_difference(tmp_path: Path) -> None:
    [line] = failures(judged(turn_of(tmp_path, says("Hello.")), did()))
    assert line.difference == ("alike by 0 of 4, 3 are needed", "expected: Hello.", "got:      ")


def test_the_threshold_decides(tmp_path: Path) -> None:
    said_so = did(said("It comes on Monday."))
    step = says("Your parcel comes on Monday.")
    assert failures(judged(turn_of(tmp_path / "a", step), said_so))
    lower = {"semanticSimilaritySuccessThreshold": 2}
    turn = turn_of(tmp_path / "b", step, turnLevelMetricsThresholds=lower)
    assert not failures(judged(turn, said_so))


@pytest.mark.parametrize(
    ("comparison", "said_so", "good"),
    [
        ("EQUALS", "Hello  there.", True),
        ("EQUALS", "hello there.", False),
        ("CONTAINS", "Oh, hello there, Ada.", True),
        ("CONTAINS", "hello, you there", False),
    ],
)
def test_words_can_be_compared_exactly(
    tmp_path: Path, comparison: str, said_so: str, good: bool
) -> None:
    turn = turn_of(tmp_path, says("Hello there.", comparisonType=comparison))
    assert bool(failures(judged(turn, did(said(said_so))))) is not good


def test_words_of_payloads_are_words(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, says("Please hold.", "Mind the gap."))
    heard = did(
        {"payload": {"audioUri": "a.wav", "transcript": "Please hold."}},
        {"payload": {"customizedResponse": {"content": "Mind the gap."}}},
    )
    assert not failures(judged(turn, heard))


def test_what_is_to_be_skipped_is_skipped(tmp_path: Path) -> None:
    off = {"enableSemanticSimilarityMetrics": False}
    turn = turn_of(
        tmp_path,
        says("Something else.", skipEvaluation=True),
        calls("never", skipEvaluation=True),
        says("Or this.", agentResponseSemanticSimilarityMetricsConfigOverride=off),
    )
    result = judged(turn, did(said("Hello.")))
    assert [line.verdict for line in result.lines] == [Verdict.SKIPPED] * 3
    assert result.verdict is Verdict.PASSED


# ---- payloads


def test_payloads_are_compared_exactly(tmp_path: Path) -> None:
    wanted = expect(agentResponse={"chunks": [{"payload": {"card": {"n": 1, "tags": ["a"]}}}]})
    turn = turn_of(tmp_path, wanted)
    assert not failures(judged(turn, did({"payload": {"card": {"tags": ["a"], "n": 1.0}}})))
    [line] = failures(judged(turn, did({"payload": {"card": {"tags": ["b"], "n": 1}}})))
    assert line.difference == ('card.tags[0]: expected "a", got "b"',)
    [line] = failures(judged(turn, did(said("Hello."))))
    assert line.difference == ("no payload was sent",)


# ---- calls


def test_the_named_arguments_must_be_right_others_may_be_there(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, calls("find", {"number": "AB 12", "count": 2}))
    right = did(called("find", number="ab 12", count=2.0, more=True))
    assert not failures(judged(turn, right))
    [line] = failures(judged(turn, did(called("find", number="AB 13", count=2))))
    assert line.difference == ('args.number: expected "AB 12", got "AB 13"',)


def test_a_share_of_the_arguments_may_do(tmp_path: Path) -> None:
    half = {"toolInvocationParameterCorrectnessThreshold": 0.5}
    step = calls("find", {"a": 1, "b": 2}, expectationLevelMetricsThresholdsOverride=half)
    turn = turn_of(tmp_path, step)
    assert not failures(judged(turn, did(called("find", a=1, b=3))))
    assert failures(judged(turn, did(called("find", a=2, b=3))))


def test_a_call_answers_one_expectation_only_whatever_the_order(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, calls("find", {"n": 1}), calls("find", {"n": 2}))
    assert not failures(judged(turn, did(called("find", n=2), called("find", n=1))))
    [line] = failures(judged(turn, did(called("find", n=2))))
    assert line.difference[0] == "it was not called"


def test_tools_go_by_the_names_that_models_use(tmp_path: Path) -> None:
    turn = turn_of(
        tmp_path,
        expect(toolCall={"toolsetTool": {"toolset": "crm", "toolId": "get_user"}}),
        expect(toolCall={"tool": "projects/p/tools/Find Parcel"}),
    )
    assert not failures(judged(turn, did(called("crm_get_user"), called("Find_Parcel"))))


def test_further_calls_fail_unless_they_are_allowed(tmp_path: Path) -> None:
    did_more = did(called("find"), called("end_session", reason="x"))
    [line] = failures(judged(turn_of(tmp_path / "a", calls("find")), did_more))
    assert line.difference == ('not expected: end_session(reason="x")',)
    allowed = {"extraToolCallBehavior": "ALLOW"}
    turn = turn_of(tmp_path / "b", calls("find"), toolMatchingSettings=allowed)
    assert not failures(judged(turn, did_more))


def test_no_calls_means_none_even_where_more_are_allowed(tmp_path: Path) -> None:
    allowed = {"extraToolCallBehavior": "ALLOW"}
    turn = turn_of(tmp_path, expect(noToolCalls=True), toolMatchingSettings=allowed)
    assert not failures(judged(turn, did(said("Hello."))))
    [line] = failures(judged(turn, did(called("find"))))
    assert line.difference == ("called find()",)


def test_enough_right_calls_forgive_the_wrong_ones(tmp_path: Path) -> None:
    steps = [calls("a"), calls("b"), calls("c")]
    two_of_three = did(called("a"), called("b"))
    levels = {"overallToolInvocationCorrectnessThreshold": 0.6}
    turn = turn_of(tmp_path / "a", *steps, turnLevelMetricsThresholds=levels)
    result = judged(turn, two_of_three)
    assert result.verdict is Verdict.PASSED
    assert result.lines[2].text == "calls c()  (tolerated)"
    assert failures(judged(turn, did(called("a"))))


# ---- the rest


def test_a_hand_over_goes_to_the_named_agent(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, expect(agentTransfer={"targetAgent": "projects/p/agents/Care"}))
    moved = {"agentTransfer": {"targetAgent": "projects/x/agents/1", "displayName": "Care"}}
    assert not failures(judged(turn, did(called("transfer_to_agent", agent_name="Care"), moved)))
    [line] = failures(judged(turn, did()))
    assert line.difference == ("handed over to nobody",)
    by_folder = turn_of(tmp_path / "b", expect(agentTransfer={"targetAgent": "Care_Team"}))
    there = {"agentTransfer": {"targetAgent": "", "displayName": "Care Team"}}
    assert not failures(judged(by_folder, did(there)))


def test_variables_have_their_values_at_the_end_of_the_turn(tmp_path: Path) -> None:
    turn = turn_of(tmp_path, expect(updatedVariables={"a": 1, "b": {"c": [True]}}))
    assert not failures(judged(turn, did(), {"a": 1, "b": {"c": [True]}, "d": 5}))
    [line] = failures(judged(turn, did(), {"a": 2}))
    assert line.difference == (
        "a: expected 1, got 2",
        'b: missing, expected {"c": [true]}',
    )


@pytest.mark.parametrize("wanted", [{"output": {"day": 1}}, {"result": {"day": 1}}, {"day": 1}])
def test_a_result_is_the_same_in_either_wrapping(tmp_path: Path, wanted: dict[str, Any]) -> None:
    turn = turn_of(tmp_path, expect(toolResponse={"tool": "find", "response": wanted}))
    answer = {"toolResponse": {"displayName": "find", "response": {"result": {"day": 1}}}}
    assert not failures(judged(turn, did(answer)))
    other = {"toolResponse": {"displayName": "find", "response": {"result": {"day": 2}}}}
    [line] = failures(judged(turn, did(other)))
    assert line.difference == ("day: expected 1, got 2",)
    assert failures(judged(turn, did()))[0].difference == ("it was not called",)


def test_the_metadata_of_the_end_is_the_answer_of_end_session(tmp_path: Path) -> None:
    metadata = {"reason": "done", "params": {"queue": 7}}
    turn = turn_of(tmp_path, expect(toolResponse={"tool": "end_session", "response": metadata}))
    assert not failures(judged(turn, did(end=metadata)))
    [line] = failures(judged(turn, did(end={"reason": "done", "params": {"queue": 8}})))
    assert line.difference == ("params.queue: expected 7, got 8",)
