"""Evaluations are read with their lines; what cannot be run is refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.app import read_app
from gateway.agent.app.check import check_app
from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.app.evaluations import (
    NOTHING_INVENTED,
    Comparison,
    EvaluationSettings,
    Kind,
    Method,
    Suite,
    Thresholds,
    UserGoal,
    UserInput,
    has_goldens,
)
from gateway.agent.app.read import read_files
from gateway.errors import AppError
from tests.agent.app.memory import MemoryFiles
from tests.agent.made import made_app, make_app

FILE = "evaluations/E/E.yaml"
MINIMAL = {"app.yaml": "rootAgent: A\n", "agents/A/A.yaml": "displayName: A\n"}
KEYS = [
    "turns",
    "steps",
    "userInput",
    "expectation",
    "agentTransfer",
    "targetAgent",
    "text",
    "event",
    "dtmf",
    "variables",
    "note",
    "agentResponse",
    "chunks",
    "toolCall",
    "tool",
    "args",
    "noToolCalls",
    "updatedVariables",
    "comparisonType",
    "task",
    "userFacts",
    "maxTurns",
    "rubrics",
    "scenarioExpectations",
    "toolExpectation",
    "evaluationExpectations",
]


def read(folder: Path, text: str, app: dict[str, Any] | None = None, **files: Any) -> Suite:
    return read_evaluations(made_app(folder, app=app, files={FILE: text, **files}))


def test_inputs_and_expectations_come_in_their_order(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        """
displayName: Greeting
golden:
  turns:
    - steps:
        - userInput: {variables: {a: 1}}
        - userInput: {text: "<event>session start</event>"}
        - userInput: {text: "Hel", willContinue: true}
        - expectation: {note: n, comparisonType: CONTAINS, agentResponse: {chunks: [{text: x}]}}
        - agentTransfer: {targetAgent: projects/p/locations/l/apps/a/agents/Care}
""",
    )
    [evaluation] = suite.evaluations.values()
    assert (evaluation.name, evaluation.file, evaluation.line) == ("Greeting", FILE, 3)
    assert evaluation.golden is not None
    [turn] = evaluation.golden.turns
    variables, event, text = turn.inputs
    assert (variables.kind, variables.complete) == ("variables", False)
    # An event as text is the event.
    assert event == UserInput("event", {"event": {"event": "session start"}}, 7)
    assert (text.message, text.complete) == ({"text": "Hel", "willContinue": True}, False)
    [expectation] = turn.expectations
    assert expectation.kind is Kind.AGENT_RESPONSE
    assert expectation.comparison is Comparison.CONTAINS
    assert (expectation.note, expectation.line) == ("n", 9)


def test_calls_and_hand_overs_inside_a_response_are_expectations_too(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        """
golden:
  turns:
    - steps:
        - expectation:
            note: all at once
            agentResponse:
              role: Desk
              chunks:
                - text: One moment.
                - toolCall: {tool: find, args: {n: 1}}
                - agentTransfer: {targetAgent: Care}
""",
    )
    golden = suite.evaluations["E"].golden
    assert golden is not None
    found = [(one.kind, one.line, one.note) for one in golden.turns[0].expectations]
    assert found == [
        (Kind.AGENT_RESPONSE, 7, "all at once"),
        (Kind.TOOL_CALL, 11, "all at once"),
        (Kind.AGENT_TRANSFER, 12, "all at once"),
    ]


def test_snake_case_is_read_too(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        """
golden:
  turns:
    - steps:
        - user_input: {dtmf: "1"}
        - expectation: {no_tool_calls: true, skip_evaluation: true}
""",
    )
    golden = suite.evaluations["E"].golden
    assert golden is not None
    assert golden.turns[0].inputs[0].value == "1"
    assert golden.turns[0].expectations[0].skip


def test_thresholds_of_the_app_the_evaluation_and_the_turn_override_one_another(
    tmp_path: Path,
) -> None:
    suite = read(
        tmp_path,
        """
evaluationMetricsThresholdOverride:
  goldenEvaluationMetricsThresholds:
    expectationLevelMetricsThresholds: {toolInvocationParameterCorrectnessThreshold: 0.5}
golden:
  turns:
    - steps: []
    - turnLevelMetricsThresholdsOverride: {semanticSimilaritySuccessThreshold: 4}
      steps:
        - expectation:
            toolCall: {tool: t}
            expectationLevelMetricsThresholdsOverride:
              toolInvocationParameterCorrectnessThreshold: 0
