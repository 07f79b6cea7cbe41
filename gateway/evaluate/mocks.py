"""Answers of tools that an evaluation gives itself, as a MockConfig."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway.agent.app.evaluations import Evaluation, Kind
from gateway.agent.prompt import tool_name
from gateway.agent.tools.mocks import read_mocks
from gateway.evaluate.observed import unwrapped


def mocked_calls(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The `mockedToolCalls` of an evaluation, in its order.

    A golden's mock answers the expected call before it, with that call's arguments; a mock
    without such a call answers whatever is asked.
    """
    if evaluation.golden is not None:
        return list(_of_golden(evaluation))
    expectations = evaluation.scenario.expectations if evaluation.scenario is not None else ()
    return [
        _entry(tool_name(one.value), one.value.get("args"), one.mock)
        for one in expectations
        if one.mock is not None
    ]


def _of_golden(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    assert evaluation.golden is not None
    for turn in evaluation.golden.turns:
        expected: dict[str, list[Any]] = {}
        for one in turn.expectations:
            if one.kind is Kind.TOOL_CALL:
                expected.setdefault(tool_name(one.value), []).append(one.value.get("args"))
            elif one.kind is Kind.MOCK_TOOL_RESPONSE:
                calls = expected.get(tool_name(one.value))
                yield _entry(tool_name(one.value), calls.pop(0) if calls else None, one.value)


def _entry(name: str, args: Any, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "toolId": name,
        "expectedArgsPattern": dict(args or {}),
        "mockResponse": unwrapped(answer.get("response")) or {},
    }


def write_mocks(calls: list[dict[str, Any]], operators: Path | None, target: Path) -> None:
    """Write a MockConfig of these calls and then those of the operator's own. Raises AppError."""
    config: dict[str, Any] = {}
    if operators is not None:
        read_mocks(operators)
        config = dict(yaml.safe_load(operators.read_text(encoding="utf-8")))
    key = "mocked_tool_calls" if "mocked_tool_calls" in config else "mockedToolCalls"
    config[key] = [*calls, *(config.get(key) or ())]
    target.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
