"""A golden turn against what the agent did in it.

How each kind of expectation is compared stands in docs/evaluating.md, in the same order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.agent.app.evaluations import Comparison, Expectation, GoldenTurn, Kind, Thresholds
from gateway.agent.app.models import END_SESSION
from gateway.agent.prompt import agent_name, tool_name
from gateway.agent.tools.python import attribute_name
from gateway.evaluate import similarity
from gateway.evaluate.observed import Observed, ToolCall, said_by, unwrapped
from gateway.evaluate.result import Line, TurnResult, Verdict
from gateway.evaluate.values import differences, fits, same, shown

Scorer = Callable[[str, str], Awaitable[int]]
"""(expected text, actual text) → how alike they are, 0 to 4."""
BETWEEN = " "


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
    calls = _Calls(turn.thresholds, observed.calls, judged)
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
            lines.append(_line(one, _problems(one, observed, variables)))
    lines += calls.left_over()
    return TurnResult(user(turn), tuple(calls.tolerated(lines)))


def user(turn: GoldenTurn) -> str:
    """What the user does in the turn, in short."""
    return ", ".join(str(one) for one in turn.inputs) or "(the agent goes on)"


def unreached(turn: GoldenTurn, why: str) -> TurnResult:
    """The verdict on a turn that never came."""
    lines = [Line(Verdict.FAILED, title(one), (why,), one.line) for one in turn.expectations]
    return TurnResult(user(turn), tuple(lines) or (Line(Verdict.FAILED, why, line=turn.line),))


def title(one: Expectation) -> str:
    """An expectation in one line."""
    return (
        f"{_title(one.kind, one.value)}  ({one.note})" if one.note else _title(one.kind, one.value)
    )


def _title(kind: Kind, value: Any) -> str:
    match kind:
        case Kind.AGENT_RESPONSE:
            text = text_of(value)
            return f"says {shown(text)}" if text else "sends a payload"
        case Kind.TOOL_CALL:
            return f"calls {call_text(tool_name(value), value.get('args') or {})}"
        case Kind.TOOL_RESPONSE:
            return f"{tool_name(value)} answers {shown(unwrapped(value.get('response')))}"
        case Kind.AGENT_TRANSFER:
            return f"hands over to {agent_name(value)}"
        case Kind.UPDATED_VARIABLES:
            return f"sets {', '.join(value)}"
        case Kind.NO_TOOL_CALLS:
            return "calls no tool" if value else "may call tools"
        case Kind.MOCK_TOOL_RESPONSE:
            return f"{tool_name(value)} is mocked"


def call_text(name: str, args: Mapping[str, Any]) -> str:
    """A call in one line."""
    return f"{name}({', '.join(f'{key}={shown(value)}' for key, value in args.items())})"


def _line(one: Expectation, problems: Iterable[str]) -> Line:
    difference = tuple(problems)
    verdict = Verdict.FAILED if difference else Verdict.PASSED
    return Line(verdict, title(one), difference, one.line)


# ---- words


def text_of(message: Mapping[str, Any]) -> str:
    """The words of a Message's chunks, those of its payloads among them."""
    found = []
    for chunk in message.get("chunks") or ():
        text = chunk.get("text") or chunk.get("transcript")
        payload = chunk.get("payload")
        if isinstance(text, str):
            found.append(text)
        elif isinstance(payload, Mapping):
            found.append(said_by(payload))
    return BETWEEN.join(text for text in found if text)


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
        lines.append(_line(one, difference))
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
    points = await scorer(expected, actual)
    least = thresholds.similarity
    return "" if points >= least else f"alike by {points} of 4, {least} are needed"


def _nearest(
    payload: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    return min(sent, key=lambda got: len(list(differences(payload, got))), default=None)


# ---- calls of tools


@dataclass(frozen=True, slots=True)
class _Match:
    """The call that comes nearest to an expected one, and the share of right arguments."""

    call: ToolCall
    share: float


class _Calls:
    """Expected calls against those that were made; each call is used once."""

    def __init__(
        self,
        thresholds: Thresholds,
        made: Sequence[ToolCall],
        expectations: Sequence[Expectation],
    ) -> None:
        self._thresholds = thresholds
        self._left = list(made)
        self._matches: dict[int, _Match] = {}
        self._forbidden = any(e.kind is Kind.NO_TOOL_CALLS and e.value for e in expectations)
        self._wrong: list[Line] = []
        self._right = 0
        # What is wholly right first, so that a wrong expectation does not take its call.
        for least in (1.0, 0.0):
            for one in expectations:
                if one.kind is Kind.TOOL_CALL and id(one) not in self._matches:
                    self._take(one, least)

    def _take(self, one: Expectation, least: float) -> None:
        """Take the best call for an expectation that has at least this share of its arguments."""
        name, args = attribute_name(tool_name(one.value)), one.value.get("args") or {}
        found = [_Match(c, share_right(args, c.args)) for c in self._left if _named(c, name)]
        best = max(found, key=lambda match: match.share, default=None)
        if best is not None and best.share >= least:
            self._matches[id(one)] = best
            # By identity: equal calls may have been made several times.
            self._left = [call for call in self._left if call is not best.call]

    def judge(self, one: Expectation) -> Line:
        """The verdict on an expected call."""
        match = self._matches.get(id(one))
        args = one.value.get("args") or {}
        least = one.arguments_threshold
        least = self._thresholds.arguments if least is None else least
        if match is None:
            made = ", ".join(call_text(c.name, c.args) for c in self._left)
            line = _line(one, ["it was not called", f"calls left over: {made or 'none'}"])
        elif match.share < least:
            made_args = {key: match.call.args[key] for key in args if key in match.call.args}
            line = _line(one, differences(args, made_args, "args"))
        else:
            line = _line(one, ())
        if line.verdict is Verdict.FAILED:
            self._wrong.append(line)
        else:
            self._right += 1
        return line

    def left_over(self) -> list[Line]:
        """The calls that nothing expects, where that matters."""
        if not self._thresholds.extra_calls_fail or self._forbidden:
            return []
        return [
            Line(
                Verdict.FAILED,
                "calls nothing else",
                (f"not expected: {call_text(call.name, call.args)}",),
            )
            for call in self._left
        ]

    def tolerated(self, lines: Iterable[Line]) -> list[Line]:
        """The lines, where enough of the turn's calls were right with the wrong ones forgiven."""
        expected = self._right + len(self._wrong)
        if not self._wrong or self._right / expected < self._thresholds.tool_calls:
            return list(lines)
        return [
            Line(Verdict.SKIPPED, f"{line.text}  (tolerated)", line.difference, line.line)
            if line in self._wrong
            else line
            for line in lines
        ]


def _named(call: ToolCall, name: str) -> bool:
    return attribute_name(call.name) == name


def share_right(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> float:
    """The share of the expected arguments that are right; others are not looked at."""
    if not expected:
        return 1.0
    right = sum(1 for key in expected if key in actual and fits(expected[key], actual[key]))
    return right / len(expected)


# ---- everything else


def _problems(one: Expectation, observed: Observed, variables: Mapping[str, Any]) -> Iterable[str]:
    value = one.value
    if one.kind is Kind.NO_TOOL_CALLS:
        if value:
            return [f"called {call_text(c.name, c.args)}" for c in observed.calls]
        return ()
    if one.kind is Kind.AGENT_TRANSFER:
        if agent_name(value) in observed.transfers:
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
