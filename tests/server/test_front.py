"""One port, two stacks: what the request head decides, and what happens to a bad one."""

from __future__ import annotations

import asyncio
import json
import socket

import aiohttp
import pytest

from gateway.server.front import FrontProtocol
from tests.server.conftest import Serve
from tests.server.echo import EchoCalls, until
from tests.server.wire import NATIVE, error_code, raw, request, start_native, websocket, ws_url

UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: {upgrade}\r\nConnection: {connection}\r\n"
    "Sec-WebSocket-Version: {version}\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
POST = b"POST /twilio/voice HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def upgrade(**over: str) -> bytes:
    fields = {
        "path": NATIVE,
        "upgrade": "websocket",
        "connection": "Upgrade",
        "version": "13",
        "key": KEY,
    }
    return UPGRADE.format(**(fields | over)).encode()


async def test_http_and_websocket_share_the_port(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    status, headers, body = await request(gateway, "GET", "/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert headers["Connection"] == "close"
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        assert gateway.active == 1
    await until(lambda: gateway.active == 0)


async def test_a_pooled_client_cannot_bring_an_upgrade_to_the_http_stack(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve()
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(gateway.url + "/readyz") as response:
                assert response.status == 200
            async with session.post(
                gateway.url + "/twilio/voice", data={"CallSid": "CA1", "x": "y" * 200_000}
            ) as response:
                assert response.status == 200
            async with session.ws_connect(ws_url(gateway, NATIVE)) as client:
                await client.send_str("{}")
                assert (await client.receive()).data == 1007
    assert len(calls.made) == 3


async def test_however_many_come_at_once_the_loop_goes_on_in_between(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.front.TURN_S", 0.0)
    turn = 0
    decided: list[int] = []
    decide = FrontProtocol.decide

    def noted(protocol: FrontProtocol) -> None:
        decided.append(turn)
        decide(protocol)

    monkeypatch.setattr(FrontProtocol, "decide", noted)
    gateway = await serve()
    # All stand at the door before the loop looks there.
    newcomers = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(30)]
    for newcomer in newcomers:
        newcomer.sendall(upgrade(path="/nowhere"))
        newcomer.setblocking(False)
    while len(decided) < len(newcomers):
        turn += 1
        await asyncio.sleep(0)
    assert len(set(decided)) == len(newcomers)
    loop = asyncio.get_running_loop()
    for newcomer in newcomers:
        with newcomer:
            assert (await loop.sock_recv(newcomer, 100)).startswith(b"HTTP/1.1 404")


async def test_pipelined_requests_get_one_answer(serve: Serve) -> None:
    gateway = await serve()
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = await raw(gateway, one + one)
    assert answer.count(b"HTTP/1.1 200") == 1
    answer = await raw(gateway, one + upgrade())
    assert b"101" not in answer.split(b"\r\n")[0]
    assert answer.count(b"HTTP/1.1") == 1


async def test_a_head_in_single_bytes_is_a_head(serve: Serve) -> None:
    gateway = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    for byte in b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n":
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    assert b"200 OK" in await reader.readline()
    writer.close()


async def test_frames_sent_with_the_upgrade_are_not_lost(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    text = b'{"realtimeInput":{"text":"early"}}'
    mask = b"\x01\x02\x03\x04"
    frame = bytes([0x81, 0x80 | len(text)]) + mask
    frame += bytes(byte ^ mask[index % 4] for index, byte in enumerate(text))
    answer = await raw(gateway, upgrade() + frame)
    assert answer.startswith(b"HTTP/1.1 101")
    assert [error.code for error in calls.made[0].errors] == ["protocol.order"]


async def test_a_browser_s_way_to_ask_for_an_upgrade(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(upgrade(connection="keep-alive, Upgrade", upgrade="WebSocket"))
    assert b"101" in await reader.readline()
    writer.close()
    await until(lambda: calls.made and calls.made[0].closed)


@pytest.mark.asyncio(loop_factories=["uvloop"])
@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http.version"),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400, "http.tls"),
        (b"\x00\x01\x02\x03", 400, "http.malformed"),
        (b"hello\r\n\r\n", 400, "http.malformed"),
        (b"GET /healthz HTTP/1.1\r\nbad header\r\n\r\n", 400, "http.malformed"),
        (b"GET / HTTP/3\r\n\r\n", 505, "http.version"),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", 414, "http.target"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20000, 431, "http.head_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431, "http.headers"),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "http.length"),
        (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, "http.length"),
        (POST + b"Content-Length: -5\r\n\r\n", 400, "http.length"),
        (POST + b"Content-Length: " + b"9" * 20 + b"\r\n\r\n", 400, "http.length"),
        (POST + b"Transfer-Encoding: gzip\r\n\r\nabc", 400, "http.length"),
        (POST + b"Host: other.example\r\n\r\n", 400, "http.host"),
        (upgrade().replace(b"Host", b"Host: other.example\r\nHost", 1), 400, "http.host"),
        (upgrade(key="short"), 400, "http.upgrade"),
        (upgrade(version="8"), 426, "http.upgrade"),
        (upgrade(path="/nowhere"), 404, "http.not_found"),
        (upgrade(path="/healthz"), 400, "http.not_a_websocket"),
        (upgrade().replace(b"GET", b"POST", 1), 400, "http.upgrade"),
        (upgrade().replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n"), 400, "http.upgrade"),
    ],
)
async def test_what_is_no_good_request_gets_a_clear_answer(
    serve: Serve, calls: EchoCalls, sent: bytes, status: int, code: str
) -> None:
    gateway = await serve()
    answer = await raw(gateway, sent, eof=True)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert error_code(answer) == code
    assert b"Traceback" not in answer
    assert not calls.made


async def test_a_malformed_body_is_the_client_s_fault_and_not_logged_in_its_words(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = await serve()
    packed = b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n4711"
    answer = await raw(gateway, POST + packed)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert error_code(answer) == "http.body"
    answer = await raw(gateway, POST + b"Transfer-Encoding: chunked\r\n\r\nz4711\r\n")
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert not caplog.records


async def test_a_slow_head_is_timed_out_and_a_silent_client_dropped(serve: Serve) -> None:
    gateway = await serve({"server.head_timeout_s": 0.1})
    answer = await raw(gateway, b"GET / HTTP/1.1\r\nX-Slow: ")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert error_code(answer) == "http.slow"
    assert await raw(gateway, b"") == b""


async def test_a_client_that_hangs_up_inside_its_head_leaves_nothing(serve: Serve) -> None:
    gateway = await serve()
    assert await raw(gateway, b"GET / HT", eof=True) == b""
    assert gateway._front is not None
    await until(lambda: not gateway._front.waiting)


async def test_a_websocket_address_in_a_browser_says_so(serve: Serve) -> None:
    gateway = await serve()
    status, headers, body = await request(gateway, "GET", NATIVE)
    assert (status, error_code(body)) == (426, "http.websocket")
    assert headers["Upgrade"] == "websocket"


async def test_connections_that_never_decide_do_not_hold_up_the_stop(serve: Serve) -> None:
    gateway = await serve()
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET ")
    await writer.drain()
    assert gateway._front is not None
    await until(lambda: gateway._front.waiting)
    await gateway.stop()
    writer.close()
