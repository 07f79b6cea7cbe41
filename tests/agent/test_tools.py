"""Tools of every kind in a conversation: listed or not, faked, mocked, remote, by an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config import Settings
from tests.agent.loopback import Api, api_server
from tests.agent.made import make_app, python_tool
from tests.agent.talk import talk, texts

ECHO = """
rules:
  - when: {tool: TOOL}
    do: [{say: "{result}"}]
  - when: {user: .}
    do: [{call: {tool: TOOL, args: {value: "1"}}}]
"""


def _echo(tool: str) -> str:
    """A script that calls the tool and says what came back."""
    return ECHO.replace("TOOL", tool)


def _settings(**tools: Any) -> Settings:
    return Settings.model_validate({"tools": tools})


async def _result(
    app: Path, settings: Settings | None = None, channel: str = "", **config: Any
) -> str:
    async with talk(app, settings, channel=channel, **config) as client:
        (text,) = texts(await client.say("go"))
    return text


# ---- who may call what


DOUBLE = python_tool("double", "def double(value: str):\n    return int(value) * 2\n")


async def test_a_tool_that_the_agent_does_not_list_is_refused_unless_allowed(
    tmp_path: Path,
) -> None:
    app = make_app(tmp_path, script=_echo("double"), files=DOUBLE)
    assert "does not list the tool 'double'" in await _result(app)
    assert await _result(app, _settings(unlisted=True)) == "2"


async def test_an_end_that_the_agent_does_not_list_is_refused_and_the_turn_is_bounded(
    tmp_path: Path,
) -> None:
    code = (
        "def before_model_callback(callback_context, llm_request):\n"
        "    return LlmResponse.from_parts([Part.from_end_session(reason='x')])\n"
    )
    app = make_app(tmp_path, agents={"Main": {"beforeModelCallbacks": [{"pythonCode": code}]}})
    settings = Settings()
    assert await _result(app, settings) == settings.call.fallback_message


async def test_only_allowed_tools_run(tmp_path: Path) -> None:
    app = make_app(
        tmp_path, script=_echo("double"), agents={"Main": {"tools": ["double"]}}, files=DOUBLE
    )
    assert await _result(app, _settings(allowed=["dou*"])) == "2"
    assert "is not allowed here" in await _result(app, _settings(allowed=["other"]))


@pytest.mark.parametrize(
    ("level", "channel", "runs"),
    [
        ("self", "console", True),
        ("self", "desk", False),
        ("self", "twilio", False),
        ("system", "console", True),
        ("system", "desk", True),
        ("system", "twilio", False),
        ("trusted", "twilio", True),
    ],
)
async def test_a_tool_serves_callers_up_to_its_level(
    tmp_path: Path, level: str, channel: str, runs: bool
) -> None:
    app = make_app(
        tmp_path, script=_echo("double"), agents={"Main": {"tools": ["double"]}}, files=DOUBLE
    )
    settings = _settings(levels={"double": level}, channels={"console": "self", "desk": "system"})
    answer = await _result(app, settings, channel)
    assert answer == "2" if runs else "is not available to this caller" in answer


async def test_code_is_held_to_the_same_rules(tmp_path: Path) -> None:
    wrapper = python_tool(
        "wrapper", "def wrapper(value: str):\n    return tools.double({'value': value}).json()\n"
    )
    app = make_app(
        tmp_path,
        script=_echo("wrapper"),
        agents={"Main": {"tools": ["wrapper"]}},
        files={**DOUBLE, **wrapper},
    )
    # Code may call tools that the agent does not list, but none that the operator forbids.
    assert await _result(app) == "2"
    assert "is not allowed here" in await _result(app, _settings(allowed=["wrapper"]))


# ---- kinds that run elsewhere


UNAVAILABLE = {
    "dataStoreTool": {"name": "docs", "dataStoreSource": {}},
    "googleSearchTool": {"name": "web"},
    "connectorTool": {"connection": "c"},
    "fileSearchTool": {"name": "files"},
    "widgetTool": {"name": "card"},
    "remoteAgentTool": {"name": "far"},
}
FAKE = "def fake_tool_call(tool, input, callback_context):\n    return {'faked': tool.name}\n"


@pytest.mark.parametrize("kind", sorted(UNAVAILABLE))
async def test_what_nothing_here_runs_says_so_unless_it_has_a_fake(
    tmp_path: Path, kind: str
) -> None:
    tool = {
        "displayName": "elsewhere",
        kind: UNAVAILABLE[kind],
        "toolFakeConfig": {"codeBlock": {"pythonCode": FAKE}},
    }
    app = make_app(
        tmp_path,
        script=_echo("elsewhere"),
        agents={"Main": {"tools": ["elsewhere"]}},
        files={"tools/elsewhere/elsewhere.yaml": tool},
    )
    assert f"tools of the kind {kind} are not available here" in await _result(app)
    faked = '{"faked": "elsewhere"}'
    assert await _result(app, useToolFakes=True) == faked
    assert await _result(app, _settings(fakes=True)) == faked


# ---- fakes and mocks


async def test_a_fake_that_returns_nothing_leaves_the_real_tool_to_answer(tmp_path: Path) -> None:
    fake = (
        "def fake_double(tool, input, callback_context):\n"
        "    return {'faked': True} if input['value'] == '7' else None\n"
    )
    files = python_tool(
        "double",
        "def double(value: str):\n    return int(value) * 2\n",
        toolFakeConfig={"enableFakeMode": True, "codeBlock": {"pythonCode": fake}},
    )
    app = make_app(
        tmp_path, script=_echo("double"), agents={"Main": {"tools": ["double"]}}, files=files
    )
    assert await _result(app) == "2"


async def test_mocks_answer_by_name_and_arguments(tmp_path: Path) -> None:
    mocks = tmp_path / "mocks.yaml"
    mocks.write_text(
        "mockedToolCalls:\n"
        "  - {toolId: double, expectedArgsPattern: {value: '[2-9]'}, mockResponse: {never: 1}}\n"
        "  - {toolId: double, expectedArgsPattern: {value: '[01]'}, mockResponse: {mocked: 1}}\n"
        "unmatchedToolCallBehavior: FAIL\n"
    )
    app = make_app(
        tmp_path / "app",
        script=_echo("double"),
        agents={"Main": {"tools": ["double"]}},
        files=DOUBLE,
    )
    assert await _result(app, _settings(mocks=str(mocks))) == '{"mocked": 1}'
    mocks.write_text("unmatchedToolCallBehavior: FAIL\n")
    assert "no mocked answer fits" in await _result(app, _settings(mocks=str(mocks)))


# ---- OpenAPI toolsets


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as server:
        yield server


SCHEMA = """
openapi: 3.0.0
paths:
  /meters/{meter}:
    get:
      operationId: readMeter
      parameters:
        - {name: meter, in: path, required: true, schema: {type: string}}
        - {name: s, in: query, schema: {type: string}, x-ces-session-context: $context.session_id}
