"""Sockets that the server opens itself: an Asterisk that waits for us under a connection id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from gateway.channels.base import EndReason
from gateway.server.app import Gateway
from tests.server.conftest import Serve
from tests.server.echo import EchoCalls, until
from tests.server.wire import error_code, request

START = "MEDIA_START connection_id:c-1 channel:WebSocket/INCOMING/0x1 channel_id:17.1 format:ulaw"


class Asterisk:
    """Waits at `/media/c-1`: says MEDIA_START, one frame, and keeps what comes back."""

    def __init__(self) -> None:
        self.heard: list[str | bytes] = []
        self.paths: list[str] = []
        self.hung_up = asyncio.Event()

    def judge(self, connection: ServerConnection, asked: Request) -> Response | None:
        self.paths.append(asked.path)
        if asked.path == "/media/c-1":
            return None
        return connection.respond(HTTPStatus.NOT_FOUND, "no such connection\n")

    async def talk(self, connection: ServerConnection) -> None:
        assert connection.subprotocol == "media"
        await connection.send(START)
        await connection.send(b"\x10" * 160)
        async for message in connection:
            self.heard.append(message)
            if isinstance(message, bytes):
                await connection.send("MEDIA_MARK_PROCESSED m1")
                await connection.send("DTMF_END digit:1")
                await connection.close()
        self.hung_up.set()


@asynccontextmanager
async def waiting() -> AsyncIterator[tuple[Asterisk, str]]:
    asterisk = Asterisk()
    async with serve(
        asterisk.talk,
        "127.0.0.1",
        0,
        process_request=asterisk.judge,
        subprotocols=[Subprotocol("media")],
        compression=None,
        ping_interval=None,
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield asterisk, f"ws://127.0.0.1:{port}/media"


async def ask(gateway: Gateway, connection_id: str = "c-1") -> tuple[int, bytes]:
    form = {"connection_id": connection_id, "from": "+15550100"}
    status, _, body = await request(gateway, "POST", "/asterisk/connect", data=form)
    return status, body


async def test_an_asterisk_that_waits_is_called(serve: Serve, calls: EchoCalls) -> None:
    async with waiting() as (asterisk, url):
        gateway = await serve({"platforms.asterisk.media_url": url})
        status, body = await ask(gateway)
        assert (status, body) == (200, b'{"connection_id":"c-1"}')
        await asyncio.wait_for(asterisk.hung_up.wait(), 5)
        assert asterisk.heard[:2] == [b"\x10" * 160, "MARK_MEDIA m1"]
        await until(lambda: gateway.active == 0)
    (call,) = calls.made
    assert call.call_id == "17.1"
    assert call.start is not None
    assert call.start.from_ == "+15550100"
    assert call.marks == ["m1"]
    assert call.reason is EndReason.TRANSPORT_LOST
    assert call.transport.close_code == 1000


async def test_one_that_does_not_wait_is_a_bad_gateway_and_holds_no_line(serve: Serve) -> None:
    async with waiting() as (asterisk, url):
        gateway = await serve({"platforms.asterisk.media_url": url})
        status, body = await ask(gateway, "c-2")
        assert (status, error_code(body)) == (502, "admission.platform")
        assert b"answers 404" in body
        assert asterisk.paths == ["/media/c-2"]
        assert gateway.active == 0


async def test_nobody_at_the_address(serve: Serve) -> None:
    gateway = await serve({"platforms.asterisk.media_url": "ws://127.0.0.1:1/media"})
    status, body = await ask(gateway)
    assert (status, error_code(body)) == (502, "admission.platform")
    assert gateway.active == 0


async def test_no_more_calls_than_lines(serve: Serve) -> None:
    async with waiting() as (asterisk, url):
        over = {"platforms.asterisk.media_url": url, "server.max_calls_per_source": 1}
        gateway = await serve(over)
        slot = gateway._admission.enter("127.0.0.1")
        try:
            status, body = await ask(gateway)
        finally:
            slot.release()
        assert status == 503, body
        assert asterisk.paths == []


async def test_who_may_ask_is_proven(serve: Serve) -> None:
    over = {
        "platforms.asterisk.media_url": "ws://127.0.0.1:1/media",
        "platforms.asterisk.username": "ari",
        "platforms.asterisk.password": "secret",
    }
    gateway = await serve(over)
    status, body = await ask(gateway)
    assert (status, error_code(body)) == (401, "auth.missing")
