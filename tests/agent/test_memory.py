"""A thousand sessions in a row leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import psutil
import pytest

from gateway.agent.app import read_app
from gateway.agent.build import build_engine
from gateway.agent.link import memory_links
from gateway.agent.runner import ThreadRunner
from gateway.agent.session import serve_link
from gateway.agent.store import SessionStore
from gateway.config import Settings
from tests.agent.talk import APPS, Talk

SESSIONS = 1000
WARM_UP = 200
MAX_OBJECTS = 500
"""Caches of the interpreter and of libraries may still fill; sessions hold thousands each."""
MAX_MIB = 16


@pytest.mark.slow
async def test_a_thousand_sessions_leave_memory_flat() -> None:
    runner, store = ThreadRunner(), SessionStore()
    settings = Settings()
    app = read_app(APPS / "tools")
    engine = build_engine(app, settings, runner)
    process = psutil.Process()
    objects = bytes_used = 0
    for number in range(SESSIONS):
        if number == WARM_UP:
            gc.collect()
            objects, bytes_used = len(gc.get_objects()), process.memory_info().rss
        near, far = memory_links()
        serving = asyncio.create_task(serve_link(far, app, settings, runner, store, engine))
        client = Talk(near)
        name = f"projects/p/locations/l/apps/a/sessions/number-{number}"
        await near.send({"config": {"session": name}})
        await near.send({"realtimeInput": {"text": "add 2 and 3"}})
        await _until(client, "turnCompleted")
        await near.send({"realtimeInput": {"text": "bye"}})
        await _until(client, "endSession")
        await near.aclose()
        await serving
    gc.collect()
    assert len(store) == 0
    assert len(gc.get_objects()) - objects < MAX_OBJECTS
    assert (process.memory_info().rss - bytes_used) / (1 << 20) < MAX_MIB
    await runner.aclose()


async def _until(client: Talk, what: str) -> None:
    async with asyncio.timeout(10):
        message: dict[str, Any] | None = {}
        while message is not None and what not in message.get("sessionOutput", message):
            message = await client.link.receive()
    assert message is not None
