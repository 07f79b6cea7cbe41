"""Whole runs: over the wire to a real runtime process, as simulated calls, with a judging model."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway import demo
from gateway.agent.app.evaluations import Method
from gateway.config import Settings
from gateway.errors import AppError, GatewayError
from gateway.evaluate.judge import NO_MODEL
from gateway.evaluate.result import EvaluationResult, Line, Report, Verdict
from gateway.evaluate.run import Options, evaluate
from tests.agent.models.service import Service, service
from tests.agent.talk import APPS

GOLDENS = APPS / "goldens"


def run(path: Path, *names: str, settings: Any = None, **options: Any) -> Report:
    made = Settings.model_validate(settings or {})
    return evaluate(path, made, Options(names=names, **options), lambda words: None)


def verdicts(report: Report) -> dict[str, Verdict]:
    return {result.name: result.verdict for result in report.results}


def failed(result: EvaluationResult) -> list[Line]:
    lines = [line for turn in result.turns for line in turn.lines] + list(result.whole)
    return [line for line in lines if line.verdict is Verdict.FAILED]


@pytest.fixture(scope="module")
def in_text() -> dict[str, EvaluationResult]:
    """All evaluations of the app in text, by name."""
    return {result.name: result for result in run(GOLDENS).results}


GOOD = sorted(path.name.replace("_", " ") for path in (GOLDENS / "evaluations").glob("Good*"))


@pytest.mark.parametrize("name", GOOD)
def test_what_the_agent_does_as_expected_passes(
    in_text: dict[str, EvaluationResult], name: str
) -> None:
    assert in_text[name].verdict is Verdict.PASSED, failed(in_text[name])


@pytest.mark.parametrize(
    ("name", "line", "difference"),
    [
        ("Bad number", 7, "alike by 2 of 4, 3 are needed"),
        ("Bad equals", 6, "the words are not the same"),
        ("Bad contains", 6, "the response does not contain the words"),
        ("Bad silence", 6, "alike by 0 of 4, 3 are needed"),
        ("Bad extra words", 6, "alike by 2 of 4, 3 are needed"),
        ("Bad call", 6, "it was not called"),
        ("Bad arguments", 6, 'args.number: expected "4712", got "4711"'),
        ("Bad extra call", 0, 'not expected: find_parcel(number="4711")'),
        ("Bad no calls", 6, 'called find_parcel(number="4711")'),
        ("Bad payload", 6, 'card.number: expected "4711", got 4711'),
        ("Bad hand-over", 6, "handed over to Care"),
        ("Bad variable", 7, 'parcel: expected "4712", got "4711"'),
        ("Bad result", 7, 'day: expected "Sunday", got "Monday"'),
        ("Bad end", 6, "args.session_escalated: expected false, got true"),
    ],
)
def test_each_kind_of_difference_fails_with_its_line(
    in_text: dict[str, EvaluationResult], name: str, line: int, difference: str
) -> None:
    first = failed(in_text[name])[0]
    assert (first.line, first.difference[0]) == (line, difference)


def test_turns_after_the_end_never_come(in_text: dict[str, EvaluationResult]) -> None:
    [line] = in_text["Bad end"].turns[1].lines
    assert line.difference == ("the session had ended before",)


def test_what_cannot_be_judged_here_is_not_run_and_no_pass(
    in_text: dict[str, EvaluationResult],
) -> None:
    assert in_text["Not heard"].reason == "its user input is audio"
    assert in_text["Scenario"].reason == NO_MODEL
    assert in_text["Criteria"].whole == (Line(Verdict.NOT_RUN, "meets Polite", (NO_MODEL,)),)
    names = ("Not heard", "Scenario", "Criteria")
    assert {in_text[name].verdict for name in names} == {Verdict.NOT_RUN}


@pytest.mark.parametrize(
    ("method", "good"),
    [(None, [False, False, True]), (Method.STABLE, [False, True, True])],
)
def test_a_turn_can_follow_what_should_have_been(method: Method | None, good: list[bool]) -> None:
    [result] = run(GOLDENS, "^Method$", method=method).results
    assert [turn.verdict is Verdict.PASSED for turn in result.turns] == good


def test_fakes_of_the_app_answer_where_its_settings_say_so(tmp_path: Path) -> None:
    app = shutil.copytree(GOLDENS, tmp_path / "app")
    text = (app / "app.yaml").read_text()
    settings = "evaluationSettings:\n  goldenEvaluationToolCallBehaviour: FAKE\n"
    (app / "app.yaml").write_text(text.replace("evaluationSettings:\n", settings))
    [result] = run(app, "^Bad result$").results
    assert result.verdict is Verdict.PASSED


def test_goldens_are_replayed_where_no_model_is_configured(tmp_path: Path) -> None:
    app = shutil.copytree(GOLDENS, tmp_path / "app")
    (app / "scripted_model.yaml").unlink()
    for folder in (app / "evaluations").iterdir():
        if not folder.name.startswith(("Good_parcel", "Good_card", "Good_hand-over")):
            shutil.rmtree(folder)
    (app / "evaluations/Good_parcel/Good_parcel.yaml").write_text(
        (GOLDENS / "evaluations/Good_parcel/Good_parcel.yaml").read_text().replace("Monday", "May")
    )
    report = run(app)
    assert report.model == "replay"
    found = {result.name: failed(result) for result in report.results}
    assert not found["Good card"]
    assert not found["Good hand-over"]
    # The words are the golden's own, the tools are real.
    assert [line.difference for line in found["Good parcel"]] == [
        ('day: expected "May", got "Monday"',)
    ]


# ---- as a phone call


def test_a_call_is_spoken_recognised_and_judged_by_what_was_heard(tmp_path: Path) -> None:
    report = run(demo.TEMPLATE_PATH, channel="twilio", calls=tmp_path)
    assert verdicts(report) == {"A person": Verdict.PASSED, "Opening hours": Verdict.PASSED}
    opening = report.results[1]
    assert "monday" in opening.turns[1].understood.lower()
    assert (tmp_path / "Opening_hours/call.wav").is_file()


@pytest.mark.parametrize("channel", ["text", "twilio"])
def test_the_demo_does_what_its_goldens_say(channel: str) -> None:
    """Keys, a silence, a hand-over, payloads and the end of the call among it."""
    report = run(demo.APP_PATH, channel=channel)
    assert set(verdicts(report).values()) == {Verdict.PASSED}, report.to_json()
    assert len(report.results) == 4


def test_what_a_caller_cannot_do_is_not_run() -> None:
    report = run(GOLDENS, "moved", "picture", "Not heard", "Scenario", channel="twilio")
    assert {result.name: result.reason for result in report.results} == {
        "Good moved": "a caller cannot move the conversation to another agent",
        "Good moved later": "a caller cannot move the conversation to another agent",
        "Good picture": "a caller cannot send image",
        "Not heard": "a caller cannot send audio",
        "Scenario": "scenarios are run in text only",
    }


def test_keys_are_not_pressed_where_none_come() -> None:
    report = run(demo.APP_PATH, "keypad", channel="sinch")
    assert [result.reason for result in report.results] == ["no keys come by this dialect"]


def test_functions_of_the_client_answer_where_the_dialect_has_a_client() -> None:
    [result] = run(GOLDENS, "map", channel="ces").results
    assert result.verdict is Verdict.PASSED, failed(result)
    assert result.turns[0].said == ("You see the harbour now.",)
    [result] = run(GOLDENS, "map", channel="twilio").results
    assert result.reason == "the caller has no functions by this dialect"


def test_mocks_variables_and_a_hang_up_reach_a_call() -> None:
    report = run(GOLDENS, "mock", "variables", "hang-up", channel="ces", as_text=True)
    assert set(verdicts(report).values()) == {Verdict.PASSED}, report.to_json()


# ---- with a language model that judges


def answered(text: str) -> dict[str, Any]:
    """A chunk of an OpenAI-compatible stream that says this and ends."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


