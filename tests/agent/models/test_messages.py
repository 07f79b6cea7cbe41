"""Conversations and names as services insist on them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.models.messages import GO_ON, MAX_NAME_CHARS, Names, conversation
from gateway.agent.platform import (
    Content,
    FunctionDeclaration,
    GenerateContentConfig,
    LlmRequest,
    Part,
    ToolDeclaration,
)


def _request(*contents: Content, names: list[str] | None = None) -> LlmRequest:
    declared = [FunctionDeclaration(name=name) for name in names or ()]
    tools = [ToolDeclaration(function_declarations=declared)]
    return LlmRequest(contents=list(contents), config=GenerateContentConfig(tools=tools))


def _call(call_id: str | None, name: str = "f") -> Part:
    return Part(function_call={"id": call_id, "name": name, "args": {}})


def _answer(call_id: str | None, name: str = "f") -> Part:
    answer = {"id": call_id, "name": name, "response": {"result": 1}}
    return Part(function_response=answer)


def _shape(request: LlmRequest) -> list[tuple[str | None, list[str]]]:
    return [
        (
            content.role,
            [
                part.text
                or (f"call {part.function_call.id}" if part.function_call else "")
                or f"answer {part.function_response.id}"  # type: ignore[union-attr]
                for part in content.parts
            ],
        )
        for content in conversation(request)
    ]


def test_answers_stand_behind_their_calls_and_texts_behind_the_answers() -> None:
    request = _request(
        Content(parts=[Part(text="go")], role="user"),
        Content(parts=[_call("1"), _call("2")], role="model"),
        Content(parts=[Part(text="note"), _answer("2"), _answer("1")], role="user"),
        Content(parts=[Part(text="and?")], role="user"),
    )
    before = request.model_dump()
    assert _shape(request) == [
        ("user", ["go"]),
        ("model", ["call 1", "call 2"]),
        ("user", ["answer 1", "answer 2"]),
        ("user", ["note", "and?"]),
    ]
    assert request.model_dump() == before


def test_a_call_that_was_interrupted_is_answered_and_an_answer_to_nothing_left_out() -> None:
    request = _request(
        Content(parts=[_answer("0")], role="user"),
        Content(parts=[Part(text="go")], role="user"),
        Content(parts=[_call("1")], role="model"),
        Content(parts=[Part(text="stop")], role="user"),
    )
    assert _shape(request) == [
        ("user", ["go"]),
        ("model", ["call 1"]),
        ("user", ["answer 1"]),
        ("user", ["stop"]),
    ]
    error = conversation(request)[2].parts[0].function_response
    assert error is not None
    assert error.response == {"result": {"error": "the call was interrupted"}}


def test_the_user_comes_last() -> None:
    assert _shape(_request()) == [("user", [GO_ON])]
    said = Content(parts=[Part(text="Hello.")], role="model")
    assert _shape(_request(said)) == [("model", ["Hello."]), ("user", [GO_ON])]


@given(st.lists(st.text(max_size=80), unique=True, max_size=8))
def test_every_name_is_allowed_and_finds_its_way_back(names: list[str]) -> None:
    made = Names(_request(names=names))
    plain = [made.plain(name) for name in names]
    assert len(set(plain)) == len(names)
    assert [made.own(name) for name in plain] == names
    for name in plain:
        assert re.fullmatch(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{MAX_NAME_CHARS - 1}}}", name), name


def test_a_plain_name_stays_as_it_is_and_an_unknown_one_too() -> None:
    made = Names(_request(names=["look_up", "Look up"]))
    assert made.plain("look_up") == "look_up"
    assert made.own("made_up") == "made_up"
    assert made.own("default_api.look_up") == "look_up"
    assert made.own("other.made_up") == "other.made_up"
