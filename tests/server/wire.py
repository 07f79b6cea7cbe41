"""Clients of the server under test: raw sockets, HTTP and both dialects."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gateway.server.app import Gateway

NATIVE = "/ws/google.cloud.ces.v1.SessionService/BidiRunSession/locations/us"
SESSION = "projects/p/locations/us/apps/a/sessions/"
LINEAR_8K = {"audioEncoding": "LINEAR16", "sampleRateHertz": 8000}
TWILIO_START = {
    "event": "start",
    "streamSid": "MZ1",
    "start": {"streamSid": "MZ1", "callSid": "CA1", "customParameters": {}},
}


def ws_url(gateway: Gateway, path: str) -> str:
    """The websocket address of a path."""
    return gateway.url.replace("http", "ws", 1) + path


@asynccontextmanager
async def websocket(gateway: Gateway, path: str, **more: Any) -> AsyncIterator[ClientConnection]:
    """An open websocket, without compression and without pings of its own."""
    async with connect(
        ws_url(gateway, path), compression=None, ping_interval=None, close_timeout=2, **more
    ) as client:
        yield client


async def request(
    gateway: Gateway, method: str, path: str, **more: Any
) -> tuple[int, Mapping[str, str], bytes]:
    """One HTTP request on a connection of its own."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, gateway.url + path, **more) as response,
    ):
        return response.status, response.headers, await response.read()


async def raw(gateway: Gateway, data: bytes, *, eof: bool = False) -> bytes:
    """Write bytes to the port, read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        writer.write(data)
        if eof:
            writer.write_eof()
        async with asyncio.timeout(5):
            return await reader.read(-1)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def error_code(answer: bytes) -> str:
    """The error code in the body of a raw or parsed answer."""
    return str(json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]["code"])


async def start_native(client: ClientConnection, session: str = "call-0001", **over: Any) -> None:
    """Send the configuration of a voice session."""
    config = {
        "session": SESSION + session,
        "inputAudioConfig": LINEAR_8K,
        "outputAudioConfig": LINEAR_8K,
        **over,
    }
    await client.send(json.dumps({"config": config}))


async def media_path(
    gateway: Gateway, call_sid: str = "CA1", *, account: str = "", **more: Any
) -> str:
    """The media path that the voice webhook hands out."""
    form = {"CallSid": call_sid, "From": "+15550100", "To": "+15550199", "AccountSid": account}
    status, _, body = await request(gateway, "POST", "/twilio/voice", data=form, **more)
    assert status == 200, body
    found = re.search(r'url="wss?://[^/]+(/[^"]+)"', body.decode())
    assert found is not None
    return found[1]


def twilio_media(payload: bytes) -> str:
    """One inbound media message."""
    encoded = base64.b64encode(payload).decode()
    return json.dumps({"event": "media", "streamSid": "MZ1", "media": {"payload": encoded}})


async def close_code(client: ClientConnection, *messages: Any) -> int | None:
    """Send these, read to the end: the server's close code; None where it just dropped us."""
    try:
        for message in messages:
            await client.send(message)
        while True:
            await client.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else None
