"""The calls of tools that a golden turn expects against those that were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.agent.app.evaluations import Expectation, Kind, Thresholds
from gateway.agent.prompt import tool_name
from gateway.agent.tools.python import attribute_name
from gateway.evaluate.observed import ToolCall
from gateway.evaluate.result import Line, Verdict
from gateway.evaluate.titles import call_text, line_of
from gateway.evaluate.values import differences, fits


@dataclass(frozen=True, slots=True)
class _Match:
    """The call that comes nearest to an expected one, and the share of right arguments."""

    call: ToolCall
    share: float


class Calls:
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
        self._forbidden = any(
            one.kind is Kind.NO_TOOL_CALLS and one.value and not one.skip for one in expectations
        )
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
            line = line_of(one, ["it was not called", f"calls left over: {made or 'none'}"])
        elif match.share < least:
            made_args = {key: match.call.args[key] for key in args if key in match.call.args}
            line = line_of(one, differences(args, made_args, "args"))
        else:
            line = line_of(one, ())
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
