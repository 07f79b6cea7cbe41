"""The client of an agent runtime's session, whoever runs it.

Keeps one session over one or more links: `goAway` reconnects under the same session name with
no second kick-off, and inputs given meanwhile are sent on the new link.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from gateway.call.events import RuntimeOutput, ToRuntime
from gateway.errors import RuntimeFailure
from gateway.runtime.link import RuntimeLink
from gateway.runtime.messages import (
    RuntimeGoAway,
    outputs,
    realtime_input,
    session_config,
)

QUEUE_SIZE = 256
"""Inputs waiting for a slow runtime; one more ends the session (runtime.overflow)."""
MAX_RECONNECTS = 5

Connect = Callable[[], Awaitable[RuntimeLink]]


class RuntimeClient:
    """One session with a runtime."""

    def __init__(self, session: str, config: Mapping[str, Any], connect: Connect) -> None:
        self._config = session_config(session, config)
        self._connect = connect
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_SIZE)
        self._unsent: dict[str, Any] | None = None
        self._link: RuntimeLink | None = None
        self._sender: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect and send the configuration. Raises RuntimeFailure."""
        self._link = await self._connect()
        await self._link.send(self._config)
        self._sender = asyncio.create_task(self._send_queued(self._link), name="runtime-sender")

    def send(self, item: ToRuntime) -> None:
        """Queue one input; order is kept. Raises RuntimeFailure when the queue is full."""
        try:
            self._queue.put_nowait(realtime_input(item))
        except asyncio.QueueFull:
            raise RuntimeFailure("runtime.overflow", "the runtime takes no more input") from None

    async def _send_queued(self, link: RuntimeLink) -> None:
        while True:
            if self._unsent is None:
                self._unsent = await self._queue.get()
            try:
                await link.send(self._unsent)
            except RuntimeFailure:
                # The receiving side meets the same loss and tells the call; after a goAway the
                # next link's sender begins with this message.
                return
            self._unsent = None

    async def outputs(self) -> AsyncIterator[RuntimeOutput]:
        """What the runtime says, until it closes. Raises RuntimeFailure when it is lost."""
        reconnects = 0
        while self._link is not None:
            message = await self._link.receive()
            if message is None:
                return
            for item in outputs(message):
                if isinstance(item, RuntimeGoAway):
                    reconnects += 1
                    if reconnects > MAX_RECONNECTS:
                        raise RuntimeFailure("runtime.go_away", "the runtime keeps sending us away")
                    await self._reconnect()
                    break
                yield item

    async def _reconnect(self) -> None:
        await self._drop_link()
        if not self._closed:
            await self.open()

    async def _drop_link(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
            self._sender = None
        if self._link is not None:
            link, self._link = self._link, None
            await link.aclose()

    async def aclose(self) -> None:
        """Close the link; bounded; never raises."""
        self._closed = True
        await self._drop_link()
