"""The near end of a BidiRunSession connection, as the runtime sees it."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

QUEUE_SIZE = 1024
"""Messages that may wait in an in-memory link; a sender waits when it is full."""


class Link(Protocol):
    """One connection: parsed JSON messages in and out."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; nothing happens once the link is closed."""
        ...

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other side has closed. Raises ProtocolError."""
        ...

    async def aclose(self, code: int = 1000, reason: str = "") -> None:
        """Close with a websocket close code. Closing twice is fine."""
        ...


class MemoryLink:
    """One end of an in-memory connection; make pairs with `memory_links`."""

    def __init__(self) -> None:
        self._inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(QUEUE_SIZE)
        self._closed = asyncio.Event()
        self.peer: MemoryLink = self
        self.close_code: int | None = None
        self.close_reason = ""

    async def send(self, message: dict[str, Any]) -> None:
        """Put the message into the other end's inbox."""
        if not self._closed.is_set():
            await self.peer._put(message)

    async def _put(self, message: dict[str, Any]) -> None:
        if not self._inbox.full():
            self._inbox.put_nowait(message)
            return
        put = asyncio.ensure_future(self._inbox.put(message))
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait((put, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            put.cancel()
            closed.cancel()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; what was sent before the close is still given."""
        if not self._inbox.empty():
            return self._inbox.get_nowait()
        if self._closed.is_set():
            return None
        get = asyncio.ensure_future(self._inbox.get())
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait((get, closed), return_when=asyncio.FIRST_COMPLETED)
            return get.result() if get.done() else None
        finally:
            get.cancel()
            closed.cancel()

    async def aclose(self, code: int = 1000, reason: str = "") -> None:
        """Close both ends; the first close's code and reason stay."""
        for end in (self, self.peer):
            if not end._closed.is_set():
                end.close_code, end.close_reason = code, reason
                end._closed.set()


def memory_links() -> tuple[MemoryLink, MemoryLink]:
    """Both ends of a new in-memory connection."""
    near, far = MemoryLink(), MemoryLink()
    near.peer, far.peer = far, near
    return near, far