async def run_judged(
    service: Service, answers: Sequence[str], *names: str, provider: str = "openai"
) -> Report:
    """Run with a judge that gives these answers, in their order."""
    for answer in answers:
        if provider == "gemini":
            content = {"role": "model", "parts": [{"text": answer}]}
            service.answer({"candidates": [{"content": content, "finishReason": "STOP"}]})
        else:
            service.answer(answered(answer), "data: [DONE]\n\n")
    url = service.url if provider == "gemini" else f"{service.url}/v1"
    judge = {"provider": provider, "url": url, "name": "judge", "api_key": "k"}
    with ThreadPoolExecutor(1) as pool:
        work = partial(run, GOLDENS, *names, settings={"judge": judge})
        report = await asyncio.get_running_loop().run_in_executor(pool, work)
    assert not service.replies
    return report


def asked(service: Service) -> list[str]:
    """What the model was asked: the last message of each request."""
    return [seen.body["messages"][-1]["content"] for seen in service.requests]


async def test_a_scenario_is_played_and_judged_by_the_model() -> None:
    async with service() as model:
        report = await run_judged(
            model,
            ["Where is parcel number 4711?", "<done>", "YES, it says Friday.", "Yes", "NO: rude"],
            "^Scenario$",
        )
        [result] = report.results
        first = model.requests[0].body["messages"][0]["content"]
        assert "Find out when parcel 4711 comes." in first
        assert "parcel number: 4711" in first
        # The user hears what the agent says; the mock's answer is what the agent knows.
        assert "Hello Ada. Which parcel?" in asked(model)[0]
        assert "Parcel 4711 comes on Friday." in asked(model)[1]
    assert [turn.user for turn in result.turns] == [
        "event session start",
        "Where is parcel number 4711?",
    ]
    assert result.turns[1].called == ('find_parcel(number="4711")',)
    assert result.turns[1].said == ("Parcel 4711 comes on Friday.",)
    assert [(line.verdict, line.text) for line in result.whole] == [
        (Verdict.PASSED, 'calls find_parcel(number="4711")'),
        (Verdict.PASSED, 'says "Parcel 4711 comes on Friday."'),
        (Verdict.PASSED, "the user's goal is met"),
        (Verdict.PASSED, "The agent names the day."),
        (Verdict.FAILED, "meets Polite"),
    ]
    assert result.whole[-1].difference == ("rude",)
    assert result.verdict is Verdict.FAILED


