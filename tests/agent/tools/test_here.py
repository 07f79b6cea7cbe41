"""App code calls agents and client functions through `tools.x(...)`, as any other tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.agent.made import make_app, python_tool
from tests.agent.talk import Talk, talk, texts

SCRIPT = """
rules:
  - agent: Expert
    do: [{say: "It costs 3 euros."}]
  - when: {tool: wrapper}
    do: [{say: "{result.answer}{result.error}"}]
  - do: [{call: wrapper}]
"""


def _app(folder: Path, code: str, **more: Any) -> Path:
    return make_app(
        folder,
        script=SCRIPT,
        agents={"Main": {"tools": ["wrapper"]}, "Expert": {}},
        files={
            "tools/ask/ask.yaml": {
                "displayName": "ask",
                "agentTool": {"name": "ask", "agent": "Expert"},
            },
            "tools/screen/screen.yaml": {
                "displayName": "screen",
                "clientFunction": {"name": "screen"},
                "timeout": "0.3s",
            },
            **python_tool("wrapper", code, **more),
        },
    )


CLIENT = """
def wrapper():
    got = tools.screen({'colour': 'red'}).json()
    return {'answer': got.get('shown'), 'error': got.get('error')}
"""


async def _asked(client: Talk) -> dict[str, Any]:
    output = (await client.receive())["sessionOutput"]
    (call,) = output["toolCalls"]["toolCalls"]
    return dict(call)


async def test_another_agent_works_for_code(tmp_path: Path) -> None:
    code = "def wrapper():\n    return {'answer': tools.ask({'request': 'x'}).json()['response']}\n"
    async with talk(_app(tmp_path, code)) as client:
        assert texts(await client.say("go")) == ["It costs 3 euros."]


async def test_the_client_runs_its_function_for_code(tmp_path: Path) -> None:
    async with talk(_app(tmp_path, CLIENT)) as client:
        await client.send(text="go")
        call = await _asked(client)
        assert (call["displayName"], call["args"]) == ("screen", {"colour": "red"})
        answer = {"id": call["id"], "tool": call["tool"], "response": {"shown": "Red it is."}}
        await client.send(toolResponses={"toolResponses": [answer]})
        assert texts(await client.turn()) == ["Red it is."]


async def test_a_client_that_does_not_answer_is_an_error_to_code(tmp_path: Path) -> None:
    async with talk(_app(tmp_path, CLIENT)) as client:
        await client.send(text="go")
        await _asked(client)
        assert texts(await client.turn()) == ["the client did not answer within 0.3 seconds"]


async def test_a_turn_that_is_cut_short_does_not_leave_code_waiting(tmp_path: Path) -> None:
    app = _app(tmp_path, CLIENT)
    screen = (app / "tools/screen/screen.yaml").read_text().replace("0.3s", "20s")
    (app / "tools/screen/screen.yaml").write_text(screen)
    async with talk(app) as client:
        await client.send(text="go")
        await _asked(client)
        await client.send(text="go on")
        assert await client.turn() == []
        assert (await _asked(client))["displayName"] == "screen"


async def test_code_that_outlives_its_turn_is_told_so(tmp_path: Path) -> None:
    code = """
import time

def wrapper():
    while get_variable('over') != 'yes':
        time.sleep(0.01)
    return tools.screen().json()
"""
    app = _app(tmp_path, code, executionType="ASYNCHRONOUS")
    (app / "app.yaml").write_text(
        "displayName: Made\nrootAgent: Main\n"
        "variableDeclarations: [{name: over, schema: {type: STRING, default: no}}]\n"
    )
    (app / "scripted_model.yaml").write_text(
        """
rules:
  - when: {context: "function .wrapper. completed .*is over"}
    do: [{say: "It is over."}]
  - when: {tool: wrapper}
    do: [{say: "Started."}]
  - do: [{call: wrapper}]
"""
    )
    async with talk(app) as client:
        assert texts(await client.say("go")) == ["Started."]
        await client.send(variables={"over": "yes"})
        assert texts(await client.turn()) == ["It is over."]
