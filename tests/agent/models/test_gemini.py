"""Gemini through its official client: what it is asked, what is answered, how it fails."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic.alias_generators import to_camel

from gateway.agent.models.base import ModelStep, Purpose, joined
from gateway.agent.models.gemini import NO_SIGNATURE, GeminiModel
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
from gateway.config import ModelSettings, Settings
from gateway.errors import AppError
from tests.agent.made import make_app, python_tool
from tests.agent.models.service import WAIT_S, Service, service
from tests.agent.talk import talk, texts

KEY = "key-of-the-operator"
MODEL = "gemini-3.5-flash"
SIGNATURE = base64.b64encode(b"signed").decode()


@pytest.fixture
async def server() -> AsyncIterator[Service]:
    async with service() as running:
        yield running
    # The client looks for credentials in a thread.
    await asyncio.get_running_loop().shutdown_default_executor()


def said(text: str, **more: Any) -> dict[str, Any]:
    return parts({"text": text, **more})


def asked(name: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}, **more}


def parts(*made: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(made)}, "index": 0}]}


def ended(reason: str = "STOP") -> dict[str, Any]:
    return {
        "candidates": [{"finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": MODEL,
    }


def _settings(server: Service, **more: Any) -> dict[str, Any]:
    return {"provider": "gemini", "url": server.url, "api_key": KEY, **more}


def _step(*contents: Content, **more: Any) -> ModelStep:
    user = Content(parts=[Part(text="hello")], role="user")
    request = LlmRequest(contents=list(contents) or [user], **more.pop("request", {}))
    return ModelStep(request, "Main", {}, {}, **more)


async def _ask(server: Service, step: ModelStep | None = None, **settings: Any) -> list[Part]:
    model = GeminiModel(ModelSettings.model_validate(_settings(server, **settings)), MODEL)
    try:
        return joined([part async for part in model.generate(step or _step())])
    finally:
        await model.aclose()


def _camel(value: Any) -> Any:
    """The client spells some keys one way and some the other; the service takes both."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, dict):
        return {to_camel(key) if "_" in key else key: _camel(v) for key, v in value.items()}
    return value


async def _failure(server: Service, **settings: Any) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await _ask(server, **settings)
    assert KEY not in str(caught.value)
    return caught.value


# ---- what is asked


async def test_a_rich_request_in_full(server: Service) -> None:
    server.answer(said("Good."), ended())
    declared = FunctionDeclaration(
        name="Look up",
        description="Finds an order.",
        parameters={
            "type": "OBJECT",
            "properties": {
                "number": {"type": "INTEGER", "enum": [7, 8], "format": "uint32"},
                "when": {"type": "STRING", "format": "date-time", "nullable": True},
                "tags": {"type": "ARRAY", "minItems": "1"},
                "anything": {},
            },
            "required": ["number", "gone"],
        },
    )
    step = _step(
        Content(parts=[Part(text="my orders")], role="user"),
        Content(
            parts=[
                Part(text="One moment."),
                Part(
                    function_call={"id": "call-1", "name": "Look up", "args": {"number": 7}},
                    kept=b"signed",
                ),
                Part(function_call={"id": "call-2", "name": "Look up", "args": {"number": 8}}),
            ],
            role="model",
        ),
        Content(
            parts=[
                Part(
                    function_response={
                        "id": "call-2",
                        "name": "Look up",
                        "response": {"result": "late"},
                    }
                )
            ],
            role="user",
        ),
        Content(
            parts=[
                Part(text="and this?"),
                Part(inline_data=Blob(data=b"aGk=", mime_type="image/png")),
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
        safety=(
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"},
            {"category": "HARM_CATEGORY_OF_TOMORROW", "threshold": "BLOCK_ONLY_HIGH"},
        ),
    )
    extra = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}
    await _ask(server, step, max_tokens=99, extra=extra)
    (request,) = server.requests
    assert request.path.endswith("/models/agent-model:streamGenerateContent")
    assert request.query == {"alt": "sse"}
    assert request.headers["x-goog-api-key"] == KEY
    assert _camel(request.body) == {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "my orders"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "One moment."},
                    {
                        "functionCall": {"id": "call-1", "name": "Look_up", "args": {"number": 7}},
                        "thoughtSignature": SIGNATURE,
                    },
                    {"functionCall": {"id": "call-2", "name": "Look_up", "args": {"number": 8}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "call-1",
                            "name": "Look_up",
                            "response": {"result": {"error": "the call was interrupted"}},
                        }
                    },
                    {
                        "functionResponse": {
                            "id": "call-2",
                            "name": "Look_up",
                            "response": {"result": "late"},
                        }
                    },
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"text": "and this?"},
                    {"inlineData": {"data": "aGk=", "mimeType": "image/png"}},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "Look_up",
                        "description": "Finds an order.",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {
                                "number": {"type": "INTEGER", "description": "One of: 7, 8."},
                                "when": {
                                    "type": "STRING",
                                    "format": "date-time",
                                    "nullable": True,
                                },
                                "tags": {
                                    "type": "ARRAY",
                                    "minItems": 1,
                                    "items": {"type": "STRING"},
                                },
                                "anything": {"type": "STRING"},
                            },
                            "required": ["number"],
                        },
                    },
                    {"name": "end_session", "description": ""},
                ]
            }
        ],
        "safetySettings": [
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"}
        ],
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 99,
            "thinkingConfig": {"thinkingBudget": 0},
        },
    }


