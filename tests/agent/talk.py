"""A client of the runtime over an in-memory link, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.cloud.ces_v1beta.types import BidiSessionServerMessage
from google.protobuf import json_format

from gateway.agent.app import read_app
from gateway.agent.link import MemoryLink, memory_links
from gateway.agent.runner import ThreadRunner
from gateway.agent.session import serve_link
from gateway.agent.store import SessionStore
from gateway.config import Settings

APPS = Path(__file__).parent.parent / "apps"
SESSION = "projects/p/locations/l/apps/a/sessions/session-1"
WAIT_S = 10.0


class Talk:
    """The client's side of one session."""

    def __init__(self, link: MemoryLink) -> None:
        self.link = link

    async def send(self, **realtime_input: Any) -> None:
        await self.link.send({"realtimeInput": realtime_input})

    async def receive(self) -> dict[str, Any]:
        """The next message; each one must be as the published protos have it."""
        async with asyncio.timeout(WAIT_S):
            message = await self.link.receive()
        assert message is not None, f"closed: {self.link.close_code} {self.link.close_reason}"
        parse_with_protos(message)
        return message

    async def turn(self) -> list[dict[str, Any]]:
        """The outputs of one turn without its index; the last, empty one is left out."""
        outputs = []
        index = None
        while True:
            output = (await self.receive())["sessionOutput"]
            index = index or output["turnIndex"]
            assert output.pop("turnIndex") == index
            if output.pop("turnCompleted", False):
                return outputs
            outputs.append(output)

    async def say(self, text: str) -> list[dict[str, Any]]:
        await self.send(text=text)
        return await self.turn()

    async def event(self, name: str) -> list[dict[str, Any]]:
        await self.send(event={"event": name})
        return await self.turn()

    async def closed(self) -> tuple[int | None, str]:
        """Wait for the server's close: (code, reason)."""
        async with asyncio.timeout(WAIT_S):
            while await self.link.receive() is not None:
                pass
        return self.link.close_code, self.link.close_reason


def parse_with_protos(message: dict[str, Any]) -> None:
    """Raises where the published protos do not know the message."""
    json_format.ParseDict(message, BidiSessionServerMessage.pb(BidiSessionServerMessage()))


def texts(outputs: list[dict[str, Any]]) -> list[str]:
    """The texts among outputs."""
    return [output["text"] for output in outputs if "text" in output]


@asynccontextmanager
async def talk(
    app: str | Path,
    settings: Settings | None = None,
    store: SessionStore | None = None,
    runner: ThreadRunner | None = None,
    channel: str = "",
    **config: Any,
) -> AsyncIterator[Talk]:
    """Open a session with one of the small apps (by name) or any other (by path)."""
    near, far = memory_links()
    own_runner = ThreadRunner()
    path = app if isinstance(app, Path) else APPS / app

    async def serve() -> None:
        try:
            await serve_link(
                far,
                read_app(path),
                settings or Settings(),
                runner or own_runner,
                store,
                channel=channel,
            )
        finally:
            # A session that cannot even start must not be waited for.
            await far.aclose()

    serving = asyncio.create_task(serve())
    try:
        await near.send({"config": {"session": SESSION, **config}})
        yield Talk(near)
    finally:
        await near.aclose()
        async with asyncio.timeout(WAIT_S):
            await serving
        await own_runner.aclose()
