"""A whole call over a real socket: the running product, called as each platform would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.config import load
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.result import RunResult
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call

pytestmark = pytest.mark.slow

CHANNELS = ("asterisk", "jambonz", "audio_fork", "audio_stream", "raw")
SCENARIO = """
from: "+15550100"
caller:
  - wait: {heard: "how can i help you today", timeout: 20s}
  - dtmf: "5#"
  - wait: {event: {kind: dtmf}, timeout: 20s}
  - hangup: true
expect:
  - heard: "welcome to northlight energy"
  - event: {kind: call_started, from: ".15550100"}
  - event: {kind: dtmf, digits: "5"}
  - event: {kind: utterance_ended, reason: completed, uri: "greeting"}
  - ended: remote_hangup
"""
USER, PASSWORD = "platform", "a password"


async def test_every_dialect_reaches_the_agent_and_is_heard() -> None:
    """All at once: they share one server, and each has a platform's own proof."""
    proof = {"username": USER, "password": PASSWORD}
    platforms = {name: proof for name in CHANNELS if name != "raw"}
    settings = load(overrides={"server": {"port": 0}, "platforms": platforms})
    scenario = parse_scenario(SCENARIO, Path("wire.yaml"))
    async with running(settings) as gateway:
        access = Access(gateway.url, secret=PASSWORD, key=USER)
        results = await asyncio.gather(
            *(call(access, scenario, channel, settings) for channel in CHANNELS)
        )
    for result in results:
        assert result.ok, f"{result.log.channel}: {problems(result)}"
        assert result.log.complaints == []
        assert any(result.log.heard)


def problems(result: RunResult) -> str:
    return "; ".join(str(verdict) for verdict in result.verdicts if not verdict.ok)
