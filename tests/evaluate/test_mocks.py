"""Answers that an evaluation gives for its tools become a MockConfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.agent.app import read_app
from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.tools.mocks import read_mocks
from gateway.errors import AppError
from gateway.evaluate.mocks import mocked_calls, write_mocks
from tests.agent.made import made_app
from tests.agent.talk import APPS
from tests.evaluate.made import calls, expect


def test_a_mock_answers_the_expected_call_before_it(tmp_path: Path) -> None:
    mock = expect(mockToolResponse={"tool": "find", "response": {"output": {"day": 1}}})
    other = expect(mockToolResponse={"tool": "find", "response": {"day": 2}})
    any_call = expect(mockToolResponse={"tool": "look", "response": {"x": 1}})
    steps = [calls("find", {"n": "1"}), mock, calls("find", {"n": "2"}), other, any_call]
    app = made_app(
        tmp_path, files={"evaluations/E/E.yaml": {"golden": {"turns": [{"steps": steps}]}}}
    )
    assert mocked_calls(read_evaluations(app).evaluations["E"]) == [
        {"toolId": "find", "expectedArgsPattern": {"n": "1"}, "mockResponse": {"day": 1}},
        {"toolId": "find", "expectedArgsPattern": {"n": "2"}, "mockResponse": {"day": 2}},
        {"toolId": "look", "expectedArgsPattern": {}, "mockResponse": {"x": 1}},
    ]


def test_mocks_of_a_scenario_are_its_expectations_own() -> None:
    scenario = read_evaluations(read_app(APPS / "goldens")).evaluations["Scenario"]
    [call] = mocked_calls(scenario)
    assert call["expectedArgsPattern"] == {"number": "4711"}
    assert call["mockResponse"] == {"number": "4711", "day": "Friday"}


def test_the_operators_own_mocks_come_after(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "unmatched_tool_call_behavior: FAIL\n"
        "mocked_tool_calls: [{toolId: find, mockResponse: {day: 9}}]\n"
    )
    target = tmp_path / "mocks.yaml"
    write_mocks([{"toolId": "find", "mockResponse": {"day": 1}}], own, target)
    mocks = read_mocks(target)
    assert mocks.closed
    assert mocks.answer(("find",), {}) == (True, {"day": 1})
    own.write_text("- no mapping\n")
    with pytest.raises(AppError) as caught:
        write_mocks([], own, target)
    assert caught.value.code == "app.mocks"
