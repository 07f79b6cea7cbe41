"""A small server that speaks the Twilio dialect: greets with a tone, says when it was played."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from gateway.simulate.platforms.access import Access

GREETING_FRAMES = 25
TONE = base64.b64encode(bytes((0x20, 0xA0)) * 80).decode()


@dataclass
class Loopback:
    """What the server does, and what it has seen. `timeline_status`: what its timeline answers."""

    refuse: int = 0
    timeline_status: int = 200
    close_code: int | None = None
    silent: bool = False
    nonsense: str | None = None
    forms: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    keys: str = ""
    frames: int = 0
    stops: int = 0
    access: Access = field(default_factory=lambda: Access("http://127.0.0.1:1"))
    records: dict[str, list[bytes]] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self, call_id: str, kind: str, **fields: Any) -> None:
        line = orjson.dumps({"t": 0.0, "kind": kind, **fields}) + b"\n"
        self.records.setdefault(call_id, []).append(line)
        news, self.news = self.news, asyncio.Event()
        news.set()

    async def voice(self, request: web.Request) -> web.Response:
        self.forms.append({key: str(value) for key, value in (await request.post()).items()})
        self.headers.append(dict(request.headers))
        if self.refuse:
            return web.Response(status=self.refuse, text="full")
        url = str(request.url.with_scheme("ws").with_path("/media"))
        return web.Response(
            text=f'<Response><Connect><Stream url="{url}">'
            '<Parameter name="from" value="+1"/></Stream></Connect></Response>',
            content_type="text/xml",
        )

    async def media(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        call_id, greeting = "", None
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            body = orjson.loads(message.data)
            event = body["event"]
            if event == "start":
                call_id = body["start"]["callSid"]
                self.record(call_id, "call_started", channel="twilio")
                greeting = asyncio.create_task(self._greet(socket, body["streamSid"], call_id))
            elif event == "media":
                self.frames += 1
            elif event == "dtmf":
                self.keys += body["dtmf"]["digit"]
            elif event == "mark":
                words = {"id": 1, "heard_text": "welcome", "reason": "completed"}
                self.record(call_id, "utterance_ended", **words)
            elif event == "stop":
                self.stops += 1
                break
        if greeting is not None:
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)
        self.record(call_id, "call_ended", reason="remote_hangup")
        await socket.close()
        return socket

    async def _greet(self, socket: web.WebSocketResponse, stream: str, call_id: str) -> None:
        if self.close_code is not None:
            await socket.close(code=self.close_code)
            return
        if self.nonsense is not None:
            await socket.send_str(self.nonsense)
        if self.silent:
            return
        self.record(call_id, "utterance_queued", id=1, text="welcome")
        self.record(call_id, "utterance_started", id=1)
        media = {"event": "media", "streamSid": stream, "media": {"payload": TONE}}
        loop = asyncio.get_running_loop()
        start = loop.time()
        for frame in range(GREETING_FRAMES):
            await asyncio.sleep(max(0.0, start + frame * 0.02 - loop.time()))
            await socket.send_str(orjson.dumps(media).decode())
        mark = {"event": "mark", "streamSid": stream, "mark": {"name": "1.1"}}
        await socket.send_str(orjson.dumps(mark).decode())
        self.record(call_id, "runtime_output", type="turnCompleted", turn=1)

    async def timeline(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.timeline_status != 200:
            return web.Response(status=self.timeline_status)
        call_id = request.match_info["call"]
        response = web.StreamResponse()
        await response.prepare(request)
        seen = 0
        while True:
            news = self.news
            lines = self.records.get(call_id, [])
            for line in lines[seen:]:
                # In two pieces: a record need not arrive whole.
                await response.write(line[:5])
                await response.write(line[5:])
            seen = len(lines)
            if seen and b"call_ended" in lines[-1]:
                return response
            await news.wait()


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Loopback]:
    """A running server on a free port."""
    server = Loopback(**options)
    app = web.Application()
    app.router.add_post("/twilio/voice", server.voice)
    app.router.add_get("/media", server.media)
    app.router.add_get("/calls/{call}/timeline", server.timeline)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    server.access = Access(f"http://127.0.0.1:{port}", token="secret", secret="12345")
    try:
        yield server
    finally:
        await runner.cleanup()
