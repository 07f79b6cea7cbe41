"""Reads the evaluations of an app, strictly where a run depends on it.

Every complaint is an AppError `evaluation.*` that names file and line. Keys that no run uses are
left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway import bidi
from gateway.agent.app.document import Document
from gateway.agent.app.evaluations import (
    NOTHING_INVENTED,
    Comparison,
    Criterion,
    Evaluation,
    EvaluationSettings,
    Expectation,
    Golden,
    GoldenTurn,
    Injected,
    Kind,
    Method,
    Scenario,
    ScenarioExpectation,
    Step,
    Suite,
    Thresholds,
    UserGoal,
    UserInput,
)
from gateway.agent.app.layout import app_file, display_name, object_files
from gateway.agent.app.models import App
from gateway.errors import AppError

MAX_SCENARIO_TURNS = 100
INPUTS = ("text", "dtmf", "event", "variables", "image", "blob", "audio", "toolResponses")
_EVENT = re.compile(r"<event>([^<>]+)</event>")
_CHUNKS = (Kind.TOOL_CALL, Kind.TOOL_RESPONSE, Kind.AGENT_TRANSFER, Kind.UPDATED_VARIABLES)
"""What a Message may hold beside words and payloads."""


@dataclass(frozen=True, slots=True)
class _At:
    """A value of a file with the way to it, so that a complaint can name its line."""

    value: Any
    document: Document
    path: tuple[str | int, ...] = ()

    @property
    def line(self) -> int:
        return self.document.line(*self.path) or 1

    def wrong(self, code: str, message: str, hint: str | None = None) -> AppError:
        where = f"{self.document.name}:{self.line}"
        return AppError(f"evaluation.{code}", message, where=where, hint=hint)

    def has(self, key: str) -> bool:
        return self.at(key).value is not None

    def at(self, key: str) -> _At:
        value = bidi.get(self.mapping(), key)
        return replace(self, value=value, path=(*self.path, key))

    def mapping(self) -> Mapping[str, Any]:
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self.wrong("type", f"{self._name} is not a mapping")
        return self.value

    def items(self) -> Iterator[_At]:
        if self.value is None:
            return
        if not isinstance(self.value, list):
            raise self.wrong("type", f"{self._name} is not a list")
        for index, item in enumerate(self.value):
            yield replace(self, value=item, path=(*self.path, index))

    def text(self) -> str:
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.wrong("type", f"{self._name} is not a text", "Put it in quotes.")
        return self.value

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())

    def flag(self) -> bool:
        if self.value is not None and not isinstance(self.value, bool):
            raise self.wrong("type", f"{self._name} is not true or false")
        return bool(self.value)

    def number(self, low: float, high: float) -> float | None:
        if self.value is None:
            return None
        number = self.value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise self.wrong("type", f"{self._name} is not a number")
        if not low <= number <= high:
            raise self.wrong("range", f"{self._name} is not within {low:g} and {high:g}")
        return number

    def one_of(self, keys: tuple[str, ...], what: str) -> str:
        found = [key for key in keys if self.has(key)]
        if len(found) != 1:
            named = " and ".join(found) or "none of its kinds"
            raise self.wrong("step", f"{what} has {named}", f"Give exactly one: {', '.join(keys)}.")
        return found[0]

    @property
    def _name(self) -> str:
        return str(next((key for key in reversed(self.path) if isinstance(key, str)), "the file"))


def read_evaluations(app: App) -> Suite:
    """All evaluations of the app. Raises AppError evaluation.* with file and line."""
    definition = app.definition.model_extra or {}
    thresholds = _of_app(app, "evaluationMetricsThresholds")
    base = _app_thresholds(thresholds)
    criteria = {
        name: at.at("llmCriteria").at("prompt").text()
        for name, at in _objects(app, "evaluationExpectations")
    }
    evaluations = {}
    for name, at in _objects(app, "evaluations"):
        evaluation = _evaluation(name, at, base, criteria)
        kind = "scenario" if evaluation.golden is None else "golden"
        if _seeks_inventions(kind, thresholds, at.at("evaluationMetricsThresholdOverride")):
            evaluation = replace(evaluation, criteria=(*evaluation.criteria, NOTHING_INVENTED))
        evaluations[name] = evaluation
    datasets: dict[str, tuple[str, ...]] = {}
    for name, at in _objects(app, "evaluationDatasets"):
        members = []
        for item in at.at("evaluations").items():
            member = _last(item.text())
            if member not in evaluations:
                raise item.wrong("reference", f"there is no evaluation {member!r}")
            members.append(member)
        own = (e.name for e in evaluations.values() if name in e.datasets)
        datasets[name] = tuple(dict.fromkeys([*members, *own]))
    return Suite(evaluations, datasets, _settings(bidi.get(definition, "evaluationSettings")))


def _of_app(app: App, key: str) -> _At:
    file = app_file(app.files.paths())
    assert file is not None
    document = _document(app, file)
    return _At(document.data, document).at(key)


def _document(app: App, path: str) -> Document:
    return Document(path, app.read_file(path).decode("utf-8-sig").replace("\r\n", "\n"))


def _objects(app: App, folder: str) -> Iterator[tuple[str, _At]]:
    """Objects by display name: the content as the app has it, the lines as the file has them."""
    for files in object_files(app.files.paths(), folder).values():
        document = _document(app, files[0])
        name = display_name(document.data, files[0])
        content = app.resources[folder].get(name)
        if content is not None:
            yield name, _At(content, document)


def _settings(value: Any) -> EvaluationSettings:
    settings = value if isinstance(value, Mapping) else {}
    stable = bidi.get(settings, "goldenRunMethod") == "STABLE"
    return EvaluationSettings(
        Method.STABLE if stable else Method.NAIVE,
        bidi.get(settings, "goldenEvaluationToolCallBehaviour") == "FAKE",
        bidi.get(settings, "scenarioEvaluationToolCallBehaviour") == "FAKE",
        bidi.get(settings, "scenarioConversationInitiator") == "AGENT",
    )


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]


# ---- thresholds


def _app_thresholds(at: _At, base: Thresholds | None = None) -> Thresholds:
    golden = at.at("goldenEvaluationMetricsThresholds")
    thresholds = _turn_thresholds(golden.at("turnLevelMetricsThresholds"), base or Thresholds())
    share = _arguments(golden.at("expectationLevelMetricsThresholds"))
    if share is not None:
        thresholds = replace(thresholds, arguments=share)
    extra = golden.at("toolMatchingSettings").at("extraToolCallBehavior")
    if extra.text():
        thresholds = replace(thresholds, extra_calls_fail=extra.text() != "ALLOW")
    return thresholds


def _turn_thresholds(at: _At, base: Thresholds) -> Thresholds:
    similarity = at.at("semanticSimilaritySuccessThreshold").number(0, 4)
    calls = at.at("overallToolInvocationCorrectnessThreshold").number(0, 1)
    if similarity is not None:
        base = replace(base, similarity=similarity)
    if calls is not None:
        base = replace(base, tool_calls=float(calls))
    return base


def _arguments(at: _At) -> float | None:
    return at.at("toolInvocationParameterCorrectnessThreshold").number(0, 1)


# ---- one evaluation


def _evaluation(name: str, at: _At, base: Thresholds, criteria: Mapping[str, str]) -> Evaluation:
    kind = at.one_of(("golden", "scenario"), "an evaluation")
    thresholds = _app_thresholds(at.at("evaluationMetricsThresholdOverride"), base)
    metrics = at.at("evaluationMetricsConfigOverride").at("goldenMetricsConfig")
    similarity = _enabled(metrics.at("semanticSimilarityMetricsConfig"), True)
    body = at.at(kind)
    asked = []
    for item in body.at("evaluationExpectations").items():
        wanted = _last(item.text())
        if not criteria.get(wanted):
            raise item.wrong(
                "reference",
                f"there is no evaluation expectation {wanted!r} with a prompt",
                "It stands in evaluationExpectations/ and has llmCriteria.prompt.",
            )
        asked.append(Criterion(wanted, criteria[wanted]))
    return Evaluation(
        name=name,
        file=at.document.name,
        line=body.line,
        golden=_golden(body, thresholds, similarity) if kind == "golden" else None,
        scenario=_scenario(body) if kind == "scenario" else None,
        thresholds=thresholds,
        criteria=tuple(asked),
        datasets=tuple(_last(text) for text in at.at("evaluationDatasets").texts()),
    )


def _seeks_inventions(kind: str, *sources: _At) -> bool:
    """Whether the hallucination metric is on: the last source that says so counts, by its kind."""
    said = ""
    for at in sources:
        own = at.at(f"{kind}HallucinationMetricBehavior").text()
        said = own or at.at("hallucinationMetricBehavior").text() or said
    return said == "ENABLED"


def _enabled(at: _At, default: bool) -> bool:
    key = at.at("enableSemanticSimilarityMetrics")
    return default if key.value is None else key.flag()


def _golden(at: _At, thresholds: Thresholds, similarity: bool) -> Golden:
    turns = tuple(_turn(item, thresholds, similarity) for item in at.at("turns").items())
    if not turns:
        raise at.wrong("empty", "the golden evaluation has no turns", "turns: [{steps: [...]}]")
    return Golden(turns)


def _turn(at: _At, thresholds: Thresholds, similarity: bool) -> GoldenTurn:
    return GoldenTurn(
        steps=tuple(s for item in at.at("steps").items() for s in _steps(item, similarity)),
        line=at.line,
        thresholds=_turn_thresholds(at.at("turnLevelMetricsThresholdsOverride"), thresholds),
    )


def _steps(at: _At, similarity: bool) -> Iterator[Step]:
    kind = at.one_of(("userInput", "agentTransfer", "expectation"), "a step")
    value = at.at(kind)
    if kind == "userInput":
        yield _input(value)
    elif kind == "agentTransfer":
        yield Injected(_target(value), value.line)
    else:
        expectation = _expectation(value, similarity)
        yield expectation
        if expectation.kind is Kind.AGENT_RESPONSE:
            yield from _done(value.at("agentResponse"), expectation)


def _input(at: _At) -> UserInput:
    kind = at.one_of(INPUTS, "a userInput")
    value = at.at(kind)
    if kind in ("text", "dtmf"):
        named = _EVENT.fullmatch(value.text().strip())
        if named is not None:
            return UserInput("event", {"event": {"event": named[1]}}, value.line)
    elif kind == "event" and not value.at("event").text():
        raise value.wrong("input", "the event has no name", "event: {event: session start}")
    elif kind == "toolResponses":
        for answer in value.at("toolResponses").items():
            _check_tool(answer)
    elif kind != "audio":
        value.mapping()
    _check_wire(value)
    message = {kind: value.value}
    if at.at("willContinue").flag():
        message["willContinue"] = True
    return UserInput(kind, message, value.line)


def _target(at: _At) -> str:
    target = at.at("displayName").text() or at.at("targetAgent").text()
    if not target:
        raise at.wrong("transfer", "the transfer names no agent", "targetAgent: NAME")
    return _last(target)


def _expectation(at: _At, similarity: bool) -> Expectation:
    kind = Kind(at.one_of(tuple(Kind), "an expectation"))
    value = at.at(kind)
    _check_value(kind, value)
    compared = at.at("comparisonType")
    comparison = compared.text()
    if comparison in ("", "COMPARISON_TYPE_UNSPECIFIED"):
        comparison = Comparison.SIMILAR
    if comparison not in tuple(Comparison):
        raise compared.wrong(
            "comparison", f"{comparison!r} is no comparison", f"One of: {', '.join(Comparison)}."
        )
    own = at.at("agentResponseSemanticSimilarityMetricsConfigOverride")
    return Expectation(
        kind=kind,
        value=value.value,
        line=value.line,
        note=at.at("note").text(),
        skip=at.at("skipEvaluation").flag(),
        comparison=Comparison(comparison),
        similarity=_enabled(own, similarity),
        arguments_threshold=_arguments(at.at("expectationLevelMetricsThresholdsOverride")),
    )


def _check_value(kind: Kind, value: _At) -> None:
    if kind is Kind.NO_TOOL_CALLS:
        value.flag()
        return
    value.mapping()
    _check_wire(value)
    if kind is Kind.AGENT_TRANSFER:
        _target(value)
    elif kind in (Kind.TOOL_CALL, Kind.TOOL_RESPONSE, Kind.MOCK_TOOL_RESPONSE):
        _check_tool(value)
    elif kind is Kind.AGENT_RESPONSE:
        for chunk in value.at("chunks").items():
            chunk.mapping()


def _done(message: _At, whole: Expectation) -> Iterator[Expectation]:
    """What a response holds beside words and payloads: calls, hand-overs, …, each for itself."""
    for chunk in message.at("chunks").items():
        for kind in _CHUNKS:
            value = chunk.at(kind)
            if value.value is not None:
                _check_value(kind, value)
                yield replace(whole, kind=kind, value=value.value, line=value.line)


def _check_wire(at: _At) -> None:
    """What is sent to the agent, or by it, must fit into the JSON of the wire."""
    try:
        bidi.dump({"": at.value})
    except TypeError as error:
        raise at.wrong("value", f"this cannot be sent: {error}") from None


def _check_tool(at: _At) -> None:
    if not any(at.has(key) for key in ("tool", "toolsetTool", "displayName")):
        raise at.wrong("tool", "no tool is named", "tool: NAME, or toolsetTool: {toolset, toolId}")
    at.at("args").mapping()


# ---- scenarios


def _scenario(at: _At) -> Scenario:
    task = at.at("task").text()
    if not task:
        raise at.wrong("task", "the scenario has no task")
    facts = {}
    for item in at.at("userFacts").items():
        facts[item.at("name").text()] = str(item.at("value").value or "")
    turns = at.at("maxTurns").number(0, MAX_SCENARIO_TURNS)
    return Scenario(
        task=task,
        facts=facts,
        max_turns=int(turns or MAX_SCENARIO_TURNS),
        rubrics=at.at("rubrics").texts(),
        expectations=tuple(_expected(item) for item in at.at("scenarioExpectations").items()),
        variables=at.at("variableOverrides").mapping(),
        goal=_goal(at),
    )


def _expected(at: _At) -> ScenarioExpectation:
    kind = at.one_of(("toolExpectation", "agentResponse"), "a scenario expectation")
    value = at.at(kind)
    if kind == "agentResponse":
        return ScenarioExpectation(Kind.AGENT_RESPONSE, value.mapping(), value.line)
    call = value.at("expectedToolCall")
    _check_tool(call)
    mock = value.at("mockToolResponse")
    return ScenarioExpectation(
        Kind.TOOL_CALL, call.mapping(), call.line, mock.mapping() if mock.value else None
    )


def _goal(at: _At) -> UserGoal:
    """`userGoalBehavior`, else the older `taskCompletionBehavior`."""
    goal = at.at("userGoalBehavior").text()
    if goal in tuple(UserGoal):
        return UserGoal(goal)
    rejected = at.at("taskCompletionBehavior").text() == "TASK_REJECTED"
    return UserGoal.REJECTED if rejected else UserGoal.SATISFIED
