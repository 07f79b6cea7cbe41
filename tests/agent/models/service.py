"""A model's HTTP service on the loopback: answers what it was told to, and remembers requests."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

WAIT_S = 10.0
STREAM = "text/event-stream"


@dataclass(frozen=True)
class Reply:
    """One answer: events of a stream, or a body.

    Among the events an `asyncio.Event` is waited for, and a float is a pause in seconds.
    """

    events: Sequence[Any] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    raw: bytes = b""
    """A body as it is, with `headers` that say what it is."""
    cut: bool = False
    """The connection breaks after the last event."""


@dataclass
class Seen:
    """A request that came."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Service:
    """`gone` is set when a client hangs up in the middle of an answer."""

    url: str = ""
    replies: deque[Reply] = field(default_factory=deque)
    requests: list[Seen] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, *events: Any, **more: Any) -> None:
        """What the next request that has no answer yet is answered."""
        self.replies.append(Reply(events=events, **more))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        body = json.loads(data) if "json" in request.content_type else data
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Seen(request.path, dict(request.query), headers, body))
        if not self.replies:
            return web.json_response({"error": {"code": 418, "message": "?"}}, status=418)
        reply = self.replies.popleft()
        if reply.raw:
            return web.Response(body=reply.raw, status=reply.status, headers=reply.headers)
        if reply.body is not None:
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        response = web.StreamResponse(
            status=reply.status, headers={"Content-Type": STREAM, **reply.headers}
        )
        await response.prepare(request)
        try:
            for event in reply.events:
                if isinstance(event, asyncio.Event):
                    await event.wait()
                elif isinstance(event, float):
                    await asyncio.sleep(event)
                else:
                    text = event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n"
                    await response.write(text.encode())
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise
        if reply.cut:
            assert request.transport is not None
            request.transport.close()
        return response


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    """The service for as long as the block runs."""
    made = Service()
    application = web.Application()
    application.router.add_post("/{rest:.*}", made.handle)
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