"""


def _toolset(api: Api) -> dict[str, Any]:
    return {
        "toolsets/Meter_Api/Meter_Api.yaml": {
            "displayName": "Meter Api",
            "openApiToolset": {
                "openApiSchema": "toolsets/Meter_Api/schema.yaml",
                "url": "$api_url",
            },
        },
        "toolsets/Meter_Api/schema.yaml": SCHEMA,
        "environment.json": {"api_url": api.url},
    }


async def test_an_operation_of_a_toolset_is_a_tool_of_the_agent(tmp_path: Path, api: Api) -> None:
    api.answers["/meters/77"] = (200, {"kwh": 4})
    script = """
rules:
  - when: {tool: Meter_Api_readMeter}
    do: [{say: "{result.kwh} kilowatt hours."}]
  - when: {user: .}
    do: [{call: {tool: Meter_Api_readMeter, args: {meter: "77"}}}]
"""
    app = make_app(
        tmp_path,
        script=script,
        agents={"Main": {"toolsets": [{"toolset": "Meter Api"}]}},
        files=_toolset(api),
    )
    assert await _result(app) == "4 kilowatt hours."
    assert api.last["query"] == [["s", "session-1"]]


async def test_code_calls_an_operation_by_toolset_and_name(tmp_path: Path, api: Api) -> None:
    api.answers["/meters/78"] = (200, {"kwh": 5, "noise": 0})
    code = (
        "def reading(value: str):\n"
        "    return {'kwh': tools.Meter_Api_readMeter({'meter': '78'}).json()['kwh']}\n"
    )
    app = make_app(
        tmp_path,
        script=_echo("reading"),
        agents={"Main": {"tools": ["reading"]}},
        files={**_toolset(api), **python_tool("reading", code)},
    )
    assert await _result(app) == '{"kwh": 5}'


async def test_an_api_that_fails_is_an_error_to_the_model(tmp_path: Path, api: Api) -> None:
    api.answers["/meters/1"] = (503, "later")
    app = make_app(
        tmp_path,
        script=_echo("Meter_Api_readMeter").replace("value", "meter"),
        agents={"Main": {"toolsets": [{"toolset": "Meter Api"}]}},
        files=_toolset(api),
    )
    assert await _result(app) == '{"error": "ToolFailure: HTTP 503: later"}'


# ---- agents as tools


AGENT_TOOL = """
rules:
  - agent: Main
    when: {tool: ask_expert}
    do: [{say: "{result.response}{result.error}"}]
  - agent: Main
    when: {context: "function .ask_expert. completed"}
    do: [{say: "Later: {result.response}"}]
  - agent: Main
    do: [{call: {tool: ask_expert, args: {request: how much}}}]
  - agent: Expert
    when: {tool: price}
    do: [{say: "It costs {result.euros} euros, {note}."}]
  - agent: Expert
    when: {user: how much}
    do: [{call: price}]
