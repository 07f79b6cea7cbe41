"""What the server asks of a call, and how it asks for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gateway.channels.base import Channel, EndReason, Wire


class MediaTransport(Protocol):
    """The socket of a call. Nothing here blocks; all of it belongs to the event loop's thread."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes accepted by `send` that the peer has not taken yet."""
        ...

    @property
    def close_code(self) -> int | None:
        """The peer's close code; 1006 where the socket was lost; None while it is open."""
        ...

    def send(self, message: Wire) -> None:
        """Send one message; nothing happens once the socket closes."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Start the close handshake; the socket is dropped if the peer does not answer it."""
        ...

    def abort(self) -> None:
        """Drop the connection at once."""
        ...


class Call(Protocol):
    """One call, from the upgrade until it holds nothing any more."""

    @property
    def call_id(self) -> str:
        """The platform's id; empty before the call has started."""
        ...

    @property
    def started(self) -> bool:
        """Whether the message that starts the call has come."""
        ...

    def message(self, data: Wire) -> None:
        """One message of the peer."""
        ...

    def transport_closed(self) -> None:
        """The socket is gone, cleanly or not. Comes exactly once."""
        ...

    def shutdown(self) -> None:
        """The server closes: say goodbye, then hang up."""
        ...

    def end(self, reason: EndReason) -> None:
        """End the call now, without further words."""
        ...

    async def wait_ended(self) -> EndReason:
        """Wait until the call holds nothing any more; why it ended."""
        ...


class MakeCall(Protocol):
    """Makes the call for a socket that was just upgraded."""

    def __call__(
        self,
        channel: Channel,
        transport: MediaTransport,
        *,
        remote: str,
        path: str,
        custom: Mapping[str, Any],
    ) -> Call:
        """`remote` is the peer's address, `path` the request path without its token."""
        ...


class CallObserver(Protocol):
    """Who watches calls."""

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of a call's timeline; `t` in seconds since the call started."""
        ...

    def frame_late(self, late_s: float) -> None:
        """A tick ran this much after its due time."""
        ...

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The call is over and holds nothing any more."""
        ...
