"""Media sockets: both dialects on the wire, limits, and peers that misbehave."""

from __future__ import annotations

import asyncio
import base64
import json
import socket

import pytest
from websockets.exceptions import InvalidStatus
from websockets.frames import Opcode

from gateway.errors import RuntimeFailure
from tests.server.conftest import Serve
from tests.server.echo import EchoCalls, until
from tests.server.wire import (
    NATIVE,
    TWILIO_START,
    close_code,
    error_code,
    media_path,
    start_native,
    twilio_media,
    websocket,
)


async def test_a_native_session_echoes_audio(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        pcm = bytes(range(256))
        await client.send(json.dumps({"realtimeInput": {"audio": base64.b64encode(pcm).decode()}}))
        answer = json.loads(await client.recv())
        assert base64.b64decode(answer["sessionOutput"]["audio"]) == pcm
    assert calls.remote == [
        ("127.0.0.1", "/ws/google.cloud.ces.v1.SessionService/BidiRunSession/locations/{location}")
    ]
    await until(lambda: calls.made[0].closed == 1)
    assert calls.made[0].transport.close_code == 1000


async def test_a_twilio_call_from_webhook_to_stop(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    path = await media_path(gateway)
    async with websocket(gateway, path) as client:
        await client.send('{"event":"connected","protocol":"Call","version":"1.0.0"}')
        await client.send(json.dumps(TWILIO_START))
        await client.send(twilio_media(b"\x01\x02"))
        assert json.loads(await client.recv())["media"]["payload"] == "AQI="
        mark = json.loads(await client.recv())
        await client.send(json.dumps(mark))
        await client.send('{"event":"stop","streamSid":"MZ1","stop":{"callSid":"CA1"}}')
        assert await close_code(client) == 1000
    assert calls.made[0].marks == ["m1"]
    await until(lambda: gateway.active == 0)


@pytest.mark.asyncio(loop_factories=["uvloop"])
@pytest.mark.parametrize(
    ("messages", "code", "error"),
    [
        ([b"\x00\x01"], 1003, "protocol.binary"),
        ([""], 1007, "protocol.json"),
        (['{"event":"stop"}'], 1002, "protocol.order"),
        ([json.dumps(TWILIO_START)] * 2, 1002, "protocol.started_twice"),
        (['{"event":"media","media":{"payload":"&&"}}'], 1007, "protocol.shape"),
        (
            [json.dumps(TWILIO_START).replace("CA1", "CA2")],
            1008,
            "protocol.other_call",
        ),
    ],
)
async def test_a_broken_twilio_peer_is_closed_with_a_reason(
    serve: Serve, calls: EchoCalls, messages: list[str | bytes], code: int, error: str
) -> None:
    gateway = await serve()
    async with websocket(gateway, await media_path(gateway)) as client:
        assert await close_code(client, *messages) == code
    assert [fault.code for fault in calls.made[0].errors] == [error]
    await until(lambda: gateway.active == 0)


async def test_media_before_start_is_no_fault(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    async with websocket(gateway, await media_path(gateway)) as client:
        await client.send(twilio_media(b"\x01"))
        await client.send(json.dumps(TWILIO_START))
        await until(lambda: calls.made and calls.made[0].started)
        assert not calls.made[0].errors


async def test_a_two_megabyte_message_is_refused_by_the_dialect_s_limit(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve()
    async with websocket(gateway, await media_path(gateway)) as client:
        assert await close_code(client, "x" * (2 << 20)) in (1009, None)
    await until(lambda: gateway.active == 0)
    assert calls.made[0].messages == 0


async def test_fragments_are_put_together_within_the_same_limit(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await client.send(['{"realtimeInput":', '{"text":', '"in parts é"}}'])
        await until(lambda: calls.made[0].texts == ["in parts é"])
    async with websocket(gateway, await media_path(gateway)) as client:
        assert await close_code(client, ["y" * 30000] * 3) in (1009, None)


@pytest.mark.parametrize(
    ("opcode", "data", "rsv1", "code"),
    [
        (Opcode.TEXT, b"\xff\xfe", False, 1007),
        (Opcode.TEXT, b"{}", True, 1002),
        (Opcode.CONT, b"{}", False, 1002),
    ],
)
async def test_broken_frames(
    serve: Serve, opcode: Opcode, data: bytes, rsv1: bool, code: int
) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        client.protocol.writes.append(_frame(opcode, data, rsv1))
        client.transport.writelines(client.protocol.data_to_send())
        assert await close_code(client) == code


def _frame(opcode: Opcode, data: bytes, rsv1: bool) -> bytes:
    return bytes([0x80 | (0x40 if rsv1 else 0) | opcode, 0x80 | len(data)]) + bytes(4) + data


async def test_pings_are_answered(serve: Serve) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        await (await client.ping(b"alive?"))


async def test_no_start_message_in_time(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve({"server.start_message_timeout_s": 0.1})
    async with websocket(gateway, NATIVE) as client:
        assert await close_code(client) == 1008
    await until(lambda: gateway.active == 0)


async def test_too_many_messages_a_second(serve: Serve) -> None:
    gateway = await serve({"server.max_messages_per_s": 20})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        assert await close_code(client, *['{"realtimeInput":{"text":"again"}}'] * 60) == 1008


async def test_a_peer_that_never_reads_is_dropped(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve({"server.send_buffer_bytes": 65536})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        client.transport.pause_reading()
        await client.send('{"realtimeInput":{"text":"flood"}}')
        await until(lambda: gateway.active == 0)
        assert calls.made[0].closed == 1
        assert calls.made[0].transport.close_code == 1006
        client.transport.abort()


async def test_a_message_above_the_buffer_is_left_out_and_the_call_goes_on(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve({"server.send_buffer_bytes": 65536})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        calls.made[0].transport.send("x" * 100_000)
        calls.made[0].transport.send("small")
        assert await client.recv() == "small"


async def test_it_is_left_out_also_in_answer_to_a_message(serve: Serve) -> None:
    gateway = await serve({"server.send_buffer_bytes": 4096})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        for size in (6000, 6):
            audio = base64.b64encode(bytes(size)).decode()
            await client.send(json.dumps({"realtimeInput": {"audio": audio}}))
        answer = json.loads(await client.recv())
        assert len(base64.b64decode(answer["sessionOutput"]["audio"])) == 6


async def test_a_peer_that_vanishes_is_lost(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        client.transport.abort()
    await until(lambda: gateway.active == 0)
    assert calls.made[0].transport.close_code == 1006


async def test_a_half_open_socket_is_dropped_after_its_silence(
    serve: Serve, calls: EchoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.media.PING_AFTER_S", 0.05)
    monkeypatch.setattr("gateway.server.media.DEAD_AFTER_S", 1.0)
    gateway = await serve()
    quiet = socket.create_connection(("127.0.0.1", gateway.port))
    quiet.sendall(
        f"GET {NATIVE} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    await until(lambda: calls.made and calls.made[0].closed)
    quiet.close()
    # A client that answers pings stays, however quiet its caller is.
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: gateway._sockets)
        [alive] = gateway._sockets
        heard = {alive._heard_s}
        await until(lambda: heard.add(alive._heard_s) or len(heard) > 4)
        assert gateway.active == 1


async def test_a_peer_that_does_not_answer_the_close_is_dropped(
    serve: Serve, calls: EchoCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.media.CLOSE_WAIT_S", 0.1)
    gateway = await serve()
    stubborn = socket.create_connection(("127.0.0.1", gateway.port))
    stubborn.sendall(
        f"GET {NATIVE} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    await until(lambda: calls.made)
    calls.made[0].transport.close(1000, "done")
    await until(lambda: calls.made[0].closed)
    stubborn.close()


@pytest.mark.parametrize(("told", "answered"), [(1000, 1000), (4002, 4002), (1006, 1000)])
async def test_codes_that_only_stand_for_a_close_are_not_sent(
    serve: Serve, told: int, answered: int
) -> None:
    gateway = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(
        f"GET {NATIVE} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        + _frame(Opcode.CLOSE, told.to_bytes(2, "big"), False)
    )
    async with asyncio.timeout(5):
        answer = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    assert answer[-2:] == answered.to_bytes(2, "big")


async def test_the_line_is_held_until_the_call_lets_go(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve({"server.max_calls": 1})
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        calls.made[0].linger = asyncio.Event()
    await until(lambda: calls.made[0].closed)
    assert gateway.active == 1
    with pytest.raises(InvalidStatus) as caught:
        async with websocket(gateway, NATIVE):
            pass
    response = caught.value.response
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"
    assert error_code(bytes(response.body or b"")) == "admission.full"
    calls.made[0].linger.set()
    await until(lambda: gateway.active == 0)


async def test_a_call_that_cannot_be_made_or_fails_inside_closes_1011(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve()
    calls.fault = RuntimeFailure("runtime.start", "no runtime")
    async with websocket(gateway, NATIVE) as client:
        assert await close_code(client) == 1011
    calls.fault = None
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await client.send('{"realtimeInput":{"text":"boom"}}')
        assert await close_code(client) == 1011
    await until(lambda: gateway.active == 0)
