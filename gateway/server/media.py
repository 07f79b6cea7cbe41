"""One media websocket: picows on one side, a call on the other.

How a socket is closed by the server itself (a dialect adds its own codes):

    1001  the server closes
    1002  reserved bits, a message inside another, a wrong frame
    1007  text that is not UTF-8
    1008  no message that starts the call in time, too many messages a second
    1009  a message above the dialect's size
    1011  the call could not be made
    drop  a peer that does not read, is silent too long, or does not answer the close
"""

from __future__ import annotations

import asyncio
import contextvars
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import structlog
from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from gateway.channels.base import Channel, Wire, close_reason
from gateway.config import ServerSettings
from gateway.errors import GatewayError
from gateway.server.admission import Slot
from gateway.server.contract import Call, MakeCall

PING_AFTER_S: Final = 20.0
"""Silence after which a peer without an idle rule of its own is asked whether it lives."""
DEAD_AFTER_S: Final = 45.0
CLOSE_WAIT_S: Final = 1.0
"""Longest wait for the peer's half of the close handshake and for unsent bytes."""
KERNEL_SEND_BYTES: Final = 1 << 16
"""Small, so that a peer that does not read is noticed, and `clear` overtakes little."""
LOST: Final = 1006

_TEXT: Final = WSMsgType.TEXT
_BINARY: Final = WSMsgType.BINARY

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Admitted:
    """A socket that was let in: what its call needs to know."""

    channel: Channel
    slot: Slot
    remote: str
    path: str
    call_id: str = ""
    """Known before the start where a media token was issued for the call."""
    custom: Mapping[str, Any] = field(default_factory=dict)
    subprotocol: str = ""
    """What the handshake agrees on; empty: nothing."""


class SocketOwner(Protocol):
    """Who keeps the sockets."""

    def joined(self, socket: MediaSocket) -> None:
        """The socket was upgraded."""
        ...

    def gone(self, socket: MediaSocket) -> None:
        """The socket is closed. Comes once for each that joined."""
        ...


