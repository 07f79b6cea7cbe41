"""What came of evaluations: a verdict for each line, turn and evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SECONDS_DIGITS = 3
GOLDEN, SCENARIO = "golden", "scenario"
"""The kinds of evaluations."""
TEXT = "text"
"""The channel that is none: the conversation is typed."""


class Verdict(StrEnum):
    """How a comparison, a turn or an evaluation came out."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"
    """It could not be judged here; that is never a pass."""
    SKIPPED = "skipped"
    """It is not judged: the evaluation says so, or enough else is right."""


MARKS = {
    Verdict.PASSED: "✓",
    Verdict.FAILED: "✗",
    Verdict.NOT_RUN: "○",
    Verdict.SKIPPED: "–",
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a whole by those on its parts: a failure, else what was not run."""
    found = set(verdicts)
    return next((v for v in (Verdict.FAILED, Verdict.NOT_RUN) if v in found), Verdict.PASSED)


@dataclass(frozen=True, slots=True)
class Line:
    """One requirement and its verdict. `difference`: lines that say what is wrong."""

    verdict: Verdict
    text: str
    difference: tuple[str, ...] = ()
    line: int = 0
    """Line in the evaluation's file; 0: none of its own."""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "verdict": self.verdict,
            "text": self.text,
            "difference": list(self.difference),
            "line": self.line,
        }


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One turn. `user`: what the user did, in short; `understood`: what was recognised of it."""

    user: str
    lines: tuple[Line, ...]
    understood: str = ""
    said: tuple[str, ...] = ()
    """What the agent said."""
    called: tuple[str, ...] = ()
    """The calls of tools that it made."""

    @property
    def verdict(self) -> Verdict:
        """Of the whole turn."""
        return worst(line.verdict for line in self.lines)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """One evaluation. `reason`: why it was not run, empty where it was."""

    name: str
    kind: str
    where: str
    turns: tuple[TurnResult, ...] = ()
    whole: tuple[Line, ...] = ()
    """Requirements on the conversation as a whole."""
    reason: str = ""
    seconds: float = 0.0

    @property
    def file(self) -> str:
        """The evaluation's file in the app."""
        return self.where.rsplit(":", 1)[0]

    @property
    def verdict(self) -> Verdict:
        """Of the whole evaluation."""
        if self.reason:
            return Verdict.NOT_RUN
        parts = [turn.verdict for turn in self.turns] + [line.verdict for line in self.whole]
        return worst(parts)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "name": self.name,
            "kind": self.kind,
            "where": self.where,
            "verdict": self.verdict,
            "reason": self.reason,
            "seconds": round(self.seconds, SECONDS_DIGITS),
            "turns": [
                {
                    "user": turn.user,
                    "understood": turn.understood,
                    "said": turn.said,
                    "called": turn.called,
                    "verdict": turn.verdict,
                    "lines": [line.to_json() for line in turn.lines],
                }
                for turn in self.turns
            ],
            "whole": [line.to_json() for line in self.whole],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All evaluations of a run. `channel`: `text` or a dialect. `model`: what answered."""

    app: str
    channel: str
    model: str
    results: Sequence[EvaluationResult]

    def count(self, verdict: Verdict) -> int:
        """How many evaluations came out so."""
        return sum(1 for result in self.results if result.verdict is verdict)

    @property
    def summary(self) -> str:
        """One line for people."""
        parts = [f"{self.count(Verdict.PASSED)} of {len(self.results)} evaluations passed"]
        parts += [
            f"{number} {verdict}"
            for verdict in (Verdict.FAILED, Verdict.NOT_RUN)
            if (number := self.count(verdict))
        ]
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "app": self.app,
            "channel": self.channel,
            "model": self.model,
            "passed": self.count(Verdict.PASSED),
            "failed": self.count(Verdict.FAILED),
            "not_run": self.count(Verdict.NOT_RUN),
            "evaluations": [result.to_json() for result in self.results],
        }
