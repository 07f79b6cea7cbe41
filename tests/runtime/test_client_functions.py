"""A function of the client that the model starts and does not wait for, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection

from gateway.config import load
from gateway.server.compose import running
from tests.agent.made import make_app
from tests.agent.talk import parse_with_protos, talk
from tests.server.wire import NATIVE, SESSION, websocket

WAIT_S = 10.0
QUIET = {"tts": "nanotts", "stt": "none", "vad": "energy", "turn": "silence"}
SCRIPT = """
rules:
  - when: {user: ask}
    do: [{call: {tool: on_phone, args: {colour: red}}}]
  - when: {tool: on_phone, result: pending}
    do: [{say: "I have asked."}]
  - when: {context: "function .on_phone. completed"}
    do: [{say: "The phone says {result.answer}."}]
  - when: {context: "function .on_phone. failed.*broken"}
    do: [{say: "The phone is broken."}]
  - when: {context: "function .on_phone. failed.*did not answer"}
    do: [{say: "The phone is silent."}]
  - when: {user: bye}
    do: [{say: "Goodbye."}, {end: {reason: done}}]
default: [{say: "Pardon?"}]
"""


class Client:
    """One text session of the native dialect."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, **given: Any) -> None:
        await self._socket.send(json.dumps({"realtimeInput": given}))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            message: dict[str, Any] = json.loads(await self._socket.recv())
        parse_with_protos(message)
        return message

    async def turn(self) -> tuple[list[str], list[dict[str, Any]]]:
        """What the agent says in one turn, and which functions it calls."""
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        while True:
            output = (await self.receive())["sessionOutput"]
            texts += [output["text"]] if "text" in output else []
            calls += output.get("toolCalls", {}).get("toolCalls", [])
            if output.get("turnCompleted"):
                return texts, calls

    async def ask(self) -> str:
        """Have the model start the function: the id of its call."""
        await self.send(text="ask")
        texts, (call,) = await self.turn()
        assert texts == ["I have asked."]
        assert (call["displayName"], call["args"]) == ("on_phone", {"colour": "red"})
        return str(call["id"])

    async def answer(self, call: str, **response: Any) -> None:
        await self.send(toolResponses={"toolResponses": [{"id": call, "response": response}]})


@asynccontextmanager
async def client(folder: Path, limit: str = "60s") -> AsyncIterator[Client]:
    tool = {
        "displayName": "on_phone",
        "executionType": "ASYNCHRONOUS",
        "timeout": limit,
        "clientFunction": {"name": "on_phone", "parameters": {"type": "OBJECT"}},
    }
    app = make_app(
        folder,
        script=SCRIPT,
        agents={"Main": {"tools": ["on_phone", "end_session"]}},
        files={"tools/on_phone/on_phone.yaml": tool},
    )
    settings = load(overrides={"app": str(app), "server": {"port": 0}, "speech": QUIET})
    async with running(settings) as gateway, websocket(gateway, NATIVE) as socket:
        await socket.send(json.dumps({"config": {"session": f"{SESSION}call-0001"}}))
        yield Client(socket)


async def test_the_conversation_goes_on_and_the_answer_begins_a_turn(tmp_path: Path) -> None:
    async with client(tmp_path) as caller:
        call = await caller.ask()
        # The caller's next words do not cut short what no turn waits for.
        await caller.send(text="meanwhile")
        assert await caller.turn() == (["Pardon?"], [])
        await caller.answer(call, output={"answer": "yes"})
        assert await caller.turn() == (["The phone says yes."], [])
        await caller.answer(await caller.ask(), error="broken")
        assert await caller.turn() == (["The phone is broken."], [])
        # A second answer to the same call is nobody's.
        await caller.answer(call, output={"answer": "no"})
        await caller.send(text="well")
        assert await caller.turn() == (["Pardon?"], [])


async def test_at_the_deadline_the_model_is_told_and_what_comes_later_is_dropped(
    tmp_path: Path,
) -> None:
    async with client(tmp_path, limit="0.3s") as caller:
        call = await caller.ask()
        assert await caller.turn() == (["The phone is silent."], [])
        await caller.answer(call, output={"answer": "late"})
        await caller.send(text="well")
        assert await caller.turn() == (["Pardon?"], [])


async def test_the_session_may_end_before_the_answer(tmp_path: Path) -> None:
    async with client(tmp_path) as caller:
        await caller.ask()
        await caller.send(text="bye")
        assert await caller.turn() == (["Goodbye."], [])
        assert (await caller.receive())["endSession"]["metadata"] == {"reason": "done"}


async def test_the_client_may_go_before_it_answers(tmp_path: Path) -> None:
    async with client(tmp_path) as caller:
        await caller.ask()


ON_BEHALF = """
rules:
  - when: {user: go}
    do: [{call: {tool: ask_expert, args: {request: look}}}]
  - when: {tool: ask_expert, result: pending}
    do: [{say: "I have asked."}]
  - when: {context: "function .ask_expert. completed"}
    do: [{say: "Later: {result.response}"}]
  - when: {user: look}
    do: [{call: on_phone}]
  - when: {tool: on_phone}
    do: [{say: "The phone says {result.answer}."}]
"""


async def test_an_agent_that_nobody_waits_for_reaches_the_client_too(tmp_path: Path) -> None:
    app = make_app(
        tmp_path,
        script=ON_BEHALF,
        agents={"Main": {"tools": ["ask_expert"]}, "Expert": {"tools": ["on_phone"]}},
        files={
            "tools/ask_expert/ask_expert.yaml": {
                "displayName": "ask_expert",
                "executionType": "ASYNCHRONOUS",
                "agentTool": {"name": "ask_expert", "agent": "Expert"},
            },
            "tools/on_phone/on_phone.yaml": {
                "displayName": "on_phone",
                "clientFunction": {"name": "on_phone", "parameters": {"type": "OBJECT"}},
            },
        },
    )
    async with talk(app) as caller:
        await caller.send(text="go")
        said: list[str] = []
        calls: list[dict[str, Any]] = []
        while not (said and calls):
            output = (await caller.receive())["sessionOutput"]
            said += [output["text"]] if "text" in output else []
            calls += output.get("toolCalls", {}).get("toolCalls", [])
        answer = {"id": calls[0]["id"], "response": {"output": {"answer": "yes"}}}
        await caller.send(toolResponses={"toolResponses": [answer]})
        while len(said) < 2:
            output = (await caller.receive())["sessionOutput"]
            said += [output["text"]] if "text" in output else []
        assert said == ["I have asked.", "Later: The phone says yes."]
