"""Golden turns and what an agent did, made in place for tests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.app.evaluations import GoldenTurn
from gateway.evaluate.compare import judge_turn
from gateway.evaluate.observed import Observed
from gateway.evaluate.result import Line, TurnResult, Verdict
from tests.agent.made import made_app


def turn_of(folder: Path, *steps: Any, **thresholds: Any) -> GoldenTurn:
    """A turn as it is read from a file. `thresholds`: goldenEvaluationMetricsThresholds."""
    evaluation = {
        "evaluationMetricsThresholdOverride": {"goldenEvaluationMetricsThresholds": thresholds},
        "golden": {"turns": [{"steps": list(steps)}]},
    }
    app = made_app(folder, files={"evaluations/E/E.yaml": evaluation})
    golden = read_evaluations(app).evaluations["E"].golden
    assert golden is not None
    return golden.turns[0]


def expect(**fields: Any) -> dict[str, Any]:
    """A step with an expectation."""
    return {"expectation": fields}


def says(*texts: str, **fields: Any) -> dict[str, Any]:
    """A step that expects words."""
    return expect(agentResponse={"chunks": [{"text": text} for text in texts]}, **fields)


def calls(tool: str, args: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A step that expects a call."""
    return expect(toolCall={"tool": tool, "args": args or {}}, **fields)


def did(*chunks: dict[str, Any], end: dict[str, Any] | None = None) -> Observed:
    """What an agent did, by the chunks that the runtime told of."""
    observed = Observed()
    messages = [{"role": "Main", "chunks": list(chunks)}]
    info = {"turnCompleted": True, "diagnosticInfo": {"messages": messages}}
    observed.take({"sessionOutput": info})
    if end is not None:
        observed.take({"endSession": {"metadata": end}})
    return observed


def said(text: str) -> dict[str, Any]:
    """A chunk of words."""
    return {"text": text}


def called(tool: str, **args: Any) -> dict[str, Any]:
    """A chunk of a call."""
    return {"toolCall": {"displayName": tool, "args": args}}


def judged(
    turn: GoldenTurn, observed: Observed, variables: dict[str, Any] | None = None
) -> TurnResult:
    """The verdict."""
    return asyncio.run(judge_turn(turn, observed, variables or {}))


def failures(result: TurnResult) -> list[Line]:
    """The lines that failed."""
    return [line for line in result.lines if line.verdict is Verdict.FAILED]
