"""The runtime client over a real websocket: order, goAway, loss, bounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve

from gateway.call.events import InputType, RuntimeText, RuntimeTurnCompleted, ToRuntime
from gateway.errors import RuntimeFailure
from gateway.runtime.client import QUEUE_SIZE, RuntimeClient
from gateway.runtime.link import RuntimeLink, WebsocketLink

SESSION = "projects/p/locations/l/apps/a/sessions/call-0001"
Handler = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def serving(path: Path, handler: Handler) -> AsyncIterator[RuntimeClient]:
    """A client whose far end is `handler`."""
    socket = str(path / "runtime.sock")

    async def connect() -> RuntimeLink:
        return await WebsocketLink.open(f"unix://{socket}", 2.0)

    async with unix_serve(handler, socket, close_timeout=1.0):
        client = RuntimeClient(SESSION, {}, connect)
        try:
            yield client
        finally:
            await client.aclose()


def _text(words: str) -> ToRuntime:
    return ToRuntime(InputType.TEXT, text=words)


async def _send(connection: ServerConnection, *messages: dict[str, Any]) -> None:
    for message in messages:
        await connection.send(json.dumps(message))


async def _all(client: RuntimeClient) -> list[Any]:
    return [item async for item in client.outputs()]


async def test_configuration_comes_first_then_inputs_in_order(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    async def handler(connection: ServerConnection) -> None:
        seen.extend([json.loads(await connection.recv()) for _ in range(3)])
        await _send(connection, {"sessionOutput": {"text": "Hi", "turnIndex": 1}})

    async with serving(tmp_path, handler) as client:
        await client.open()
        client.send(_text("one"))
        client.send(_text("two"))
        assert await _all(client) == [RuntimeText("Hi", 1)]
    assert seen[0]["config"]["session"] == SESSION
    assert [m["realtimeInput"]["text"] for m in seen[1:]] == ["one", "two"]


async def test_go_away_resumes_the_session_without_a_second_greeting(tmp_path: Path) -> None:
    heard: list[list[dict[str, Any]]] = []
    reconnected = asyncio.Event()

    async def handler(connection: ServerConnection) -> None:
        mine: list[dict[str, Any]] = [json.loads(await connection.recv())]
        heard.append(mine)
        if len(heard) == 1:
            mine.append(json.loads(await connection.recv()))
            await _send(connection, {"goAway": {}})
            await connection.wait_closed()
            return
        reconnected.set()
        mine.append(json.loads(await connection.recv()))
        await _send(connection, {"sessionOutput": {"turnIndex": 2, "turnCompleted": True}})

    async with serving(tmp_path, handler) as client:
        await client.open()
        client.send(ToRuntime(InputType.EVENT, text="session start"))
        outputs = client.outputs()
        task = asyncio.ensure_future(anext(outputs))
        await asyncio.wait_for(reconnected.wait(), 5)
        client.send(_text("said meanwhile"))
        assert await task == RuntimeTurnCompleted(2)
        await outputs.aclose()
    first, second = heard
    assert first[0] == second[0]
    assert first[1]["realtimeInput"]["event"] == {"event": "session start"}
    assert second[1]["realtimeInput"]["text"] == "said meanwhile"


async def test_a_runtime_that_dies_is_told(tmp_path: Path) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        connection.transport.abort()

    async with serving(tmp_path, handler) as client:
        await client.open()
        with pytest.raises(RuntimeFailure) as caught:
            await _all(client)
        assert caught.value.code == "runtime.lost"


async def test_a_close_with_an_error_code_is_a_loss_with_its_reason(tmp_path: Path) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.close(1011, "generic::internal: broken")

    async with serving(tmp_path, handler) as client:
        await client.open()
        with pytest.raises(RuntimeFailure, match="generic::internal"):
            await _all(client)


async def test_nobody_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure) as caught:
        await WebsocketLink.open(f"unix://{tmp_path}/nothing.sock", 1.0)
    assert caught.value.code == "runtime.unreachable"


async def test_the_input_queue_is_bounded(tmp_path: Path) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serving(tmp_path, handler) as client:
        for n in range(QUEUE_SIZE):
            client.send(_text(str(n)))
        with pytest.raises(RuntimeFailure) as caught:
            client.send(_text("one more"))
        assert caught.value.code == "runtime.overflow"


async def test_endless_go_away_ends(tmp_path: Path) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        await _send(connection, {"goAway": {}})
        await connection.wait_closed()

    async with serving(tmp_path, handler) as client:
        await client.open()
        with pytest.raises(RuntimeFailure) as caught:
            await _all(client)
        assert caught.value.code == "runtime.go_away"
