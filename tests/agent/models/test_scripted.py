"""The scripted model: strict reading of its file, and which rule answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.app import read_app
from gateway.agent.models.base import ModelStep
from gateway.agent.models.choose import choose_model
from gateway.agent.models.script_file import parse_script
from gateway.agent.models.scripted import ScriptedModel
from gateway.agent.platform import Content, GenerateContentConfig, LlmRequest, Part
from gateway.config import Settings
from gateway.errors import AppError
from tests.agent.talk import APPS

APP = read_app(APPS / "transfer")


def _user(*texts: str) -> Content:
    return Content(parts=[Part(text=text) for text in texts], role="user")


def _response(tool: str, value: Any) -> Content:
    return Content(parts=[Part.from_function_response(tool, {"result": value})], role="user")


async def _answer(
    script: str,
    *contents: Content,
    agent: str = "Front Desk",
    variables: dict[str, Any] | None = None,
    prompt: str = "",
    memory: dict[str, Any] | None = None,
) -> list[Any]:
    model = ScriptedModel(parse_script(script, "s.yaml", APP))
    config = GenerateContentConfig(system_instruction=Content(parts=[Part(text=prompt)]))
    request = LlmRequest(contents=list(contents), config=config)
    step = ModelStep(request, agent, variables or {}, {} if memory is None else memory)
    answers: list[Any] = []
    async for part in model.generate(step):
        call = part.function_call
        answers.append(part.text if call is None else (call.name, call.args))
    return answers


def _rule(when: str, say: str = "yes") -> str:
    return f"rules:\n  - when: {when}\n    do: [{{say: '{say}'}}]\ndefault: [{{say: 'no'}}]\n"


@pytest.mark.parametrize(
    ("when", "contents", "answer"),
    [
        ("{user: bal+ance}", [_user("My BALANCE")], "yes"),
        ("{user: balance}", [_user("<context>balance</context>")], "no"),
        ("{user: balance}", [_user("balance"), _user("other")], "no"),
        ("{user: '.*'}", [_user("<event>x</event>")], "no"),
        ("{event: session start}", [_user("<event>session start</event>")], "yes"),
        ("{event: session_start}", [_user("<event>session start</event>")], "yes"),
        ("{event: other}", [_user("<event>session start</event>")], "no"),
        ("{context: no user}", [_user("<context>no user activity</context>", "hi")], "yes"),
        ("{context: no user}", [_user("no user activity")], "no"),
        ("{dtmf: '^\\d{2}$'}", [_user("<context>user pressed 12 on keypad.</context>")], "yes"),
        ("{dtmf: '^\\d{2}$'}", [_user("<context>user pressed 123 on keypad.</context>")], "no"),
        ("{tool: authentication}", [_user("x"), _response("authentication", 1)], "yes"),
        ("{tool: authentication}", [_user("x")], "no"),
        ("{tool: authentication, result: err}", [_response("authentication", {"err": 1})], "yes"),
        ("{tool: authentication, result: err}", [_response("authentication", {})], "no"),
        ("{tool: authentication, user: x}", [_user("x"), _response("authentication", 1)], "yes"),
        # A step after a tool answers the tool, not the user again.
        ("{user: x}", [_user("x"), _response("authentication", 1)], "no"),
        # … but one after a transfer answers the user.
        ("{user: x}", [_user("x"), _response("transfer_to_agent", {})], "yes"),
        # What the platform notes by itself is no input.
        ("{user: x}", [_user("x"), _user("<state_update>a: 1</state_update>")], "yes"),
    ],
)
async def test_conditions(when: str, contents: list[Content], answer: str) -> None:
    assert await _answer(_rule(when), *contents) == [answer]


async def test_variables_and_prompt_are_conditions() -> None:
    assert await _answer(_rule("{variables: {a: '^1$'}}"), _user("x"), variables={"a": 1}) == [
        "yes"
    ]
    assert await _answer(_rule("{variables: {a: '.'}}"), _user("x")) == ["no"]
    assert await _answer(_rule("{variables: {a: '^$'}}"), _user("x")) == ["yes"]
    told = {"mood": "pirate"}
    rule = _rule("{prompt: PIRATE}")
    assert await _answer(rule, _user("x"), prompt="Be a {mood}.", variables=told) == ["yes"]
    assert await _answer(rule, _user("x"), prompt="Be nice.") == ["no"]


async def test_agents_and_once_are_conditions() -> None:
    script = "rules:\n  - {agent: [Billing, Rescue], when: {once: true}, do: [{say: a}]}\n"
    memory: dict[str, Any] = {}
    assert await _answer(script, _user("x"), agent="Front Desk", memory=memory) == []
    assert await _answer(script, _user("x"), agent="Billing", memory=memory) == ["a"]
    assert await _answer(script, _user("x"), agent="Billing", memory=memory) == []


async def test_placeholders_are_filled_and_keep_their_type_where_they_stand_alone() -> None:
    script = """