"""


def _expert(folder: Path, **more: Any) -> Path:
    return make_app(
        folder,
        script=AGENT_TOOL,
        agents={"Main": {"tools": ["ask_expert"]}, "Expert": {"tools": ["price", "ask_expert"]}},
        files={
            "tools/ask_expert/ask_expert.yaml": {
                "displayName": "ask_expert",
                "agentTool": {"name": "ask_expert", "agent": "Expert"},
                **more,
            },
            **python_tool(
                "price", "def price():\n    set_variable('note', 'net')\n    return {'euros': 3}\n"
            ),
        },
    )


async def test_an_agent_works_as_a_tool_out_of_the_callers_hearing(tmp_path: Path) -> None:
    assert await _result(_expert(tmp_path)) == "It costs 3 euros, net."


async def test_an_agent_tool_may_be_asynchronous(tmp_path: Path) -> None:
    async with talk(_expert(tmp_path, executionType="ASYNCHRONOUS")) as client:
        assert texts(await client.say("go")) == ["pending"]
        assert texts(await client.turn()) == ["Later: It costs 3 euros, net."]


async def test_agents_that_work_for_one_another_are_bounded(tmp_path: Path) -> None:
    script = """
rules:
  - when: {tool: ask_expert}
    do: [{say: "{result.response}{result.error}"}]
  - do: [{call: {tool: ask_expert, args: {request: again}}}]
"""
    app = _expert(tmp_path)
    (app / "scripted_model.yaml").write_text(script)
    assert await _result(app) == "too many agents work for one another"


# ---- together or one after the other


MEET = python_tool(
    "meet",
    "import time\n"
    "def meet(value: str):\n"
    "    box = context.state.setdefault('_here', [])\n"
    "    box.append(value)\n"
    "    for _ in range(50):\n"
    "        if len(box) > 1:\n"
    "            return 'together'\n"
    "        time.sleep(0.01)\n"
    "    return 'alone'\n",
)


@pytest.mark.parametrize(("mode", "answer"), [("PARALLEL", "together"), ("SEQUENTIAL", "alone")])
async def test_calls_of_one_step_run_together_or_one_after_the_other(
    tmp_path: Path, mode: str, answer: str
) -> None:
    script = """
rules:
  - when: {tool: meet, result: alone}
    do: [{say: alone}]
  - when: {tool: meet}
    do: [{say: "{result}"}]
  - when: {user: .}
    do: [{call: {tool: meet, args: {value: "1"}}}, {call: {tool: meet_too, args: {value: "2"}}}]
"""
    code = MEET["tools/meet/code.py"].replace("def meet", "def meet_too")
    app = make_app(
        tmp_path,
        script=script,
        app={"toolExecutionMode": mode},
        agents={"Main": {"tools": ["meet", "meet_too"]}},
        files={**MEET, **python_tool("meet_too", code)},
    )
    assert await _result(app) == answer


async def test_a_slow_remote_tool_is_left_at_its_timeout(tmp_path: Path, api: Api) -> None:
    files = _toolset(api)
    files["toolsets/Meter_Api/Meter_Api.yaml"]["timeout"] = "0.3s"
    files["toolsets/Meter_Api/schema.yaml"] = SCHEMA.replace("/meters/", "/hang/")
    app = make_app(
        tmp_path,
        script=_echo("Meter_Api_readMeter").replace("value", "meter"),
        agents={"Main": {"toolsets": [{"toolset": "Meter Api"}]}},
        files=files,
    )
    answer = await asyncio.wait_for(_result(app), 10)
    assert "error" in answer
    api.hold.set()
