"""What Google's client reads from the wire, bounded and put in order before it reads.

The client keeps whatever comes, takes every line that is no data for half an error, and reads a
compressed answer without end into memory. Here an event has a bound, comments and the mark of the
byte order are gone, and what is no stream of events ends where an error ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from gateway.agent.models.deltas import events

MAX_BODY_BYTES = 1 << 20
"""Of an answer that is no stream: an error."""


class GeminiResponse(aiohttp.ClientResponse):
    """A response whose content is fit for the client."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Begin as any response does, and read through a bound."""
        await super().start(connection)
        streams = self.status == 200 and self.content_type == "text/event-stream"
        made = _Events(self.content) if streams else _Bounded(self.content)
        self.content = made  # type: ignore[assignment]
        return self


class _Bounded:
    """A stream reader that breaks off where the body is larger than any error."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def read(self) -> bytes:
        """The whole body. Raises ClientPayloadError where it is too large."""
        return b"".join([piece async for piece in self.iter_any()])

    async def iter_any(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ClientPayloadError where it is too large."""
        size = 0
        async for piece in self._content.iter_any():
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise aiohttp.ClientPayloadError("an answer without an end")
            yield piece


class _Events(_Bounded):
    """A stream reader that gives events only, each whole."""

    async def iter_any(self) -> AsyncIterator[bytes]:
        """One event a piece. Raises StreamError where one grows beyond all bounds."""
        async for event in events(self._content.iter_any()):
            yield b"".join(b"data: %s\n" % line.encode() for line in event.split("\n")) + b"\n"
