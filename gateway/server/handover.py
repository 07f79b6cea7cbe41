"""Gives an open connection to picows, which does the rest of its life as a websocket.

picows listens on ports of its own by its public functions only. Here the port is shared with
HTTP, so its protocol class is used directly; that is why pyproject.toml bounds its version.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from picows import (
    WSAutoPingStrategy,
    WSListener,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)
from picows.picows import WSProtocol  # type: ignore[attr-defined]

# picows logs every connection and, as tracebacks, every fault of a peer. The listener tells both
# in the words of this project.
LOGGER: Final = logging.getLogger("gateway.picows")
LOGGER.setLevel(logging.CRITICAL + 1)

_READ_BUFFER_BYTES: Final = 4096


def hand_over(
    transport: asyncio.Transport,
    listener: WSListener,
    head: bytes,
    rest: bytes,
    max_message_bytes: int,
    subprotocol: str = "",
) -> None:
    """Upgrade `transport` for `listener`.

    `head`: the request head in canonical form. `rest`: bytes read beyond it. `subprotocol`: one
    that the client offered; empty: the answer names none.
    """
    agreed = {"Sec-WebSocket-Protocol": subprotocol} if subprotocol else None
    upgrade = WSUpgradeResponseWithListener(WSUpgradeResponse.create_101_response(agreed), listener)
    protocol = WSProtocol(
        None,  # host and port, path: of clients only
        None,
        False,  # is_client_side
        lambda _request: upgrade,
        LOGGER,
        True,  # disconnect_on_exception
        None,  # handshake timeout: the whole head is here already
        False,  # automatic pings: the server's watch does that for all sockets at once
        20,
        20,
        WSAutoPingStrategy.PING_WHEN_IDLE,
        False,  # automatic pongs: the listener answers, and counts the peer as alive
        max_message_bytes,
        None,  # extra headers
        _READ_BUFFER_BYTES,
    )
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    left = memoryview(head + rest)
    while left and not transport.is_closing():
        room = protocol.get_buffer(-1)
        size = min(len(room), len(left))
        room[:size] = left[:size]
        protocol.buffer_updated(size)
        left = left[size:]