class MediaSocket(WSListener):
    """The socket of one call. Also the `MediaTransport` that the call sends through."""

    def __init__(
        self,
        admitted: Admitted,
        make_call: MakeCall,
        settings: ServerSettings,
        owner: SocketOwner,
    ) -> None:
        self.admitted = admitted
        self.call: Call | None = None
        self._make_call = make_call
        self._settings = settings
        self._owner = owner
        self._capabilities = admitted.channel.capabilities
        self._max_bytes = self._capabilities.max_message_bytes
        self._max_rate = settings.max_messages_per_s
        self._loop = asyncio.get_running_loop()
        self._ws: WSTransport | None = None
        self._unsent: Callable[[], int] = lambda: 0
        self._parts: list[bytes] = []
        self._parts_type: WSMsgType | None = None
        self._parts_bytes = 0
        self._connected_s = self._heard_s = self._loop.time()
        self._pinged = False
        self._window_s = self._connected_s
        self._window_count = 0
        self._closing_s: float | None = None
        self._close_code: int | None = None
        self._context = contextvars.copy_context()
        names = {"dialect": self._capabilities.dialect, "remote": admitted.remote}
        if admitted.call_id:
            names["call_id"] = admitted.call_id
        self._context.run(structlog.contextvars.bind_contextvars, **names)

    # ---- the transport of the call

    @property
    def buffered_bytes(self) -> int:
        """Bytes accepted by `send` that the peer has not taken yet."""
        return self._unsent()

    @property
    def close_code(self) -> int | None:
        """The peer's close code; 1006 where the socket was lost; None while it is open."""
        return self._close_code

    @property
    def connected(self) -> bool:
        """Whether the upgrade went through."""
        return self._ws is not None

    def send(self, message: Wire) -> None:
        """Send one message; nothing happens once the socket closes."""
        ws = self._ws
        if ws is None or self._closing_s is not None:
            return
        if len(message) > self._settings.send_buffer_bytes:
            # A peer that reads well could not be told from one that does not.
            self._log("media.message_too_large", message_bytes=len(message))
            return
        ws.send(_TEXT if type(message) is str else _BINARY, message)
        if self._unsent() > self._settings.send_buffer_bytes:
            self._log("media.not_reading", unsent_bytes=self._unsent())
            self.abort()

    def close(self, code: int, reason: str) -> None:
        """Start the close handshake; the watch drops the socket if the peer does not answer."""
        ws = self._ws
        if ws is None or self._closing_s is not None:
            return
        self._closing_s = self._loop.time()
        # Any number is a close code on the wire; the type only names the registered ones.
        ws.send_close(code, close_reason(reason))  # type: ignore[arg-type]

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._closing_s is None:
            self._closing_s = self._loop.time()
        if self._ws is not None:
            self._ws.disconnect(graceful=False)

    # ---- picows

    def on_ws_connected(self, transport: WSTransport) -> None:
        """The upgrade is done: make the call."""
        self._ws = transport
        self._owner.joined(self)
        under = transport.underlying_transport
        self._unsent = under.get_write_buffer_size
        wire = under.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_SEND_BYTES)
        # A platform that may be silent and must not be pinged is watched by the kernel alone.
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        admitted = self.admitted
        try:
            self.call = self._context.run(
                self._make_call,
                admitted.channel,
                self,
                remote=admitted.remote,
                path=admitted.path,
                custom=admitted.custom,
            )
        except GatewayError as error:
            self._log("media.no_call", code=error.code)
            self.close(WSCloseCode.INTERNAL_ERROR.value, "the call could not be made")
        except Exception:
            self._log("media.no_call", code="internal.call", exc_info=True)
            self.close(WSCloseCode.INTERNAL_ERROR.value, "the call could not be made")

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """One websocket frame of the peer."""
        now = self._loop.time()
        self._heard_s = now
        kind = frame.msg_type
        if kind == WSMsgType.CLOSE:
            self._peer_closes(transport, frame)
            return
        if self._closing_s is not None or transport.is_close_frame_sent:
            # The second: picows has refused a frame, but may still read that very frame to its
            # end and deliver it before it disconnects.
            return
        if now - self._window_s >= 1.0:
            self._window_s, self._window_count = now, 0
        self._window_count += 1
        if self._window_count > self._max_rate:
            self._refuse(1008, "too many messages a second")
        elif frame.rsv1 or frame.rsv2 or frame.rsv3:
            self._refuse(1002, "reserved bits are set; no extension was agreed")
        elif kind == _TEXT and frame.fin and self._parts_type is None:
            try:
                self._deliver(frame.get_payload_as_utf8_text())
            except UnicodeDecodeError:
                self._refuse(1007, "text that is not UTF-8")
        elif kind == WSMsgType.PING:
            transport.send_pong(frame.get_payload_as_bytes())
        elif kind == WSMsgType.PONG:
            self._pinged = False
        elif kind == _BINARY and frame.fin and self._parts_type is None:
            self._deliver(frame.get_payload_as_bytes())
        else:
            self._fragment(kind, frame.fin, frame.get_payload_as_bytes())

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """The socket is gone."""
        handshake = transport.close_handshake
        received = handshake.recv if handshake is not None else None
        self._close_code = LOST if received is None else int(received.code)  # type: ignore[call-overload]
        if self._closing_s is None:
            self._closing_s = self._loop.time()
        if self.call is not None:
            try:
                self._context.run(self.call.transport_closed)
            except Exception:
                self._log("media.call_failed", exc_info=True)
        self._owner.gone(self)

    def pause_writing(self) -> None:
        """Nothing: the bound on unsent bytes is judged at each send."""

    def resume_writing(self) -> None:
        """Nothing, as above."""

    # ---- inside

    def _peer_closes(self, transport: WSTransport, frame: WSFrame) -> None:
        code = int(frame.get_close_code())  # type: ignore[call-overload]
        self._close_code = code
        if self._closing_s is None:
            self._closing_s = self._loop.time()
            # These stand for closes without a code and never go over the wire.
            answer = 1000 if code < 1000 or code in (1005, LOST, 1015) else code
            transport.send_close(answer)  # type: ignore[arg-type]
        transport.disconnect()

    def _fragment(self, kind: WSMsgType, final: bool, payload: bytes) -> None:
        begins = kind != WSMsgType.CONTINUATION
        if begins == (self._parts_type is not None):
            self._refuse(1002, "a continuation without a beginning, or a message inside another")
            return
        if begins:
            self._parts_type = kind
        self._parts.append(payload)
        self._parts_bytes += len(payload)
        if self._parts_bytes > self._max_bytes or len(self._parts) > 1024:
            self._parts.clear()
            self._refuse(1009, f"a message above {self._max_bytes} bytes")
            return
        if final:
            whole, text = b"".join(self._parts), self._parts_type == _TEXT
            self._parts.clear()
            self._parts_type, self._parts_bytes = None, 0
            try:
                self._deliver(whole.decode() if text else whole)
            except UnicodeDecodeError:
                self._refuse(1007, "text that is not UTF-8")

    def _deliver(self, message: Wire) -> None:
        call = self.call
        if call is None:
            return
        try:
            self._context.run(call.message, message)
        except Exception:
            self._log("media.call_failed", exc_info=True)
            self.close(WSCloseCode.INTERNAL_ERROR.value, "internal error")

    def _refuse(self, code: int, reason: str) -> None:
        self._log("media.refused", close_code=code, reason=reason)
        self.close(code, reason)

    def _log(self, event: str, **fields: Any) -> None:
        # A copy, since what is sent while a message is handled finds the context entered.
        self._context.copy().run(log.warning, event, **fields)

    # ---- from the server

    def run(self, work: Callable[[], None]) -> None:
        """Run something of the call's under its own log context."""
        self._context.run(work)

    def check(self, now: float) -> None:
        """Judge all deadlines of the socket; called a few times a second. `now`: loop time."""
        ws = self._ws
        if ws is None:
            return
        if self._closing_s is not None:
            if now - self._closing_s > CLOSE_WAIT_S:
                self.abort()
            return
        if ws.is_close_frame_sent:
            # The websocket layer closed by itself: a frame was too large or malformed.
            self._closing_s = now
            return
        started = self.call is not None and self.call.started
        if not started and now - self._connected_s > self._settings.start_message_timeout_s:
            self._refuse(1008, "no message that starts the call came in time")
            return
        silent_s = now - self._heard_s
        # A dialect may know more of its peer than before the start.
        able = self.admitted.channel.capabilities
        idle_s = able.receive_idle_s or (DEAD_AFTER_S if able.ping_allowed else None)
        if idle_s is not None and silent_s > idle_s:
            self._log("media.silent", seconds=round(silent_s, 1))
            self.abort()
        elif silent_s > PING_AFTER_S and not self._pinged and able.ping_allowed:
            self._pinged = True
            ws.send_ping()
