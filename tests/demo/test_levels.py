"""A tool may serve some dialects only: real calls by two of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.config import load
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call
from tests.agent.made import make_app, python_tool

pytestmark = pytest.mark.slow

SCRIPT = """
rules:
  - when: {tool: unlock, result: error}
    do: [{say: "That is not for you."}]
  - when: {tool: unlock}
    do: [{say: "The door is open."}]
  - when: {dtmf: "^1$"}
    do: [{call: unlock}]
default: [{say: "Press one."}]
"""
SCENARIO = """
caller:
  - wait: {heard: "press one", timeout: 20s}
  - dtmf: "1#"
  - wait: {heard: "door is open|not for you", timeout: 20s}
  - hangup: true
expect:
  - heard: "HEARD"
"""
HEARD = {"asterisk": "the door is open", "jambonz": "that is not for you"}
USER, PASSWORD = "platform", "a password"


async def test_a_tool_serves_the_dialects_that_its_level_allows(tmp_path: Path) -> None:
    app = make_app(
        tmp_path,
        script=SCRIPT,
        agents={"Main": {"tools": ["unlock"]}},
        files=python_tool("unlock", "def unlock():\n    return {'open': True}\n"),
    )
    proof = {"username": USER, "password": PASSWORD}
    settings = load(
        overrides={
            "app": str(app),
            "server": {"port": 0},
            "platforms": dict.fromkeys(HEARD, proof),
            # The least trust is asked of callers: those of other dialects count as outsiders.
            "tools": {"levels": {"unlock": "self"}, "channels": {"asterisk": "self"}},
        }
    )
    async with running(settings) as gateway:
        access = Access(gateway.url, secret=PASSWORD, key=USER)
        results = await asyncio.gather(
            *(
                call(access, parse_scenario(SCENARIO.replace("HEARD", heard), Path("x.yaml")), name)
                for name, heard in HEARD.items()
            )
        )
    for result in results:
        failed = [str(verdict) for verdict in result.verdicts if not verdict.ok]
        assert failed == [], f"{result.log.channel}: {failed}"