@pytest.mark.parametrize(("model", "signs"), [(MODEL, True), ("gemini-2.5-flash", False)])
async def test_a_call_of_a_callback_has_the_signature_that_gemini_3_wants(
    server: Service, model: str, signs: bool
) -> None:
    server.answer(said("Good."), ended())
    call = Part(function_call={"id": "call-1", "name": "f", "args": {}})
    await _ask(
        server,
        _step(
            Content(parts=[Part(text="go")], role="user"),
            Content(parts=[call, call.model_copy()], role="model"),
        ),
        name=model,
    )
    first, second = server.requests[0].body["contents"][1]["parts"]
    sent = base64.b64encode(NO_SIGNATURE).decode() if signs else None
    assert first.get("thoughtSignature") == sent
    assert "thoughtSignature" not in second


def _account(folder: Path, token_url: str) -> Path:
    """The file of a service account whose tokens come from this URL."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    content = {
        "type": "service_account",
        "client_email": "gateway@our-project.example",
        "private_key": private,
        "token_uri": token_url,
    }
    (folder / "account.json").write_text(json.dumps(content))
    return folder / "account.json"


def _on_vertex(server: Service, folder: Path) -> dict[str, Any]:
    return {
        "api_key": None,
        "project": "our-project",
        "location": "europe-west4",
        "credentials": str(_account(folder, f"{server.url}/token")),
    }


async def test_vertex_is_asked_for_the_project_with_the_token_of_an_account(
    server: Service, tmp_path: Path
) -> None:
    server.answer(body={"access_token": "a-token", "expires_in": 3600})
    server.answer(said("Good."), ended())
    assert [part.text for part in await _ask(server, **_on_vertex(server, tmp_path))] == ["Good."]
    request = server.requests[-1]
    where = "projects/our-project/locations/europe-west4/publishers/google/models"
    assert request.path.endswith(f"/{where}/{MODEL}:streamGenerateContent")
    assert request.headers["authorization"] == "Bearer a-token"
    assert "x-goog-api-key" not in request.headers


async def test_an_account_that_is_given_no_token(server: Service, tmp_path: Path) -> None:
    server.answer(body={"error": "invalid_grant"}, status=400)
    assert (await _failure(server, **_on_vertex(server, tmp_path))).code == "model.auth"


# ---- what is answered


async def test_tokens_come_out_by_the_sentence(server: Service) -> None:
    server.answer(said("Your order is"), said(" sent. It "), said("costs 3.5."), ended())
    model = GeminiModel(ModelSettings.model_validate(_settings(server)), MODEL)
    heard = [part.text async for part in model.generate(_step())]
    await model.aclose()
    assert heard == ["Your order is sent. ", "It costs 3.5."]


async def test_thoughts_are_not_said_and_signatures_are_kept(server: Service) -> None:
    server.answer(
        said("Let me think.", thought=True),
        said("One moment."),
        parts(
            asked("look_up", {"n": 1}, thoughtSignature=SIGNATURE),
            asked("look_up", {"n": 2}),
        ),
        ended(),
    )
    text, first, second = await _ask(server)
    assert text.text == "One moment."
    assert [first.kept, second.kept] == [b"signed", None]
    assert first.function_call is not None
    assert first.function_call.args == {"n": 1}
    assert second.has_function_call("look_up")


async def test_a_signature_behind_the_words_stays_with_them(server: Service) -> None:
    server.answer(said("Good."), said("", thoughtSignature=SIGNATURE), ended())
    (part,) = await _ask(server)
    assert (part.text, part.kept) == ("Good.", b"signed")


async def test_a_verdict_of_a_guardrail(server: Service) -> None:
    server.answer(said("TRIGGER"), ended())
    step = _step(purpose=Purpose.GUARDRAIL, about="Rude", text="you!")
    assert [part.text for part in await _ask(server, step)] == ["TRIGGER"]


# ---- failures


@pytest.mark.parametrize(
    ("status", "code", "attempts"),
    [
        (400, "model.rejected", 1),
        (401, "model.auth", 1),
        (403, "model.auth", 1),
        (404, "model.unknown", 1),
        (429, "model.quota", 2),
        (500, "model.unavailable", 2),
        (503, "model.unavailable", 2),
    ],
)
async def test_each_status_has_its_code_and_some_are_tried_again(
    server: Service, status: int, code: str, attempts: int
) -> None:
    error = {"code": status, "message": f"bad key {KEY}", "status": "SOME_STATUS"}
    for _ in range(attempts):
        server.answer(body={"error": error}, status=status, headers={"Retry-After": "0"})
    failure = await _failure(server)
    assert failure.code == code
    assert "SOME_STATUS" in failure.message
    assert len(server.requests) == attempts


async def test_the_key_does_not_follow_to_another_host(server: Service) -> None:
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    server.answer(body={}, status=307, headers={"Location": f"{elsewhere}/other"})
    assert (await _failure(server)).code == "model.rejected"
    assert [seen.path for seen in server.requests if seen.path == "/other"] == []


async def test_a_wrong_key_is_said_so_although_its_status_is_that_of_a_bad_request(
    server: Service,
) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": KEY, "details": [info]}
    server.answer(body={"error": error}, status=400)
    failure = await _failure(server)
    assert failure.code == "model.auth"
    assert "model.api_key" in (failure.hint or "")


async def test_the_wait_that_the_body_asks_for_is_kept_to(server: Service) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}
    error = {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": [info]}
    server.answer(body={"error": error}, status=429)
    assert (await _failure(server)).code == "model.quota"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([said("Half a"), ended("MAX_TOKENS")], "model.cut"),
        ([said("Half a"), ended("SAFETY")], "model.blocked"),
        ([ended("PROHIBITED_CONTENT")], "model.blocked"),
        ([{"promptFeedback": {"blockReason": "SAFETY"}}], "model.blocked"),
        ([ended("MALFORMED_FUNCTION_CALL")], "model.malformed"),
        ([ended()], "model.empty"),
        ([said("Half a")], "model.broken"),
        ([{"error": {"code": 503, "status": "UNAVAILABLE"}}], "model.unavailable"),
        (['data: {"candidates": [\n\n'], "model.broken"),
        (["data: 5\n\n"], "model.broken"),
        (['data: {"candidates": 5}\n\n'], "model.broken"),
        (['data: {"candidates": [{"content": {"parts": [{"text": 5}]}}]}\n\n'], "model.broken"),
    ],
    ids=[
        "long",
        "safety",
        "prohibited",
        "prompt",
        "malformed",
        "empty",
        "no end",
        "error",
        "JSON",
        "number",
        "shape",
        "type",
    ],
)
async def test_a_stream_that_ends_badly(server: Service, events: list[Any], code: str) -> None:
    server.answer(*events)
    assert (await _failure(server, attempts=1)).code == code


async def test_a_malformed_call_is_asked_for_again(server: Service) -> None:
    server.answer(ended("MALFORMED_FUNCTION_CALL"))
    server.answer(parts(asked("f", {})), ended())
    (part,) = await _ask(server)
    assert part.has_function_call("f")


async def test_no_first_token_in_time_hangs_up(server: Service) -> None:
    server.answer(asyncio.Event())
    # Long enough for the request to arrive on a busy machine.
    assert (await _failure(server, timeout_s=1.5)).code == "model.timeout"
    async with asyncio.timeout(WAIT_S):
        await server.gone.wait()


async def test_a_stream_that_breaks(server: Service) -> None:
    server.answer(said("Your balance is"), cut=True)
    assert (await _failure(server, attempts=1)).code == "model.broken"


async def test_a_server_that_is_not_there(server: Service) -> None:
    failure = await _failure(server, url="http://127.0.0.1:9", timeout_s=2.0)
    assert failure.code == "model.unavailable"


def test_it_wants_a_key_or_a_project(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        GeminiModel(ModelSettings(), MODEL)
    assert caught.value.code == "model.key"
    (tmp_path / "key.json").write_text("{}")
    settings = {"project": "p", "credentials": str(tmp_path / "key.json")}
    with pytest.raises(AppError) as caught:
        GeminiModel(ModelSettings.model_validate(settings), MODEL)
    assert caught.value.code == "model.credentials"


# ---- in an app

TOOL = '''
def look_up(number: int) -> dict:
    """Finds an order.

    Args:
      number: Its number.
    """
    set_variable("state", "sent")
    return {"state": f"order {number} is sent"}
'''


def _app(folder: Path) -> Path:
    return make_app(
        folder,
        app={
            "modelSettings": {"model": "gemini-2.5-flash", "temperature": 1.0},
            "globalInstruction": "global.txt",
            "variableDeclarations": [
                {"name": "shop", "schema": {"type": "STRING", "default": "Harbor"}},
                {"name": "state", "schema": {"type": "STRING", "default": "none"}},
            ],
        },
        agents={
            "Main": {
                "modelSettings": {"model": MODEL, "temperature": 0.2},
                "instruction": "main.txt",
                "tools": ["look_up"],
            }
        },
        files={
            "global.txt": "You are {{shop}}.",
            "main.txt": "The order is {state}.",
            **python_tool("look_up", TOOL),
        },
    )


async def test_a_tool_runs_and_the_conversation_comes_back_as_it_was(
    server: Service, tmp_path: Path
) -> None:
    call = asked("look_up", {"number": 7}, thoughtSignature=SIGNATURE)
    server.answer(said("One "), said("moment. "), parts(call), ended())
    server.answer(said("It is sent."), ended())
    settings = Settings.model_validate({"model": _settings(server)})
    async with talk(_app(tmp_path), settings) as client:
        assert texts(await client.say("where is it?")) == ["One moment. ", "It is sent."]
    first, second = server.requests
    assert first.path.endswith(f"/{MODEL}:streamGenerateContent")
    assert first.body["generationConfig"] == {"temperature": 0.2}
    instruction = first.body["systemInstruction"]["parts"][0]["text"]
    assert instruction == "You are Harbor.\n\nThe order is {state}."
    assert second.body["contents"] == [
        {
            "role": "user",
            "parts": [
                {"text": "<state_update>state: none</state_update>"},
                {"text": "where is it?"},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "One moment. "},
                {
                    "functionCall": {"id": "call-1", "name": "look_up", "args": {"number": 7}},
                    "thoughtSignature": SIGNATURE,
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "call-1",
                        "name": "look_up",
                        "response": {"result": {"state": "order 7 is sent"}},
                    }
                }
            ],
        },
        {"role": "user", "parts": [{"text": "<state_update>state: sent</state_update>"}]},
    ]


async def test_new_input_hangs_up_on_the_model(server: Service, tmp_path: Path) -> None:
    server.answer(said("Well. "), said("Let"), asyncio.Event())
    server.answer(said("Yes?"), ended())
    settings = Settings.model_validate({"model": _settings(server)})
    async with talk(_app(tmp_path), settings) as client:
        await client.send(text="tell me")
        assert (await client.receive())["sessionOutput"]["text"] == "Well. "
        await client.send(text="stop")
        async with asyncio.timeout(WAIT_S):
            await server.gone.wait()
        assert texts(await client.turn()) == []
        assert texts(await client.turn()) == ["Yes?"]
