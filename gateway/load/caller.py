"""One of many callers: a platform side and a caller script on a picows socket."""

from __future__ import annotations

import asyncio
from time import monotonic

import picows

from gateway.audio.mixing import level_dbfs
from gateway.errors import ProtocolError
from gateway.load.lateness import FrameClock
from gateway.load.result import Tally
from gateway.simulate.caller import FRAME_S, Caller
from gateway.simulate.platforms.base import Platform, Wire
from gateway.simulate.view import CallView

HANGUP_WAIT_S = 5.0
_CLEAN = (picows.WSCloseCode.OK, picows.WSCloseCode.GOING_AWAY, picows.WSCloseCode.NO_INFO)


class LoadCaller(picows.WSListener):
    """A call from the open socket to its close; `done` is set then."""

    def __init__(self, platform: Platform, caller: Caller, view: CallView, tally: Tally) -> None:
        super().__init__()
        self._platform = platform
        self._caller = caller
        self._view = view
        self._tally = tally
        self._loop = asyncio.get_running_loop()
        self._transport: picows.WSTransport | None = None
        self._clock = FrameClock()
        self._parts: list[bytes] = []
        self._parts_are_text = False
        self._bytes_per_s = platform.out_format.rate_hz * platform.out_format.sample_bytes
        self._received = 0
        self._opened = self._loop.time()
        # Arrivals are told by a finer clock than a loop's, which may count whole milliseconds.
        self._opened_exactly = monotonic()
        self._first_audio: float | None = None
        self._leaving = False
        self.problem = ""
        self.done = asyncio.Event()

    # ---- the socket

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """The upgrade is done: say what the platform says first."""
        self._transport = transport
        self._opened = self._loop.time()
        self._opened_exactly = monotonic()
        self._send(self._platform.open())

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """A message of the gateway, whole or in pieces."""
        kind = frame.msg_type
        if kind == picows.WSMsgType.CLOSE:
            code = frame.get_close_code()
            if not self._leaving and code not in _CLEAN:
                self.problem = f"closed {code}"
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
            return
        if kind not in (
            picows.WSMsgType.TEXT,
            picows.WSMsgType.BINARY,
            picows.WSMsgType.CONTINUATION,
        ):
            return
        data = frame.get_payload_as_bytes()
        if kind != picows.WSMsgType.CONTINUATION:
            self._parts_are_text = kind == picows.WSMsgType.TEXT
        if not frame.fin or self._parts:
            self._parts.append(data)
            if not frame.fin:
                return
            data, self._parts = b"".join(self._parts), []
        self._message(data.decode() if self._parts_are_text else data)

    def _message(self, message: Wire) -> None:
        try:
            replies = self._platform.receive(message)
        except ProtocolError as error:
            self.problem = error.message
            self.hang_up()
            return
        received = self._platform.received_bytes
        if received != self._received:
            now = monotonic()
            if self._first_audio is None:
                self._first_audio = now
                self._tally.first_audio_s.append(now - self._opened_exactly)
            seconds = (received - self._received) / self._bytes_per_s
            self._received = received
            self._clock.arrived(now, seconds, self._platform.streams)
        if replies:
            self._send(replies)

    def on_ws_disconnected(self, _transport: picows.WSTransport) -> None:
        """The socket is gone: hand in what was measured."""
        self._clock.close()
        self._tally.late_s.extend(self._clock.late_s)
        self._tally.stalls_s.extend(self._clock.stalls_s)
        self._transport = None
        self.done.set()

    def _send(self, messages: list[Wire]) -> None:
        transport = self._transport
        if transport is None:
            return
        for message in messages:
            if isinstance(message, str):
                transport.send(picows.WSMsgType.TEXT, message)
            else:
                transport.send(picows.WSMsgType.BINARY, message)

    # ---- the clock

    def tick(self, due: float, late_s: float) -> None:
        """20 ms of the call; `due` is the nominal time."""
        if self._transport is None or self._leaving:
            return
        self._tally.own_late_s.append(late_s)
        played = self._platform.play()
        self._view.hear(level_dbfs(played.pcm), due - self._opened)
        if played.replies:
            self._send(list(played.replies))
        if self._platform.finished:
            self._leave()
            return
        output = self._caller.frame(due - self._opened)
        if output.hangup:
            if self._caller.failed:
                self.problem = self._caller.spans[-1].problem
            self.hang_up()
            return
        if output.digit:
            self._send(self._platform.digit(output.digit))
        self._send(self._platform.media(output.pcm))
        self._tally.sent_frames += 1

    def hang_up(self) -> None:
        """End the call as the platform would; may be called twice."""
        if self._transport is None or self._leaving:
            return
        self._send(self._platform.hangup())
        self._leaving = True
        # The platform gives the gateway a moment to close first.
        self._loop.call_later(max(self._platform.hangup_wait_s, FRAME_S), self._leave)
        self._loop.call_later(HANGUP_WAIT_S, self.abort)

    def _leave(self) -> None:
        self._leaving = True
        if self._transport is not None:
            self._transport.send_close(picows.WSCloseCode.OK)
            self._transport.disconnect()

    def abort(self) -> None:
        """Drop the socket if it is still there."""
        if self._transport is not None:
            self._transport.disconnect(graceful=False)
