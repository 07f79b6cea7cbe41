"""A platform's REST interface on loopback: answers from a script, remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    form: dict[str, str]
    authorization: str
    body: str


@dataclass
class RestServer:
    """`answers`: status, body and header fields of the next answers; then 200."""

    url: str = ""
    answers: list[tuple[int, str, dict[str, str]]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    hold: asyncio.Event | None = None
    """Answers wait for this."""
    in_pieces: bool = False
    """Answers come byte by byte, each one for itself."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def will(self, status: int, body: str = "", **headers: str) -> None:
        """What the next request is answered."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, body, named))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        form: dict[str, Any] = {}
        if request.content_type == "application/x-www-form-urlencoded":
            form = dict(await request.post())
        authorization = request.headers.get("Authorization", "")
        self.asked.append(Asked(request.method, request.raw_path, form, authorization, body))
        self.arrived.set()
        if self.hold is not None:
            await self.hold.wait()
        status, text, headers = self.answers.pop(0) if self.answers else (200, "{}", {})
        if not self.in_pieces:
            return web.Response(status=status, text=text, headers=headers)
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(request)
        for byte in text.encode():
            await response.write(bytes([byte]))
            await turns_of_the_loop()
        await response.write_eof()
        return response


async def turns_of_the_loop() -> None:
    """Until what has been written to this process is read as well."""
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def rest_server() -> AsyncIterator[RestServer]:
    """A server on a free port."""
    server = RestServer()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        if server.hold is not None:
            server.hold.set()
        await runner.cleanup()
