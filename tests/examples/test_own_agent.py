"""The example of an agent of one's own: a real call to it through a real gateway."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from gateway.config import load
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
START_S = 20.0


@asynccontextmanager
async def agent(port: int) -> AsyncIterator[str]:
    """The example as its docstring starts it; its address."""
    url = f"ws://127.0.0.1:{port}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "own_agent.py"), str(port), stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(START_S):
            async for connection in connect(url):
                await connection.close()
                break
        yield url
    finally:
        process.terminate()
        _, said = await process.communicate()
        await asyncio.sleep(0)
    assert b"Error" not in said, said.decode()


async def test_it_answers_and_ends_the_call(
    unused_tcp_port_factory: Callable[[], int],
) -> None:
    port, agent_port = unused_tcp_port_factory(), unused_tcp_port_factory()
    scenario = parse_scenario((EXAMPLES / "own_agent.yaml").read_text(), Path("own_agent.yaml"))
    async with agent(agent_port) as runtime:
        settings = load(overrides={"server": {"port": port}, "runtime": {"url": runtime}})
        async with running(settings):
            result = await call(Access(f"http://127.0.0.1:{port}"), scenario, "twilio")
    assert result.ok, [str(verdict) for verdict in result.verdicts]
