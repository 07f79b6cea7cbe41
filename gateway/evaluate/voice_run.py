"""Golden evaluations as simulated phone calls: what the user says is spoken and recognised."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway import bidi
from gateway.agent.app.evaluations import (
    Evaluation,
    Golden,
    GoldenTurn,
    Injected,
    Kind,
    UserInput,
)
from gateway.agent.prompt import tool_name
from gateway.evaluate.compare import Scorer, judge_turn, unreached
from gateway.evaluate.observed import Observed, messages_of
from gateway.evaluate.result import TurnResult
from gateway.evaluate.talk import responses
from gateway.simulate.result import CallLog
from gateway.simulate.scenario import (
    Dtmf,
    EventPattern,
    Hangup,
    Say,
    Scenario,
    Step,
    WaitEvent,
    WaitQuiet,
)

STARTS = frozenset(map(bidi.event_text, (bidi.SESSION_START, "sys.welcome", "welcome")))
"""Events that a call begins with by itself."""
_ODD = re.compile(r"[^\w-]+")
_PLATFORM = re.compile(r"</?(context|event|state_update)>")
_PRESSED = re.compile(r"<context>user pressed ([0-9*#A-Da-d]+) on keypad\.</context>")
_SILENCE = re.compile(r"<context>no user activity detected for \d+ seconds\.</context>")


@dataclass(frozen=True, slots=True)
class Call:
    """A golden as a call. `begins`: for each golden turn the caller step that it begins with."""

    scenario: Scenario
    begins: tuple[int | None, ...]
    """None: the turn is what the agent says when the call begins."""


def folder_name(name: str) -> str:
    """An evaluation's name as a file name."""
    return _ODD.sub("_", name).strip("_") or "evaluation"


def refusal(golden: Golden, keys: bool = True, client: bool = True) -> str:
    """Why a golden cannot be a phone call; empty where it can.

    `keys`: they come by the dialect. `client`: the caller's client has functions by it.
    """
    for index, turn in enumerate(golden.turns):
        for step in turn.steps:
            if isinstance(step, Injected):
                return "a caller cannot move the conversation to another agent"
            if not isinstance(step, UserInput):
                continue
            if not keys and any(isinstance(act, Dtmf) for act in _act(step, 0.0, False)):
                return "no keys come by this dialect"
            if not client and step.kind == "toolResponses":
                return "the caller has no functions by this dialect"
            if problem := _impossible(step, index == 0):
                return problem
    return ""


def _impossible(given: UserInput, first: bool) -> str:
    if given.kind == "text" and _PLATFORM.search(given.value) and not _act(given, 0.0, False):
        return "a caller cannot say what the platform says"
    if given.kind in ("text", "dtmf", "toolResponses"):
        return ""
    if given.kind == "variables":
        return "" if first else "a caller cannot set variables in the middle of a call"
    if given.kind == "event":
        name = bidi.event_text(given.event)
        if (first and name in STARTS) or given.event == bidi.REMOTE_DISCONNECTED:
            return ""
        return f"a caller cannot send the event {given.event!r}"
    return f"a caller cannot send {given.kind}"


def plan_call(evaluation: Evaluation, channel: str, wait_s: float, as_text: bool) -> Call:
    """The call of a golden. `as_text`: the recogniser gives the golden's own words."""
    assert evaluation.golden is not None
    steps: list[Step] = []
    begins: list[int | None] = []
    variables: dict[str, Any] = {}
    for index, turn in enumerate(evaluation.golden.turns):
        acts = [step for one in turn.inputs for step in _act(one, wait_s, as_text)]
        if index == 0 and acts:
            # The agent's greeting is no turn of this golden.
            steps.append(WaitQuiet(turn.line, wait_s))
        begins.append(len(steps) if acts or index else None)
        steps += acts
        steps.append(WaitQuiet(turn.line, wait_s))
        for one in turn.inputs:
            if one.kind == "variables":
                variables.update(one.value)
    if not any(isinstance(step, Hangup) for step in steps):
        steps.append(Hangup(evaluation.line))
    scenario = Scenario(
        name=folder_name(evaluation.name),
        file=evaluation.file,
        channel=channel,
        variables=variables,
        functions=_functions(evaluation.golden),
        caller=tuple(steps),
    )
    return Call(scenario, tuple(begins))


