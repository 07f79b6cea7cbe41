"""A golden turn against what the agent did in it.

How each kind of expectation is compared stands in docs/evaluating.md, in the same order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from gateway.agent.app.evaluations import Comparison, Expectation, GoldenTurn, Kind, Thresholds
from gateway.agent.app.layout import directory_name
from gateway.agent.app.models import END_SESSION
from gateway.agent.prompt import agent_name, tool_name
from gateway.agent.tools.python import attribute_name
from gateway.errors import RuntimeFailure
from gateway.evaluate import similarity
from gateway.evaluate.calls import Calls
from gateway.evaluate.observed import Observed, unwrapped
from gateway.evaluate.result import Line, TurnResult, Verdict
from gateway.evaluate.titles import BETWEEN, call_text, calls_made, line_of, text_of, title, user
from gateway.evaluate.values import differences, same, shown

Scorer = Callable[[str, str], Awaitable[int]]
"""(expected text, actual text) → how alike they are, 0 to 4."""


async def by_words(expected: str, actual: str) -> int:
    """The scorer that needs no model."""
    return similarity.score(expected, actual)


async def judge_turn(
    turn: GoldenTurn,
    observed: Observed,
    variables: Mapping[str, Any],
    scorer: Scorer = by_words,
) -> TurnResult:
    """The verdict on a turn. `variables`: all that are known to have changed by its end."""
    judged = [one for one in turn.expectations if one.kind is not Kind.MOCK_TOOL_RESPONSE]
    calls = Calls(turn.thresholds, observed.calls, judged)
    spoken = dict(_segments(judged, observed.texts))
    lines = []
    for one in judged:
        if one.skip:
            lines.append(Line(Verdict.SKIPPED, title(one), line=one.line))
        elif one.kind is Kind.AGENT_RESPONSE:
            lines += await _response(one, spoken.get(id(one), ""), observed, turn, scorer)
        elif one.kind is Kind.TOOL_CALL:
            lines.append(calls.judge(one))
        else:
            lines.append(line_of(one, _problems(one, observed, variables)))
    lines += calls.left_over()
    return TurnResult(
        user(turn),
        tuple(calls.tolerated(lines)),
        said=tuple(observed.texts),
        called=calls_made(observed),
    )


def unreached(turn: GoldenTurn, why: str) -> TurnResult:
    """The verdict on a turn that never came."""
    judged = (one for one in turn.expectations if one.kind is not Kind.MOCK_TOOL_RESPONSE)
    lines = [Line(Verdict.FAILED, title(one), (why,), one.line) for one in judged if not one.skip]
    return TurnResult(
        user(turn), tuple(lines) or (Line(Verdict.FAILED, "the turn comes", (why,), turn.line),)
    )


# ---- words


def _segments(
    expectations: Sequence[Expectation], texts: Sequence[str]
) -> Iterable[tuple[int, str]]:
    """Which of the agent's texts belong to which expected response: (id, text).

    All texts are dealt out in order, each expectation gets neighbours, so that the likeness of
    all is greatest: whatever the agent said beyond what is expected counts against a response.
    """
    expected = [(id(one), text) for one in expectations if (text := _words_of(one))]
    best: dict[int, tuple[float, list[str]]] = {0: (0.0, [])}
    for index, (_, text) in enumerate(expected):
        last = index == len(expected) - 1
        following: dict[int, tuple[float, list[str]]] = {}
        for start, (points, dealt) in best.items():
            ends = [len(texts)] if last else range(start, len(texts) + 1)
            for end in ends:
                segment = BETWEEN.join(texts[start:end])
                total = points + similarity.alike(text, segment)
                if end not in following or total > following[end][0]:
                    following[end] = (total, [*dealt, segment])
        best = following
    if not expected:
        return ()
    return zip((one for one, _ in expected), best[len(texts)][1], strict=True)


def _words_of(one: Expectation) -> str:
    return text_of(one.value) if one.kind is Kind.AGENT_RESPONSE else ""


async def _response(
    one: Expectation, actual: str, observed: Observed, turn: GoldenTurn, scorer: Scorer
) -> list[Line]:
    """Lines for the words of a response and for each of its other chunks."""
    lines = []
    expected = text_of(one.value)
    if expected and not one.similarity and one.comparison is Comparison.SIMILAR:
        lines.append(Line(Verdict.SKIPPED, title(one), line=one.line))
    elif expected:
        problem = await _words_differ(one, expected, actual, turn.thresholds, scorer)
        difference = (problem, f"expected: {expected}", f"got:      {actual}") if problem else ()
        lines.append(line_of(one, difference))
    payloads = [p for chunk in one.value.get("chunks") or () if (p := chunk.get("payload"))]
    for payload in payloads:
        if any(same(payload, got) for got in observed.payloads):
            lines.append(Line(Verdict.PASSED, f"sends {shown(payload)}", line=one.line))
            continue
        nearest = _nearest(payload, observed.payloads)
        told = tuple(differences(payload, nearest)) if nearest else ("no payload was sent",)
        lines.append(Line(Verdict.FAILED, f"sends {shown(payload)}", told, one.line))
    return lines


async def _words_differ(
    one: Expectation, expected: str, actual: str, thresholds: Thresholds, scorer: Scorer
) -> str:
    """What is wrong with the words; empty where they pass."""
    if one.comparison is Comparison.EQUALS:
        return "" if expected.split() == actual.split() else "the words are not the same"
    if one.comparison is Comparison.CONTAINS:
        found = similarity.contains(actual, expected)
        return "" if found else "the response does not contain the words"
    try:
        points = await scorer(expected, actual)
    except RuntimeFailure as error:
        # The judge failed, not the agent; still the words have not passed.
        return str(error)
    least = thresholds.similarity
    return "" if points >= least else f"alike by {points} of 4, {least:g} are needed"


def _nearest(
    payload: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    return min(sent, key=lambda got: len(list(differences(payload, got))), default=None)


# ---- everything else


def _problems(one: Expectation, observed: Observed, variables: Mapping[str, Any]) -> Iterable[str]:
    value = one.value
    if one.kind is Kind.NO_TOOL_CALLS:
        if value:
            return [f"called {call_text(c.name, c.args)}" for c in observed.calls]
        return ()
    if one.kind is Kind.AGENT_TRANSFER:
        # Exports name an agent by its display name, or by its folder.
        if directory_name(agent_name(value)) in map(directory_name, observed.transfers):
            return ()
        return [f"handed over to {', '.join(observed.transfers) or 'nobody'}"]
    if one.kind is Kind.UPDATED_VARIABLES:
        got = {name: variables[name] for name in value if name in variables}
        return differences(value, got)
    return _answer_differs(tool_name(value), unwrapped(value.get("response")), observed)


def _answer_differs(name: str, expected: Any, observed: Observed) -> Iterable[str]:
    wanted = attribute_name(name)
    answers = [a.response for a in observed.answers if attribute_name(a.name) == wanted]
    if name == END_SESSION and observed.end is not None:
        answers.append(dict(observed.end))
    if any(same(expected, answer) for answer in answers):
        return ()
    return differences(expected, answers[-1]) if answers else ["it was not called"]
