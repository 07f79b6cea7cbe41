"""Google's agent service on this machine: its socket over TLS, and where its tokens come from.

Every message of a client is read with the published protos; one that they do not know fails the
test. A test plays the service's part on each connection, also where that part is bad manners.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.cloud.ces_v1 import BidiSessionClientMessage
from google.protobuf import json_format
from websockets.asyncio.server import Request, Response, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from gateway.config import Settings, load
from tests.assets.servers import certificate

APP = "projects/ours/locations/eu/apps/desk"
WAIT_S = 10.0


def account(folder: Path, token_url: str) -> Path:
    """The key file of a service account whose tokens come from this URL."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    content = {
        "type": "service_account",
        "client_email": "gateway@ours.example",
        "private_key": private,
        "token_uri": token_url,
    }
    file = folder / "account.json"
    file.write_text(json.dumps(content))
    return file


class Connection:
    """One connection of a client, as the service has it."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self.inputs: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {}
        self.faults: list[Exception] = []
        self.gone = asyncio.Event()
        self._news = asyncio.Event()
        request = socket.request
        assert request is not None
        self.path, self.headers = request.path, request.headers

    async def read(self) -> None:
        """Take what the client says until it goes."""
        try:
            async for message in self._socket:
                try:
                    content = json.loads(message)
                    json_format.ParseDict(content, BidiSessionClientMessage.pb()())
                except (ValueError, json_format.ParseError) as error:
                    self.faults.append(error)
                    continue
                if "config" in content:
                    self.config = content["config"]
                else:
                    self.inputs.append(content["realtimeInput"])
                self._news.set()
        except ConnectionClosed:
            pass
        finally:
            self.gone.set()
            self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the client has said."""
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def given(self, kind: str) -> list[Any]:
        """What the client gave of a kind, in order."""
        return [item[kind] for item in self.inputs if kind in item]

    @property
    def audio(self) -> bytes:
        return b"".join(base64.b64decode(piece) for piece in self.given("audio"))

    async def send(self, message: Mapping[str, Any], *, binary: bool = False) -> None:
        text = json.dumps(message)
        await self._socket.send(text.encode() if binary else text)

    async def raw(self, frame: str | bytes) -> None:
        """A frame as it is."""
        await self._socket.send(frame)

    async def say(self, turn: int = 1, **output: Any) -> None:
        await self.send({"sessionOutput": {"turnIndex": turn, **output}})

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._socket.close(code, reason)

    def vanish(self) -> None:
        """No closing frame, no farewell."""
        self._socket.transport.abort()


def sound(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass
class CesService:
    """What a test sets and sees of the service."""

    settings: Settings
    connections: asyncio.Queue[Connection] = field(default_factory=asyncio.Queue)
    taken: list[Connection] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Statuses and headers with which the next upgrades are refused."""
    hang: bool = False
    """Upgrades are not answered at all."""
    tokens: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """What the next requests for a token are answered; then a fresh one each."""
    issued: int = 0
    upgrades: list[str] = field(default_factory=list)
    """The Authorization header of each upgrade."""

    async def next(self) -> Connection:
        async with asyncio.timeout(WAIT_S):
            return await self.connections.get()


@asynccontextmanager
async def ces_service(folder: Path, **google: Any) -> AsyncIterator[CesService]:
    """A service and the settings that lead to it. `google`: more of `runtime.google`."""
    runtime = google.pop("runtime", {})
    more = google.pop("more", {})
    context, file = certificate(folder, "127.0.0.1")
    service = CesService(Settings())
    released = asyncio.Event()

    async def give_token(_: web.Request) -> web.Response:
        if service.tokens:
            status, body = service.tokens.pop(0)
            return web.json_response(body, status=status)
        service.issued += 1
        body = {"access_token": f"token-{service.issued}", "expires_in": 3600}
        return web.json_response(body)

    async def admit(connection: ServerConnection, request: Request) -> Response | None:
        service.upgrades.append(request.headers.get("Authorization", ""))
        if service.hang:
            await released.wait()
        if service.answers:
            status, headers = service.answers.pop(0)
            response = connection.respond(HTTPStatus(status), "no\n")
            for name, value in headers.items():
                response.headers[name] = value
            return response
        return None

    async def attend(socket: ServerConnection) -> None:
        connection = Connection(socket)
        service.taken.append(connection)
        service.connections.put_nowait(connection)
        await connection.read()

    app = web.Application()
    app.router.add_post("/token", give_token)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    token_url = f"http://127.0.0.1:{runner.addresses[0][1]}/token"
    server = await serve(
        attend,
        "127.0.0.1",
        0,
        ssl=context,
        process_request=admit,
        max_size=1 << 24,
        open_timeout=None,
        close_timeout=1.0,
    )
    try:
        port = next(iter(server.sockets)).getsockname()[1]
        wanted = {
            "app": APP,
            "endpoint": f"wss://127.0.0.1:{port}",
            "ca_file": str(file),
            "credentials": str(account(folder, token_url)),
            **google,
        }
        overrides = {"runtime": {**runtime, "google": wanted}, **more}
        service.settings = load(overrides=overrides)
        yield service
        faults = [fault for taken in service.taken for fault in taken.faults]
        assert not faults, faults
    finally:
        released.set()
        server.close()
        await server.wait_closed()
        await runner.cleanup()


Play = Callable[[Connection], Awaitable[None]]