""",
        app={
            "evaluationMetricsThresholds": {
                "goldenEvaluationMetricsThresholds": {
                    "turnLevelMetricsThresholds": {
                        "semanticSimilaritySuccessThreshold": 2.5,
                        "overallToolInvocationCorrectnessThreshold": 0.75,
                    },
                    "toolMatchingSettings": {"extraToolCallBehavior": "ALLOW"},
                }
            }
        },
    )
    golden = suite.evaluations["E"].golden
    assert golden is not None
    first, second = golden.turns
    assert first.thresholds == Thresholds(2.5, 0.75, 0.5, extra_calls_fail=False)
    assert second.thresholds == Thresholds(4, 0.75, 0.5, extra_calls_fail=False)
    assert second.expectations[0].arguments_threshold == 0


def test_the_settings_of_the_app(tmp_path: Path) -> None:
    chosen = {
        "goldenRunMethod": "STABLE",
        "goldenEvaluationToolCallBehaviour": "REAL",
        "scenarioEvaluationToolCallBehaviour": "FAKE",
        "scenarioConversationInitiator": "AGENT",
    }
    suite = read(tmp_path, "scenario: {task: x}\n", app={"evaluationSettings": chosen})
    assert suite.settings == EvaluationSettings(
        Method.STABLE, golden_fakes=False, scenario_fakes=True, agent_begins=True
    )


def test_the_defaults_are_the_platforms() -> None:
    assert EvaluationSettings() == EvaluationSettings(
        Method.NAIVE, golden_fakes=False, scenario_fakes=False, agent_begins=False
    )
    assert Thresholds() == Thresholds(3, 1.0, 1.0, extra_calls_fail=True)


def test_a_scenario_with_its_criteria(tmp_path: Path) -> None:
    suite = read(
        tmp_path,
        """
scenario:
  task: Buy a ticket.
  userFacts: [{name: seat, value: window}]
  rubrics: [It is friendly.]
  taskCompletionBehavior: TASK_REJECTED
  evaluationExpectations: [projects/p/evaluationExpectations/Polite]
  scenarioExpectations:
    - toolExpectation: {expectedToolCall: {tool: buy}, mockToolResponse: {response: {ok: true}}}
