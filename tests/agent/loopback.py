"""Real services on the loopback for tools: an HTTP API and an MCP server, each in a thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from aiohttp import web
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError


@dataclass
class Api:
    """An API that remembers what it was asked and answers what it was told to."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """Path → (status, JSON or text)."""
    default: Any = None
    """The answer to all other paths; None: the request itself."""
    headers: dict[str, str] = field(default_factory=dict)
    """What goes with every answer."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Paths that begin with /hang wait for this."""

    @property
    def last(self) -> dict[str, Any]:
        return self.requests[-1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        seen = {
            "method": request.method,
            "path": request.path,
            "query": [list(pair) for pair in request.query.items()],
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "cookies": dict(request.cookies),
            "body": await request.json() if "json" in request.content_type and body else body,
        }
        self.requests.append(seen)
        if request.path.startswith("/hang"):
            while not self.hold.is_set():
                await asyncio.sleep(0.02)
        status, answer = self.answers.get(request.path, (200, self.default or seen))
        if isinstance(answer, str):
            return web.Response(status=status, text=answer, headers=self.headers)
        return web.json_response(answer, status=status, headers=self.headers)


@contextmanager
def api_server(tls: ssl.SSLContext | None = None) -> Iterator[Api]:
    """The API for as long as the block runs."""
    api = Api()
    ready = threading.Event()
    ends: list[Callable[[], None]] = []

    async def serve() -> None:
        application = web.Application()
        application.router.add_route("*", "/{rest:.*}", api.handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        api.url = f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="api")
    thread.start()
    ready.wait(10)
    try:
        yield api
    finally:
        api.hold.set()
        ends[0]()
        thread.join()


@dataclass
class Mcp:
    """An MCP server and the headers of what it was asked."""

    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)


def _tools(server: MCPServer) -> None:
    @server.tool()
    async def weather(city: str) -> dict[str, Any]:
        """The weather of a city."""
        return {"city": city, "sky": "clear"}

    @server.tool()
    async def shout(text: str) -> str:
        """The text in capitals."""
        return text.upper()

    @server.tool()
    async def broken() -> str:
        """Never works."""
        raise ToolError("no such station")

    @server.tool()
    async def slow(context: Context) -> str:
        """Takes its time."""
        await asyncio.sleep(30)
        return "late"


@contextmanager
def mcp_server() -> Iterator[Mcp]:
    """The server for as long as the block runs."""
    mcp = Mcp()
    server = MCPServer("weather")
    _tools(server)
    inner = server.streamable_http_app(json_response=True, stateless_http=True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            mcp.headers.append({k.decode().lower(): v.decode() for k, v in scope["headers"]})
        await inner(scope, receive, send)

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    mcp.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    config = uvicorn.Config(
        app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1, loop="asyncio"
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(runner.serve([listener])), name="mcp")
    thread.start()
    try:
        yield mcp
    finally:
        runner.should_exit = True
        thread.join()
        listener.close()