rules:
  - when: {user: 'meter (?P<number>\\d+)'}
    do:
      - say: "Meter {user.number} for {name}{nothing}."
      - call:
          tool: authentication
          args: {pin: "{pin}", text: "pin {pin}", deep: ["{user.number}"]}
      - wait: 1ms
      - end: {reason: "{name}", session_escalated: true, params: {a: "{pin}"}}
  - when: {tool: authentication}
    do: [{say: "{result.sum.0} {result.text} {result}"}, {transfer: Billing}]
"""
    known = {"name": "Ann", "pin": 12}
    assert await _answer(script, _user("meter 42"), variables=known) == [
        "Meter 42 for Ann.",
        ("authentication", {"pin": 12, "text": "pin 12", "deep": ["42"]}),
        ("end_session", {"reason": "Ann", "session_escalated": True, "params": {"a": 12}}),
    ]
    result = {"sum": [84.0], "text": "t"}
    assert await _answer(script, _response("authentication", result)) == [
        '84 t {"sum": [84.0], "text": "t"}',
        ("transfer_to_agent", {"agent_name": "Billing"}),
    ]


async def test_the_result_of_an_asynchronous_tool_is_in_its_context() -> None:
    done = '<context>function [job] completed with response {"result": {"state": "ok"}}</context>'
    script = _rule("{context: completed}", "{result.state}")
    assert await _answer(script, _user(done)) == ["ok"]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("rules:\n  - when: {user: x}\n    doo: []", 3),
        ("rules:\n  - when: {usr: x}\n    do: []", 2),
        ("rules:\n  - when: {user: '('}\n    do: []", 2),
        ("rules:\n  - when: {result: x}\n    do: []", 2),
        ("rules:\n  - when: {once: perhaps}\n    do: []", 2),
        ("rules:\n  - agent: Nobody\n    do: []", 2),
        ("rules:\n  - when: {user: x}", 2),
        ("rules:\n  - do:\n    - {say: a, wait: 1s}", 3),
        ("rules:\n  - do:\n    - wait: soon", 3),
        ("rules:\n  - do:\n    - call: {tool: nothing}", 3),
        ("rules:\n  - do:\n    - call: {args: {}}", 3),
        ("rules:\n  - do:\n    - call: {tool: authentication, args: [1]}", 3),
        ("rules:\n  - do:\n    - transfer: Nobody", 3),
        ("rules:\n  - do:\n    - end: {why: x}", 3),
        ("rules:\n  - do:\n    - end: {params: x}", 3),
        ("rules:\n  - do:\n    - say:", 3),
        ("rules: {}", 1),
        ("other: 1", 1),
        ("default: []\ndefault: []", 2),
        ("rules: [", 1),
        ("", 1),
        ("- a", 1),
        ("1: a", 1),
    ],
)
def test_errors_name_the_line(script: str, line: int) -> None:
    with pytest.raises(AppError) as caught:
        parse_script(script, "s.yaml", APP)
    assert caught.value.code.startswith("script.")
    assert caught.value.where == f"s.yaml:{line}"


@given(st.text(alphabet="rulesdoway:{}[]-\n '\"&*!?|>%@`#1", max_size=60))
def test_any_text_is_a_script_or_an_error(text: str) -> None:
    try:
        parse_script(text, "s.yaml", APP)
    except AppError as error:
        assert error.where  # noqa: PT017


def test_the_model_is_chosen_by_settings_then_by_the_app(tmp_path: Path) -> None:
    assert choose_model(APP, Settings()).name == "scripted"
    script = tmp_path / "other.yaml"
    script.write_text("default: []")
    settings = Settings.model_validate({"model": {"script": str(script)}})
    assert choose_model(APP, settings).name == "scripted"
    missing = Settings.model_validate({"model": {"script": "nothing.yaml"}})
    with pytest.raises(AppError) as caught:
        choose_model(APP, missing)
    assert caught.value.code == "model.script"


def test_without_any_model_the_error_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "agents/Main").mkdir(parents=True)
    (tmp_path / "app.yaml").write_text("rootAgent: Main\nmodelSettings: {model: some-model}")
    (tmp_path / "agents/Main/Main.yaml").write_text("displayName: Main")
    with pytest.raises(AppError) as caught:
        choose_model(read_app(tmp_path), Settings())
    assert caught.value.code == "model.none"
    assert "some-model" in caught.value.message
    assert "scripted_model.yaml" in (caught.value.hint or "")