async def test_gemini_plays_and_judges_a_scenario_too() -> None:
    async with service() as model:
        answers = ["Where is parcel number 4711?", "<done>", "YES.", "YES", "YES"]
        report = await run_judged(model, answers, "^Scenario$", provider="gemini")
        assert "Find out when parcel 4711 comes." in json.dumps(model.requests[0].body)
    [result] = report.results
    assert result.turns[1].called == ('find_parcel(number="4711")',)
    assert result.verdict is Verdict.PASSED


async def test_a_scenario_whose_user_never_ends_has_its_turns_and_no_more() -> None:
    async with service() as model:
        answers = ["Where is parcel number 4711?"] * 4 + ["NO", "NO", "NO"]
        report = await run_judged(model, answers, "^Scenario$")
    [result] = report.results
    assert len(result.turns) == 5
    assert result.verdict is Verdict.FAILED


async def test_likeness_and_criteria_of_goldens_are_the_models_to_judge() -> None:
    async with service() as model:
        report = await run_judged(model, ["2", "Yes."], "^Bad number", "^Bad equals", "^Crit")
    # Exact comparisons and equal words are nobody's opinion.
    assert verdicts(report) == {
        "Bad equals": Verdict.FAILED,
        "Bad number": Verdict.FAILED,
        "Criteria": Verdict.PASSED,
    }


async def test_a_judge_that_gives_no_verdict_fails_what_it_was_asked_about_alone() -> None:
    unclear = "Well, it depends."
    async with service() as model:
        report = await run_judged(model, [unclear, unclear], "^Criteria$", "^Bad number$")
    bad, criteria = report.results
    assert [line.verdict for line in bad.turns[0].lines] == [Verdict.PASSED, Verdict.FAILED]
    for line in (bad.turns[0].lines[1], criteria.whole[0]):
        assert line.difference[0].startswith("model.judge: ")
    assert criteria.turns[0].verdict is Verdict.PASSED
    assert criteria.verdict is Verdict.FAILED


# ---- what is refused


def test_an_app_without_evaluations_is_told_what_to_add() -> None:
    with pytest.raises(AppError) as caught:
        run(APPS / "tools")
    assert caught.value.code == "evaluation.none"
    assert "golden" in (caught.value.hint or "")


def test_an_app_that_cannot_run_is_bad_input(tmp_path: Path) -> None:
    app = shutil.copytree(GOLDENS, tmp_path / "app")
    (app / "tools/find_parcel/code.py").write_text("def find_parcel(:\n")
    with pytest.raises(AppError) as caught:
        run(app, "Good card")
    assert caught.value.code.startswith(("app.", "runtime."))
    assert caught.value.where


@pytest.mark.parametrize(
    ("names", "options", "code"),
    [
        (["nothing like it"], {}, "evaluation.selection"),
        (["("], {}, "evaluation.pattern"),
        ([], {"dataset": "none"}, "evaluation.dataset"),
        ([], {"channel": "fax"}, "scenario.channel"),
    ],
)
def test_a_choice_of_nothing_is_refused(
    names: list[str], options: dict[str, Any], code: str
) -> None:
    with pytest.raises(GatewayError) as caught:
        run(GOLDENS, *names, **options)
    assert caught.value.code == code
    assert caught.value.hint or code == "evaluation.pattern"


def test_a_dataset_is_what_it_names_and_what_names_it() -> None:
    report = run(GOLDENS, dataset="Good ones")
    assert set(verdicts(report)) == {"Good card", "Good parcel"}


def test_a_report_is_json(in_text: dict[str, EvaluationResult]) -> None:
    report = Report("app", "text", "scripted", tuple(in_text.values()))
    told = json.loads(json.dumps(report.to_json()))
    assert (told["passed"], told["failed"], told["not_run"]) == (len(GOOD), 16, 3)
