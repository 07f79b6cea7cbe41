"""MCP tools through the official client against a real MCP server on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.scope import scoped
from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.http import ToolFailure
from gateway.agent.tools.mcp import McpServer
from gateway.agent.tools.session_context import SessionContext
from gateway.config import ToolSettings
from tests.agent.loopback import Mcp, mcp_server
from tests.agent.made import make_app
from tests.agent.talk import talk, texts


@pytest.fixture(scope="module")
def mcp() -> Iterator[Mcp]:
    with mcp_server() as server:
        yield server


def _server(mcp: Mcp, **more: Any) -> McpServer:
    return McpServer(mcp.url, Authenticator(ToolSettings()), **more)


def test_a_servers_tools_are_listed_and_called(mcp: Mcp) -> None:
    server = _server(mcp)
    tools = {tool["name"]: tool for tool in server.list_tools(SessionContext())}
    assert tools["weather"]["description"] == "The weather of a city."
    assert tools["weather"]["inputSchema"]["required"] == ["city"]
    assert server.call("weather", {"city": "Bonn"}, SessionContext()) == {
        "city": "Bonn",
        "sky": "clear",
    }


def test_headers_are_filled_from_the_session(mcp: Mcp) -> None:
    server = _server(
        mcp,
        headers={"X-Customer": "$context.variables.customer", "X-Session": "$context.session_id"},
        authentication={"bearerTokenConfig": {"token": "$context.variables.token"}},
    )
    context = SessionContext(session_id="s-1", variables={"customer": 4711.0, "token": "t"})
    server.call("shout", {"text": "a"}, context)
    assert mcp.headers[-1]["x-customer"] == "4711"
    assert mcp.headers[-1]["x-session"] == "s-1"
    assert mcp.headers[-1]["authorization"] == "Bearer t"


def test_a_tool_that_fails_says_why(mcp: Mcp) -> None:
    with pytest.raises(ToolFailure, match="no such station"):
        _server(mcp).call("broken", {}, SessionContext())


def test_no_server_is_a_failure_not_a_trace() -> None:
    server = McpServer("http://127.0.0.1:1/mcp", Authenticator(ToolSettings()))
    with pytest.raises(ToolFailure, match="the MCP server failed"):
        server.list_tools(SessionContext())


def test_the_deadline_of_the_call_bounds_the_exchange(mcp: Mcp) -> None:
    call = scoped(lambda: _server(mcp).call("slow", {}, SessionContext()), "s", None, 0.5)
    with pytest.raises(ToolFailure, match="too long"):
        call()


def _toolset(url: str, **more: Any) -> dict[str, Any]:
    return {
        "toolsets/Sky/Sky.yaml": {
            "displayName": "Sky",
            "mcpToolset": {"serverAddress": url, **more},
        }
    }


BONN = {"city": "Bonn"}
SCRIPT = {
    "rules": [
        {"when": {"user": "weather"}, "do": [{"call": {"tool": "Sky_weather", "args": BONN}}]},
        {"when": {"tool": "Sky_weather"}, "do": [{"say": "It is {result.sky}{result.error}."}]},
        {"when": {"user": "shout"}, "do": [{"call": {"tool": "Sky_shout", "args": {"text": "a"}}}]},
        {"when": {"tool": "Sky_shout"}, "do": [{"say": "{result.error}"}]},
    ]
}  # fmt: skip


async def test_an_agent_calls_what_the_toolset_offers(tmp_path: Path, mcp: Mcp) -> None:
    app = make_app(
        tmp_path,
        script=SCRIPT,
        agents={"Main": {"toolsets": [{"toolset": "Sky", "toolIds": ["weather"]}]}},
        files=_toolset(mcp.url),
    )
    async with talk(app) as client:
        assert texts(await client.say("weather?")) == ["It is clear."]
        # The agent lists one of the server's tools only.
        assert texts(await client.say("shout")) == [
            "the agent 'Main' does not list the tool 'Sky_shout'"
        ]


async def test_a_server_that_is_gone_leaves_the_agent_without_its_tools(tmp_path: Path) -> None:
    app = make_app(
        tmp_path,
        script=SCRIPT,
        agents={"Main": {"toolsets": [{"toolset": "Sky"}]}},
        files=_toolset("http://127.0.0.1:1/mcp"),
    )
    async with talk(app) as client:
        assert texts(await client.say("weather?")) == ["It is there is no tool 'Sky_weather'."]


async def test_a_single_mcp_tool_needs_no_listing(tmp_path: Path, mcp: Mcp) -> None:
    tool = {
        "displayName": "sky_of",
        "mcpTool": {
            "name": "weather",
            "serverAddress": mcp.url,
            "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    script = {
        "rules": [
            {"when": {"tool": "sky_of"}, "do": [{"say": "{result.city}"}]},
            {"when": {"user": "."}, "do": [{"call": {"tool": "sky_of", "args": {"city": "Ulm"}}}]},
        ]
    }
    app = make_app(
        tmp_path,
        script=script,
        agents={"Main": {"tools": ["sky_of"]}},
        files={"tools/sky_of/sky_of.yaml": tool},
    )
    async with talk(app) as client:
        assert texts(await client.say("go")) == ["Ulm"]