""",
        **{
            "evaluationExpectations/P/P.yaml": "displayName: Polite\nllmCriteria: {prompt: Kind?}\n"
        },
    )
    evaluation = suite.evaluations["E"]
    assert evaluation.scenario is not None
    assert evaluation.scenario.facts == {"seat": "window"}
    assert evaluation.scenario.max_turns == 100
    assert evaluation.scenario.goal is UserGoal.REJECTED
    assert evaluation.scenario.expectations[0].mock == {"response": {"ok": True}}
    assert [(one.name, one.prompt) for one in evaluation.criteria] == [("Polite", "Kind?")]


def test_datasets_name_their_members_and_members_name_their_datasets(tmp_path: Path) -> None:
    golden = "golden: {turns: [{steps: []}]}\n"
    suite = read(
        tmp_path,
        golden,
        **{
            "evaluations/F/F.yaml": "evaluationDatasets: [Night]\n" + golden,
            "evaluationDatasets/Night/Night.yaml": "evaluations: [E]\n",
        },
    )
    assert suite.datasets == {"Night": ("E", "F")}


STEPS = "golden:\n  turns:\n    - steps:\n        - "


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("displayName: x\n", "step", 1),
        ("golden: {}\nscenario: {}\n", "step", 1),
        ("golden:\n  turns: []\n", "empty", 1),
        ("golden:\n  turns: 5\n", "type", 2),
        (STEPS + "userInput: {}\n", "step", 4),
        (STEPS + "userInput: {text: a, dtmf: '1'}\n", "step", 4),
        (STEPS + "userInput: {text: 5}\n", "type", 4),
        (STEPS + "userInput: {event: {name: x}}\n", "input", 4),
        (STEPS + "userInput: {variables: {x: 99999999999999999999}}\n", "value", 4),
        (STEPS + "agentTransfer: {x: y}\n", "transfer", 4),
        (STEPS + "expectation: {note: x}\n", "step", 4),
        (STEPS + "expectation: {toolCall: {args: {}}}\n", "tool", 4),
        (STEPS + "expectation: {toolCall: {tool: t, args: 5}}\n", "type", 4),
        (STEPS + "userInput: {toolResponses: {toolResponses: 5}}\n", "type", 4),
        (STEPS + "userInput: {toolResponses: {toolResponses: [{response: {}}]}}\n", "tool", 4),
        (STEPS + "expectation:\n            comparisonType: NEAR\n            noToolCalls: true\n",
         "comparison", 5),
        (STEPS + "expectation: {noToolCalls: 1}\n", "type", 4),
        (STEPS + "{}\n", "step", 4),
        ("golden:\n  turns: [{}]\n  evaluationExpectations: [None]\n", "reference", 3),
        ("scenario: {rubrics: []}\n", "task", 1),
        ("scenario:\n  task: x\n  maxTurns: 101\n", "range", 3),
        ("scenario:\n  task: x\n  scenarioExpectations: [{}]\n", "step", 3),
    ],
)  # fmt: skip
def test_what_cannot_be_run_names_file_and_line(
    tmp_path: Path, text: str, code: str, line: int
) -> None:
    with pytest.raises(AppError) as caught:
        read(tmp_path, text)
    assert (caught.value.code, caught.value.where) == (f"evaluation.{code}", f"{FILE}:{line}")


def test_a_dataset_of_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        read(
            tmp_path,
            "golden: {turns: [{}]}\n",
            **{"evaluationDatasets/D/D.yaml": "displayName: D\nevaluations:\n  - E\n  - F\n"},
        )
    assert caught.value.where == "evaluationDatasets/D/D.yaml:4"


def test_app_check_reports_it(tmp_path: Path) -> None:
    app = make_app(tmp_path, files={FILE: STEPS + "userInput: {text: 5}\n"})
    [problem] = [p for p in check_app(app).problems if p.code.startswith("evaluation.")]
    assert (problem.file, problem.line) == (FILE, 4)


def test_whether_an_app_has_goldens(tmp_path: Path) -> None:
    app = make_app(tmp_path, files={FILE: "scenario: {task: x}\n"})
    assert not has_goldens(read_app(app))
    (app / FILE).write_text("golden: {turns: [{}]}\n")
    assert has_goldens(read_app(app))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(("golden", "scenario", "tags")), ANY, max_size=2), ANY)
def test_whatever_stands_in_the_file_is_read_or_refused_with_its_place(
    evaluation: dict[str, Any], step: Any
) -> None:
    contents = [evaluation, {"golden": {"turns": [{"steps": [step]}]}}, {"scenario": step}]
    for content in contents:
        files = {**MINIMAL, "evaluations/E/E.json": json.dumps(content)}
        app = read_files(MemoryFiles(files))
        refused = None
        try:
            read_evaluations(app)
        except AppError as error:
            refused = error
        if refused is not None:
            assert refused.code.startswith("evaluation.")
            assert str(refused.where).startswith("evaluations/E/E.json:")


GOLDEN = "golden: {turns: [{steps: [{userInput: {text: Hi}}]}]}\n"
SCENARIO = "scenario: {task: Ask.}\n"
ON, OFF = "ENABLED", "DISABLED"


@pytest.mark.parametrize(
    ("kind", "app", "own", "asked"),
    [
        (GOLDEN, {}, {}, False),
        (GOLDEN, {"hallucinationMetricBehavior": ON}, {}, True),
        (SCENARIO, {"hallucinationMetricBehavior": ON}, {}, True),
        (GOLDEN, {"goldenHallucinationMetricBehavior": ON}, {}, True),
        (SCENARIO, {"goldenHallucinationMetricBehavior": ON}, {}, False),
        (
            SCENARIO,
            {"hallucinationMetricBehavior": ON, "scenarioHallucinationMetricBehavior": OFF},
            {},
            False,
        ),
        (GOLDEN, {"hallucinationMetricBehavior": ON}, {"hallucinationMetricBehavior": OFF}, False),
        (GOLDEN, {}, {"goldenHallucinationMetricBehavior": ON}, True),
    ],
)
def test_where_the_hallucination_metric_is_on_the_judge_is_asked(
    tmp_path: Path, kind: str, app: dict[str, str], own: dict[str, str], asked: bool
) -> None:
    text = f"{kind}evaluationMetricsThresholdOverride: {json.dumps(own)}\n"
    suite = read(tmp_path, text, app={"evaluationMetricsThresholds": app})
    assert (NOTHING_INVENTED in suite.evaluations["E"].criteria) is asked
