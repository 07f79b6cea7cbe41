"""Any OpenAI-compatible server: what it is asked, what its streams mean, how it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter

from gateway.agent.models.base import ModelStep, Purpose, joined
from gateway.agent.models.openai import OpenAiModel
from gateway.agent.models.remote import ModelFailure
from gateway.agent.platform import (
    Blob,
    Content,
    FunctionDeclaration,
    GenerateContentConfig,
    LlmRequest,
    Part,
    ToolDeclaration,
)
from gateway.config import ModelSettings
from gateway.errors import AppError
from tests.agent.models.chat import DONE, KEY, asked, chat_settings, chunk, ended, said
from tests.agent.models.service import WAIT_S, Service, service


@pytest.fixture
async def server() -> AsyncIterator[Service]:
    async with service() as running:
        yield running


def _step(*contents: Content, **more: Any) -> ModelStep:
    user = Content(parts=[Part(text="hello")], role="user")
    request = LlmRequest(contents=list(contents) or [user], **more.pop("request", {}))
    return ModelStep(request, "Main", {}, {}, **more)


async def _ask(server: Service, step: ModelStep | None = None, **settings: Any) -> list[Part]:
    model = OpenAiModel(ModelSettings(**chat_settings(server, **settings)), "app-model")
    try:
        return joined([part async for part in model.generate(step or _step())])
    finally:
        await model.aclose()


async def _calls(server: Service) -> list[tuple[str | None, Any]]:
    parts = await _ask(server)
    calls = [part.function_call for part in parts if part.function_call is not None]
    return [(call.name, call.args) for call in calls]


async def _failure(server: Service, **settings: Any) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await _ask(server, **settings)
    assert KEY not in str(caught.value)
    return caught.value


# ---- what is asked


async def test_a_rich_request_in_full(server: Service) -> None:
    server.answer(said("Good."), ended(), DONE)
    declared = FunctionDeclaration(
        name="Look up",
        description="Finds an order.",
        parameters={
            "type": "OBJECT",
            "properties": {
                "number": {"type": "INTEGER", "description": "Its number.", "minimum": 1},
                "note": {"type": "STRING", "nullable": True},
                "tags": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["a", "b"]}},
            },
            "required": ["number"],
        },
    )
    step = _step(
        Content(
            parts=[Part(text="<state_update>x: 1</state_update>"), Part(text="my order")],
            role="user",
        ),
        Content(
            parts=[
                Part(text="One moment."),
                Part(function_call={"id": "call-1", "name": "Look up", "args": {"number": 7}}),
                Part(function_call={"id": "call-2", "name": "Look up", "args": {"number": 8}}),
            ],
            role="model",
        ),
        Content(
            parts=[
                Part(
                    function_response={
                        "id": "call-1",
                        "name": "Look up",
                        "response": {"result": {"state": "größer"}},
                    }
                )
            ],
            role="user",
        ),
        request={
            "model": "agent-model",
            "config": GenerateContentConfig(
                system_instruction=Content(parts=[Part(text="Be brief.")]),
                tools=[
                    ToolDeclaration(
                        function_declarations=[declared, FunctionDeclaration(name="end_session")]
                    )
                ],
            ),
        },
        temperature=0.5,
    )
    await _ask(server, step, name="", extra={"reasoning_effort": "low"}, max_tokens=99)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    call = {"name": "Look_up", "arguments": '{"number": 7}'}
    other = {"name": "Look_up", "arguments": '{"number": 8}'}
    assert request.body == {
        "model": "agent-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "<state_update>x: 1</state_update>\nmy order"},
            {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [
                    {"id": "call-1", "type": "function", "function": call},
                    {"id": "call-2", "type": "function", "function": other},
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "call-1",
                "content": '{"result": {"state": "größer"}}',
            },
            {
                "role": "tool",
                "tool_call_id": "call-2",
                "content": '{"result": {"error": "the call was interrupted"}}',
            },
        ],
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 99,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "Look_up",
                    "description": "Finds an order.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "number": {
                                "type": "integer",
                                "description": "Its number.",
                                "minimum": 1,
                            },
                            "note": {"type": ["string", "null"]},
                            "tags": {
                                "type": "array",
                                "items": {"type": "string", "enum": ["a", "b"]},
                            },
                        },
                        "required": ["number"],
                    },
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "end_session",
                    "description": "",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "reasoning_effort": "low",
    }
    TypeAdapter(CompletionCreateParamsStreaming).validate_python(request.body)


async def test_pictures_go_as_data_urls_and_neighbours_of_one_role_are_one_message(
    server: Service,
) -> None:
    server.answer(said("Good."), ended(), DONE)
    picture = Part(inline_data=Blob(data=b"aGk=", mime_type="image/png"))
    await _ask(
        server,
        _step(
            Content(parts=[Part(text="look")], role="user"),
            Content(parts=[picture], role="user"),
            Content(parts=[Part(text="I see.")], role="model"),
        ),
    )
    assert server.requests[0].body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "<context>go on</context>"},
    ]


async def test_the_official_client_reads_the_same_stream(server: Service) -> None:
    """What stands for a server here speaks as the real ones do."""
    server.answer(
        said("Hel"), said("lo."), asked('{"a":', "f", index=0, id="c"), ended("tool_calls"), DONE
    )
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}], stream=True
        )
        choices = [chunk.choices[0] async for chunk in stream]
    # It asks a thread what machine this is.
    await asyncio.get_running_loop().shutdown_default_executor()
    assert [choice.delta.content for choice in choices[:2]] == ["Hel", "lo."]
    assert choices[2].delta.tool_calls is not None
    assert choices[3].finish_reason == "tool_calls"


# ---- what is answered


async def test_tokens_come_out_by_the_sentence(server: Service) -> None:
    tokens = ["Your", " order", " no.", " 5", " is", " sent", ".", " It", " costs", " 3", ".5", "."]
    server.answer(*(said(token) for token in tokens), ended(), DONE)
    model = OpenAiModel(ModelSettings(**chat_settings(server)), "")
    heard = [part.text async for part in model.generate(_step())]
    await model.aclose()
    assert heard == ["Your order no. 5 is sent. ", "It costs 3.5."]


@pytest.mark.parametrize(
    "deltas",
    [
        [asked('{"n": ', "f", index=0, id="a"), asked("1}", index=0)],
        [asked('{"n": 1}', "f", index=0, id="a")],
        [asked('{"n": ', "f", id="a"), asked("1}")],
        [asked('{"n": ', "f", index=0, id="a"), asked("1}", "f", index=0, id="a")],
        [asked("", "f", index=0, id="a"), asked('{"n": 1}', index=0)],
        [chunk({"tool_calls": [{"function": {"name": "f", "arguments": {"n": 1}}}]})],
        [chunk({"function_call": {"name": "f", "arguments": '{"n": 1}'}})],
    ],
    ids=["pieces", "whole", "no index", "all repeated", "late", "object", "old"],
)
async def test_a_call_in_any_shape(server: Service, deltas: list[Any]) -> None:
    server.answer(*deltas, ended("tool_calls"), DONE)
    assert await _calls(server) == [("f", {"n": 1})]


@pytest.mark.parametrize(
    "deltas",
    [
        [asked('{"n": 1}', "f", index=0, id="a"), asked('{"n": 2}', "g", index=1, id="b")],
        [asked('{"n": 1}', "f", index=0, id="a"), asked('{"n": 2}', "g", index=0, id="b")],
        [asked('{"n": 1}', "f"), asked('{"n": 2}', "g")],
        [asked('{"n": 1}', "f", index=0), asked('{"n": 2}', "g", index=0)],
        [
            asked("", "f", index=0, id="a"),
            asked("", "g", index=1, id="b"),
            asked('{"n": 2}', index=1),
            asked('{"n": 1}', index=0),
        ],
    ],
    ids=["index", "index all the same", "nothing", "no id", "interleaved"],
)
async def test_two_calls_are_told_apart(server: Service, deltas: list[Any]) -> None:
    server.answer(*deltas, ended("stop"), DONE)
    assert await _calls(server) == [("f", {"n": 1}), ("g", {"n": 2})]


async def test_calls_without_arguments_and_with_null(server: Service) -> None:
    server.answer(asked("", "f", index=0), asked("null", "g", index=1), ended("tool_calls"), DONE)
    assert await _calls(server) == [("f", {}), ("g", {})]


async def test_comments_usage_and_line_breaks_of_any_kind_are_no_words(server: Service) -> None:
    server.answer(
        ": keep-alive\n\n",
        "event: message\r\ndata:" + json.dumps(said("Hi ")) + "\r\n\r\n",
        chunk({"role": "assistant", "content": None}),
        chunk({"reasoning_content": "hm", "content": [{"type": "text", "text": "there."}]}),
        ended("eos"),
        {"choices": [], "usage": {"total_tokens": 5}},
        DONE,
    )
    assert [part.text for part in await _ask(server)] == ["Hi there."]


async def test_a_stream_without_done_ends_with_its_reason(server: Service) -> None:
    server.answer(said("Hi."), ended())
    assert [part.text for part in await _ask(server)] == ["Hi."]


async def test_a_server_that_does_not_stream(server: Service) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hi.", "tool_calls": [call]}
    server.answer(body={"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    text, asked_for = await _ask(server)
    assert text.text == "Hi."
    assert asked_for.has_function_call("f")


async def test_thoughts_among_the_words_are_not_said(server: Service) -> None:
    server.answer(
        *(said(t) for t in ["\n<th", "ink>", "Well. ", "Hm.</thi", "nk>\n\nHel", "lo <b>."]),
        ended(),
        DONE,
    )
    assert [part.text for part in await _ask(server)] == ["Hello <b>."]


async def test_an_answer_that_only_begins_like_a_thought_is_said(server: Service) -> None:
    server.answer(said("<th"), ended(), DONE)
    assert [part.text for part in await _ask(server)] == ["<th"]


async def test_a_verdict_of_a_guardrail(server: Service) -> None:
    server.answer(said("TRIG"), said("GER"), ended(), DONE)
    parts = await _ask(server, _step(purpose=Purpose.GUARDRAIL, about="Rude", text="you!"))
    assert [part.text for part in parts] == ["TRIGGER"]


# ---- failures


@pytest.mark.parametrize(
    ("status", "code", "attempts"),
    [
        (400, "model.rejected", 1),
        (401, "model.auth", 1),
        (403, "model.auth", 1),
        (404, "model.unknown", 1),
        (302, "model.rejected", 1),
        (429, "model.quota", 2),
        (500, "model.unavailable", 2),
        (503, "model.unavailable", 2),
    ],
)
async def test_each_status_has_its_code_and_some_are_tried_again(
    server: Service, status: int, code: str, attempts: int
) -> None:
    error = {"error": {"message": f"bad key {KEY}", "type": "some_error", "code": None}}
    for _ in range(attempts):
        server.answer(body=error, status=status, headers={"Retry-After": "0"})
    failure = await _failure(server)
    assert failure.code == code
    assert "some_error" in failure.message
    assert len(server.requests) == attempts


async def test_what_is_wrong_may_come_in_pieces(server: Service) -> None:
    loop_turns = [0.0] * 10
    server.answer('{"error": {"type":', *loop_turns, ' "some_error"}}', status=400)
    failure = await _failure(server)
    assert failure.code == "model.rejected"
    assert "some_error" in failure.message


async def test_a_web_page_is_no_model(server: Service) -> None:
    server.answer("<html>Sign in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
    failure = await _failure(server)
    assert failure.code == "model.unknown"
    assert "model.url" in (failure.hint or "")


async def test_another_attempt_is_heard_as_if_nothing_had_been(server: Service) -> None:
    server.answer(body={}, status=503, headers={"Retry-After": "0"})
    server.answer(said("Here I am."), ended(), DONE)
    assert [part.text for part in await _ask(server)] == ["Here I am."]


async def test_a_wait_beyond_the_deadline_is_not_waited_for(server: Service) -> None:
    server.answer(body={}, status=429, headers={"Retry-After": "3600"})
    assert (await _failure(server)).code == "model.quota"
    assert len(server.requests) == 1


async def test_no_first_token_in_time(server: Service) -> None:
    server.answer(asyncio.Event())
    assert (await _failure(server, timeout_s=1.0)).code == "model.timeout"
    async with asyncio.timeout(WAIT_S):
        await server.gone.wait()


async def test_no_next_token_in_time(server: Service) -> None:
    server.answer(said("Well. "), said("So"), asyncio.Event())
    assert (await _failure(server, timeout_s=0.5)).code == "model.timeout"
    assert len(server.requests) == 1


async def test_a_stream_that_breaks_before_its_first_part_is_asked_for_again(
    server: Service,
) -> None:
    server.answer(cut=True)
    server.answer(said("Again."), ended(), DONE)
    assert [part.text for part in await _ask(server)] == ["Again."]


async def test_signs_of_life_alone_are_not_waited_for_without_end(server: Service) -> None:
    server.answer(*[item for _ in range(500) for item in (chunk({}), 0.02)])
    failure = await _failure(server, timeout_s=0.5)
    assert failure.code == "model.timeout"
    await asyncio.wait_for(server.gone.wait(), WAIT_S)


async def test_an_answer_without_an_end_is_cut(server: Service) -> None:
    server.answer(*[said("And so on. " * 100)] * 200, ended())
    assert (await _failure(server)).code == "model.cut"


@pytest.mark.parametrize(
    "events", [["data: " + "[" * 100_000 + "\n\n"], ["data: " + "x" * 60_000 + "\n"] * 100]
)
async def test_an_event_too_deep_or_too_long_is_a_broken_answer(
    server: Service, events: list[str]
) -> None:
    server.answer(*events)
    assert (await _failure(server, attempts=1)).code == "model.broken"


async def test_arguments_nested_too_deeply_are_a_fault_of_the_call(server: Service) -> None:
    server.answer(asked('{"a":' * 50_000, "look"), ended("tool_calls"), DONE)
    (part,) = await _ask(server)
    assert part.function_call is not None
    assert part.function_call.fault


async def test_a_byte_order_mark_costs_no_words(server: Service) -> None:
    server.answer("\ufeff", said("Hello."), ended(), DONE)
    assert [part.text for part in await _ask(server)] == ["Hello."]


async def test_a_stream_that_breaks_after_words_is_not(server: Service) -> None:
    server.answer(said("Your balance is. "), said("about"), cut=True)
    server.answer(said("never"), ended(), DONE)
    assert (await _failure(server)).code == "model.broken"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([said("Half a"), ended("length"), DONE], "model.cut"),
        ([said("Half a"), ended("model_length"), DONE], "model.cut"),
        ([said("Half a"), ended("error"), DONE], "model.broken"),
        ([said("Half a"), ended("abort"), DONE], "model.broken"),
        ([ended("content_filter"), DONE], "model.blocked"),
        ([said("Half a")], "model.broken"),
        (["data: {nonsense\n\n"], "model.broken"),
        (["data: 5\n\n"], "model.broken"),
        ([{"error": {"code": 429, "message": "slow down"}}], "model.quota"),
        ([{"error": {"message": "out of memory"}}], "model.unavailable"),
    ],
    ids=[
        *("long", "also long", "failed", "given up", "filter"),
        *("no end", "no JSON", "no object", "error status", "error"),
    ],
)
async def test_a_stream_that_ends_badly(server: Service, events: list[Any], code: str) -> None:
    server.answer(*events)
    assert (await _failure(server, attempts=1)).code == code


async def test_a_refusal_is_said(server: Service) -> None:
    words = [chunk({"refusal": text}) for text in ("I cannot help ", "with that.")]
    server.answer(*words, ended(), DONE)
    (part,) = await _ask(server)
    assert part.text == "I cannot help with that."


async def test_an_empty_answer_is_asked_for_again_and_then_fails(server: Service) -> None:
    server.answer(ended(), DONE)
    server.answer(said(" \n"), ended(), DONE)
    assert (await _failure(server)).code == "model.empty"
    assert len(server.requests) == 2


async def test_a_server_that_is_not_there(server: Service) -> None:
    failure = await _failure(server, url="http://127.0.0.1:9/v1", timeout_s=2.0)
    assert failure.code == "model.unavailable"


def test_it_wants_an_address_and_a_name() -> None:
    for settings, code in (
        ({"name": "m"}, "model.url"),
        ({"name": "m", "url": "localhost:8000"}, "model.url"),
        ({"url": "http://localhost"}, "model.name"),
    ):
        with pytest.raises(AppError) as caught:
            OpenAiModel(ModelSettings.model_validate(settings), "")
        assert caught.value.code == code
