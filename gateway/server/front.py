"""The front door: one port, and the request head decides which stack a connection goes to.

A websocket upgrade goes to the media stack; every other request goes, byte for byte, to the HTTP
stack, which closes after one answer (a kept connection could carry a later upgrade past this
door). What is no request at all is answered here.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast

import structlog

from gateway.config import ServerSettings
from gateway.errors import GatewayError
from gateway.server import answers
from gateway.server.door import MediaDoor
from gateway.server.handover import hand_over
from gateway.server.head import END, HeadError, canonical, check_body, parse, refuse_early

LINGER_S: Final = 1.0
"""How long a refused client may go on sending: closing at once would cost it the answer."""
MAX_WAITING: Final = 1024
"""Connections that are not decided yet; more are turned away."""
TURN_S: Final = 0.002
"""Time of one turn of the loop that newcomers may take from the calls."""

log = structlog.get_logger()


class FrontDoor:
    """Makes the protocol of each new connection and keeps those that are still undecided."""

    def __init__(
        self,
        settings: ServerSettings,
        media: MediaDoor,
        http: Callable[[], asyncio.Protocol],
    ) -> None:
        self.settings = settings
        self.media = media
        self.http = http
        self.waiting: set[FrontProtocol] = set()
        self._due: deque[FrontProtocol] = deque()

    def __call__(self) -> FrontProtocol:
        """The protocol of one new connection."""
        return FrontProtocol(self)

    def decide(self, protocol: FrontProtocol) -> None:
        """Decide about a connection whose head is complete, in its turn."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._decide_some)
        self._due.append(protocol)

    def _decide_some(self) -> None:
        # However many came at once, the calls' frames go out in between.
        until = time.perf_counter() + TURN_S
        while self._due:
            self._due.popleft().decide()
            if time.perf_counter() >= until:
                break
        if self._due:
            asyncio.get_running_loop().call_soon(self._decide_some)

    def close(self) -> None:
        """Drop every connection that has not got to a stack yet."""
        for protocol in list(self.waiting):
            protocol.abort()


class FrontProtocol(asyncio.Protocol):
    """One connection until its head is complete."""

    def __init__(self, door: FrontDoor) -> None:
        self._door = door
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = bytearray()
        self._end = -1
        """Where the head ends in what has come; negative: it has not ended yet."""
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the head."""
        # uvloop's transports are none of asyncio's classes, they only behave like them.
        self._transport = cast(asyncio.Transport, transport)
        door = self._door
        if len(door.waiting) >= MAX_WAITING:
            self._transport.abort()
            return
        door.waiting.add(self)
        self._timer = self._loop.call_later(door.settings.head_timeout_s, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left before its head was complete, or has its refusal."""
        self._leave()
        self._transport = None

    def abort(self) -> None:
        """Drop the connection."""
        self._leave()
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Collect the head, then hand the connection on."""
        transport = self._transport
        if transport is None or self._refused:
            return
        if self._end >= 0:
            self._begun += data
            return
        begun = self._begun
        if not begun:
            # Empty lines before a request are allowed by HTTP and mean nothing.
            data = data.lstrip(b"\r\n")
        searched = max(0, len(begun) - 3)
        begun += data
        if not begun:
            return
        end = begun.find(END, searched)
        try:
            if end < 0:
                refuse_early(bytes(begun[:4096]))
            if end > self._door.settings.max_head_bytes or (
                end < 0 and len(begun) > self._door.settings.max_head_bytes
            ):
                raise HeadError(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    "http.head_too_large",
                    f"the request head is above {self._door.settings.max_head_bytes} bytes",
                )
        except HeadError as error:
            self._refuse(transport, error)
            return
        if end >= 0:
            self._end = end
            # What comes after it waits in the system, which bounds it.
            transport.pause_reading()
            self._door.decide(self)

    def decide(self) -> None:
        """Hand the connection on, or refuse it; nothing where it is gone."""
        transport = self._transport
        if transport is None or self._refused:
            return
        try:
            transport.resume_reading()
            self._decide(transport, bytes(self._begun), self._end)
        except (HeadError, GatewayError) as error:
            self._refuse(transport, error)
        except Exception:
            log.exception("front.failed")
            fault = HeadError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal.front", "this request failed here"
            )
            self._refuse(transport, fault)

    def _decide(self, transport: asyncio.Transport, data: bytes, end: int) -> None:
        head = parse(data[:end])
        if not head.is_upgrade:
            check_body(head)
            self._leave()
            protocol = self._door.http()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            protocol.data_received(data)
            return
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        socket = self._door.media.open(head, address)
        self._leave()
        try:
            hand_over(
                transport,
                socket,
                canonical(head),
                data[end + len(END) :],
                socket.admitted.channel.capabilities.max_message_bytes,
                socket.admitted.subprotocol,
            )
        finally:
            if not socket.connected:
                socket.admitted.slot.release()
                transport.abort()

    def _too_slow(self) -> None:
        transport = self._transport
        if transport is None:
            return
        if self._refused or not self._begun:
            self.abort()
            return
        self._refuse(
            transport,
            HeadError(
                HTTPStatus.REQUEST_TIMEOUT, "http.slow", "the request head took too long to come"
            ),
        )

    def _refuse(self, transport: asyncio.Transport, error: HeadError | GatewayError) -> None:
        self._refused = True
        self._begun.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_S, self.abort)
        transport.write(answers.raw(error))
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def _leave(self) -> None:
        self._door.waiting.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
