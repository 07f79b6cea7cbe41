"""An app whose model is an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.config import Settings
from tests.agent.made import make_app, python_tool
from tests.agent.models.chat import DONE, KEY, asked, chat_settings, ended, said
from tests.agent.models.service import WAIT_S, Service, service
from tests.agent.talk import talk, texts


@pytest.fixture
async def server() -> AsyncIterator[Service]:
    async with service() as running:
        yield running


TOOL = '''
def look_up(number: int) -> dict:
    """Finds an order.

    Args:
      number: Its number.
    """
    return {"state": f"order {number} is sent"}
'''


def _app(folder: Path, **agent: Any) -> Path:
    return make_app(
        folder,
        app={"modelSettings": {"model": "gemini-3.5-flash", "temperature": 1.0}},
        agents={
            "Main": {"tools": ["look_up"], **agent},
            "Other": {"modelSettings": {"model": "other"}},
        },
        files=python_tool("look_up", TOOL),
    )


async def test_a_tool_runs_and_bad_arguments_are_mended_by_the_model(
    server: Service, tmp_path: Path
) -> None:
    server.answer(
        said("One moment. "), asked('{"number": ', "look_up", index=0), ended("tool_calls"), DONE
    )
    server.answer(asked('{"number": 7}', "look_up", index=0, id="x"), ended("tool_calls"), DONE)
    server.answer(said("It is"), said(" sent."), ended(), DONE)
    settings = Settings.model_validate({"model": chat_settings(server)})
    async with talk(_app(tmp_path), settings) as client:
        assert texts(await client.say("where is order 7?")) == ["One moment. ", "It is sent."]
    first, second, third = (seen.body for seen in server.requests)
    assert (first["model"], first["temperature"]) == ("qwen", 1.0)
    call, fault = second["messages"][-2:]
    assert call["tool_calls"][0]["function"] == {"name": "look_up", "arguments": "{}"}
    assert "the arguments are not JSON" in json.loads(fault["content"])["result"]["error"]
    assert json.loads(third["messages"][-1]["content"]) == {"result": {"state": "order 7 is sent"}}


async def test_a_policy_is_asked_about_the_last_words_of_whoever_said_them(
    server: Service, tmp_path: Path
) -> None:
    server.answer(said("OK"), ended(), DONE)
    server.answer(said("We are open."), ended(), DONE)
    server.answer(said("OK"), ended(), DONE)
    guard = {
        "displayName": "Policy",
        "enabled": True,
        "llmPolicy": {"prompt": "No promises.", "policyScope": "USER_QUERY_AND_AGENT_RESPONSE"},
    }
    app = make_app(
        tmp_path, app={"guardrails": ["Policy"]}, files={"guardrails/Policy/Policy.yaml": guard}
    )
    settings = Settings.model_validate({"model": chat_settings(server)})
    async with talk(app, settings) as client:
        assert texts(await client.say("are you open today?")) == ["We are open."]
    of_user, _, of_agent = (seen.body["messages"] for seen in server.requests)
    assert "the last words of the user" in of_user[0]["content"]
    assert [(one["role"], one["content"]) for one in of_user[1:]] == [
        ("user", "are you open today?")
    ]
    assert "the last words of the agent" in of_agent[0]["content"]
    assert [(one["role"], one["content"]) for one in of_agent[1:3]] == [
        ("user", "are you open today?"),
        ("assistant", "We are open."),
    ]


async def test_the_first_sentence_is_out_while_the_model_still_thinks_of_the_second(
    server: Service, tmp_path: Path
) -> None:
    go_on = asyncio.Event()
    server.answer(said("First"), said(" one."), go_on, said(" And two."), ended(), DONE)
    server.answer(said("Fine."), ended(), DONE)
    settings = Settings.model_validate({"model": chat_settings(server)})
    async with talk(_app(tmp_path), settings) as client:
        await client.send(text="tell me")
        assert (await client.receive())["sessionOutput"]["text"] == "First one."
        go_on.set()
        assert texts(await client.turn()) == [" And two."]
        await client.say("thanks")
    said_so = server.requests[-1].body["messages"]
    assert {"role": "assistant", "content": "First one. And two."} in said_so


async def test_new_input_hangs_up_on_the_model(server: Service, tmp_path: Path) -> None:
    server.answer(said("Well. "), said("Let"), asyncio.Event())
    server.answer(said("Yes?"), ended(), DONE)
    settings = Settings.model_validate({"model": chat_settings(server)})
    async with talk(_app(tmp_path), settings) as client:
        await client.send(text="tell me")
        assert (await client.receive())["sessionOutput"]["text"] == "Well. "
        await client.send(text="stop")
        async with asyncio.timeout(WAIT_S):
            await server.gone.wait()
        assert texts(await client.turn()) == []
        assert texts(await client.turn()) == ["Yes?"]
    assert server.requests[-1].body["messages"][-2:] == [
        {"role": "assistant", "content": "Well. "},
        {"role": "user", "content": "stop"},
    ]


async def test_an_answer_that_breaks_off_ends_in_the_apology(
    server: Service, tmp_path: Path
) -> None:
    server.answer(said("Your balance is high. "), said("Your secret"), cut=True)
    settings = Settings.model_validate({"model": chat_settings(server)})
    with capture_logs() as lines:
        async with talk(_app(tmp_path), settings) as client:
            heard = texts(await client.say("my balance"))
    assert heard == ["Your balance is high. ", Settings().call.fallback_message]
    assert [line["code"] for line in lines] == ["model.broken"]
    for word in (KEY, "balance", "secret"):
        assert word not in str(lines)


async def test_the_log_says_what_to_do_about_a_failure(server: Service, tmp_path: Path) -> None:
    server.answer(body={}, status=401)
    settings = Settings.model_validate({"model": chat_settings(server)})
    with capture_logs() as lines:
        async with talk(_app(tmp_path), settings) as client:
            await client.say("Hello.")
    (line,) = lines
    assert line["code"] == "model.auth"
    assert "check model.api_key" in line["hint"]


async def test_what_callbacks_may_still_change_is_held_back_and_whole(
    server: Service, tmp_path: Path
) -> None:
    server.answer(said("One. "), said("Two."), ended(), DONE)
    settings = Settings.model_validate({"model": chat_settings(server)})
    app = _app(tmp_path, afterModelCallbacks=[{"pythonCode": "after.py"}])
    (tmp_path / "after.py").write_text(
        "def after_model_callback(callback_context, llm_response):\n"
        "    parts = llm_response.content.parts\n"
        "    return LlmResponse.from_parts([Part(text=f'{len(parts)}: {parts[0].text}')])\n"
    )
    async with talk(app, settings) as client:
        assert texts(await client.say("count")) == ["1: One. Two."]


async def test_a_policy_is_judged_by_its_own_model(server: Service, tmp_path: Path) -> None:
    server.answer(said("OK"), ended(), DONE)
    server.answer(said("Fine."), ended(), DONE)
    server.answer(said("It is TRIGGER."), ended(), DONE)
    policy = {"prompt": "rudeness", "policyScope": "USER_QUERY"}
    guardrail = {
        "displayName": "rude",
        "enabled": True,
        "llmPolicy": {**policy, "modelSettings": {"model": "judge", "temperature": 0}},
        "action": {"respondImmediately": {"responses": [{"text": "Not like this."}]}},
    }
    app = make_app(
        tmp_path,
        app={"modelSettings": {"model": "talker", "temperature": 1.0}, "guardrails": ["rude"]},
        files={"guardrails/rude/rude.yaml": guardrail},
    )
    settings = Settings.model_validate({"model": chat_settings(server, name="")})
    async with talk(app, settings) as client:
        assert texts(await client.say("how do you do?")) == ["Fine."]
        assert texts(await client.say("you stupid thing there")) == ["Not like this."]
    asked_of = [(seen.body["model"], seen.body["temperature"]) for seen in server.requests]
    assert asked_of == [("judge", 0.0), ("talker", 1.0), ("judge", 0.0)]