def _functions(golden: Golden) -> dict[str, list[Any]]:
    """What the functions of the caller's client answer, by name and in the golden's order."""
    functions: dict[str, list[Any]] = {}
    for turn in golden.turns:
        given = [r for one in turn.inputs if one.kind == "toolResponses" for r in responses(one)]
        named = {tool_name(response) for response in given}
        expected = [e.value for e in turn.expectations if e.kind is Kind.TOOL_RESPONSE]
        for one in (*given, *(e for e in expected if tool_name(e) not in named)):
            functions.setdefault(tool_name(one), []).append(one.get("response"))
    return functions


def _act(given: UserInput, wait_s: float, as_text: bool) -> list[Step]:
    """What the caller does for an input; nothing where the call's begin stands for it."""
    if given.kind == "text":
        pressed = _PRESSED.fullmatch(given.value.strip())
        if pressed is not None:
            return [Dtmf(given.line, pressed[1].upper())]
        if _SILENCE.fullmatch(given.value.strip()):
            return [WaitEvent(given.line, EventPattern("inactivity"), wait_s)]
        if _PLATFORM.search(given.value) or not given.value.strip():
            return []
        return [Say(given.line, given.value, given.value if as_text else None)]
    if given.kind == "dtmf":
        return [Dtmf(given.line, given.value.upper())]
    if given.event == bidi.REMOTE_DISCONNECTED:
        return [Hangup(given.line)]
    return []


class Listener:
    """Collects what the agent says during a call."""

    def __init__(self) -> None:
        self._messages: list[tuple[float, Mapping[str, Any]]] = []

    def __call__(self, t: float, message: Mapping[str, Any]) -> None:
        self._messages.append((t, message))

    @property
    def history(self) -> list[Mapping[str, Any]]:
        """All that happened, as Messages of the wire."""
        return [entry for _, message in self._messages for entry in messages_of(message)]

    def between(self, begin: float, end: float) -> Observed:
        """What the agent did from `begin` up to `end`, in seconds of the call."""
        observed = Observed()
        for t, message in self._messages:
            if begin <= t < end:
                observed.take(message)
        return observed


async def judge_call(
    golden: Golden, call: Call, log: CallLog, listener: Listener, scorer: Scorer
) -> tuple[TurnResult, ...]:
    """The verdicts on the turns of a call that is over."""
    starts = {span.index: span.start for span in log.steps}
    hangup = next((s.start for s in log.steps if s.kind == "hangup"), float("inf"))
    variables: dict[str, Any] = dict(call.scenario.variables)
    results = []
    for index, turn in enumerate(golden.turns):
        begin = _begin(call, index, starts, None)
        if begin is None:
            results.append(unreached(turn, _why(log)))
            continue
        end = _begin(call, index + 1, starts, hangup)
        if end is None or _hangs_up(turn):
            end = float("inf")
        observed = listener.between(begin, end)
        # What the caller interrupted was not said to them.
        observed.texts = _heard(log, begin, end)
        variables.update(observed.variables)
        result = await judge_turn(turn, observed, variables, scorer)
        results.append(replace(result, understood=_understood(log, begin, end)))
    return tuple(results)


def _heard(log: CallLog, begin: float, end: float) -> list[str]:
    """What the caller heard of the utterances that the agent began in this stretch of the call."""
    ended = {r["id"]: r for r in log.timeline if r["kind"] == "utterance_ended"}
    return [
        text
        for record in log.timeline
        if record["kind"] == "utterance_queued"
        and begin <= record["t"] < end
        and (text := ended.get(record["id"], {}).get("heard_text"))
    ]


def _understood(log: CallLog, begin: float, end: float) -> str:
    """What the recogniser made of the caller's words."""
    final = (r for r in log.timeline if r["kind"] == "user_text" and r.get("final"))
    return " ".join(str(r["text"]) for r in final if begin <= r["t"] < end)


def _begin(
    call: Call, index: int, starts: Mapping[int, float], otherwise: float | None
) -> float | None:
    """When the turn began; `otherwise` where it never did."""
    if index >= len(call.begins):
        return otherwise
    step = call.begins[index]
    return 0.0 if step is None else starts.get(step, otherwise)


def _hangs_up(turn: GoldenTurn) -> bool:
    return any(one.event == bidi.REMOTE_DISCONNECTED for one in turn.inputs)


def _why(log: CallLog) -> str:
    problem = next((span.problem for span in log.steps if span.problem), "")
    return f"the caller {problem}" if problem else f"the call had ended before ({log.ended})"
