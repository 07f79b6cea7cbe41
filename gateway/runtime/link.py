"""The wire to an agent runtime: JSON objects both ways, over whatever carries them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from gateway import bidi
from gateway.errors import ProtocolError, RuntimeFailure

MAX_MESSAGE_BYTES = 16 << 20
SEND_TIMEOUT_S = 5.0
CLOSE_S = 1.0


class RuntimeLink(Protocol):
    """One connection to a runtime."""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises RuntimeFailure where the far side is gone."""
        ...

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None where the runtime closed cleanly."""
        ...

    async def aclose(self) -> None:
        """Close; bounded; never raises."""
        ...


class WebsocketLink:
    """A link over a websocket: TCP, TLS or unix socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str, timeout_s: float, channel: str = "") -> WebsocketLink:
        """Connect to `ws://`, `wss://` or `unix:///path`. Raises RuntimeFailure.

        `channel`: the caller's dialect, told to our own runtime past what a client can say.
        """
        options: dict[str, Any] = {
            "max_size": MAX_MESSAGE_BYTES,
            "compression": None,
            "open_timeout": timeout_s,
            "close_timeout": CLOSE_S,
        }
        if channel:
            options["additional_headers"] = {bidi.CHANNEL_HEADER: channel}
        try:
            if url.startswith("unix://"):
                path = url.removeprefix("unix://")
                return cls(await unix_connect(path, "ws://runtime/", **options))
            return cls(await connect(url, **options))
        except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as error:
            # The address may hold a key, and an invalid one is repeated by its error.
            why = "its address is invalid" if isinstance(error, InvalidURI) else str(error)
            raise RuntimeFailure(
                "runtime.unreachable",
                f"cannot reach the agent runtime: {why or type(error).__name__}",
                where="runtime.url",
            ) from None

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; a peer that does not read for 5 s counts as gone."""
        try:
            # Not wait_for: before Python 3.12 it can lose a cancellation that comes as it ends.
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._connection.send(bidi.dump(message))
        except ConnectionClosed as error:
            raise self._unsent(error) from None
        except TimeoutError as error:
            raise RuntimeFailure("runtime.lost", f"runtime connection lost: {error}") from None

    def _unsent(self, error: ConnectionClosed) -> RuntimeFailure:
        """What it means that a message met a closed connection."""
        return RuntimeFailure("runtime.lost", f"runtime connection lost: {error}")

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None after a clean close."""
        try:
            return bidi.parse(await self._connection.recv())
        except ConnectionClosed as error:
            received = error.rcvd
            if received is None:
                return self._closed(None, "no close frame")
            return self._closed(received.code, received.reason)
        except ProtocolError as error:
            raise RuntimeFailure("runtime.protocol", error.message) from None

    def _closed(self, code: int | None, reason: str) -> dict[str, Any] | None:
        """What a closed connection counts as. Raises RuntimeFailure where it was lost."""
        if code in (1000, 1001):
            return None
        raise RuntimeFailure("runtime.lost", f"runtime connection lost: {reason}")

    def abort(self) -> None:
        """Break the connection: what waits for it fails as on a loss."""
        self._connection.transport.abort()

    async def aclose(self) -> None:
        """Close within a second."""
        await self._connection.close()
