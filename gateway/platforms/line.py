"""The platform's end of one call: codec, socket, outbox and, beside them, its REST interface."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeGuard

import structlog

from gateway.channels.base import (
    Channel,
    ChannelCommand,
    ChannelEvent,
    Close,
    Ended,
    EndReason,
    Hangup,
    Reply,
    SendDtmf,
    Started,
    Transfer,
    Wire,
)
from gateway.channels.capabilities import Capabilities, DtmfOut, EndOut, TransferBy
from gateway.channels.dialect import CallRef
from gateway.channels.outbox import Outbox, needs_outbox
from gateway.channels.outputs import outputs_of
from gateway.errors import ProtocolError, RestError
from gateway.platforms.rest import REFUSED, UNABLE
from gateway.platforms.terms import Terms

PEER_CLOSE_S: Final = 3.0
"""How long a platform that closes first is waited for."""

log = structlog.get_logger()


class Transport(Protocol):
    """The socket of a call, as the call sees it. Nothing here blocks."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes accepted by `send` that the peer has not taken yet."""
        ...

    @property
    def close_code(self) -> int | None:
        """The peer's close code; 1006 where the socket was lost; None while it is open."""
        ...

    def send(self, message: Wire) -> None:
        """Send one websocket message."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Start the close handshake."""
        ...

    def abort(self) -> None:
        """Drop the connection at once."""
        ...


class PlatformLine:
    """Says the engine's commands to the platform. Belongs to one socket."""

    def __init__(
        self,
        channel: Channel,
        transport: Transport,
        terms: Terms,
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self.channel = channel
        self.transport = transport
        self.gone = False
        """Nothing more can be sent."""
        self._terms = terms
        self._spawn = spawn
        self._outbox: Outbox | None = None
        self._ref = CallRef("")
        self._capabilities = self.capabilities
        self._last: Hangup | None = None
        """What the REST interface is asked before the codec's last words."""
        self._peer_closes = False
        self._peer_gone = asyncio.Event()

    @property
    def capabilities(self) -> Capabilities:
        """What the platform can do; final once the call has started."""
        return self._terms.capabilities(self.channel.capabilities)

    def start(self, started: Started) -> None:
        """The call has its formats and its names."""
        self._capabilities = self.capabilities
        self._ref = CallRef(started.call_id, started.channel_id, started.account, started.custom)
        audio_format = started.out_format
        if audio_format is not None and needs_outbox(self._capabilities, audio_format):
            self._outbox = Outbox(self.channel, self._capabilities, audio_format)

    def receive(self, data: Wire) -> list[ChannelEvent]:
        """What a message tells. Raises ProtocolError."""
        if not self._capabilities.binary_in and not isinstance(data, str):
            raise ProtocolError(
                "protocol.binary", "a binary message where text is spoken", close_code=1003
            )
        return self.channel.receive(data)

    # ---- out

    def out(self, item: Wire | Close) -> None:
        """Send a message, or close."""
        if self.gone:
            return
        if isinstance(item, Close):
            self.close(item.code, item.reason)
        else:
            self.transport.send(item)

    def close(self, code: int, reason: str) -> None:
        """Close the socket, unless it is closed."""
        if not self.gone:
            self.gone = True
            self.transport.close(code, reason)

    def audio(self, data: bytes, turn: int) -> None:
        """One frame in the output format."""
        if self.gone:
            return
        if self._outbox is None:
            made = self.channel.audio(data, turn)
            if isinstance(made, tuple):
                for message in made:
                    self.transport.send(message)
            else:
                self.transport.send(made)
        else:
            for message in self._outbox.audio(data, turn):
                self.transport.send(message)

    def tick(self) -> None:
        """The engine's tick is over."""
        if self._outbox is not None and not self.gone:
            for message in self._outbox.tick():
                self.transport.send(message)

    def command(self, command: ChannelCommand) -> None:
        """Say a command, or have the REST interface do it."""
        able = self._capabilities
        if isinstance(command, SendDtmf) and able.dtmf_out is DtmfOut.REST:
            self._spawn(self._press(command.digits), "press-keys")
        elif isinstance(command, Hangup) and able.end_out is EndOut.REST:
            self._last = command
        else:
            self._say(command)

    def _say(self, command: ChannelCommand) -> None:
        items = (self._outbox or self.channel).command(command)
        for item in items:
            self.out(item)
        if isinstance(command, Hangup | Transfer):
            self._peer_closes = bool(items) and not self.gone

    async def _press(self, digits: str) -> None:
        control = self._terms.control
        assert control is not None
        try:
            await control.send_dtmf(self._ref, digits)
        except RestError as error:
            log.warning("platform.keys_failed", **error.fields())

    def asks_to_hand_on(self, command: ChannelCommand) -> TypeGuard[Transfer]:
        """Whether this is a transfer that `hand_on` asks the REST interface for."""
        return isinstance(command, Transfer) and self._capabilities.transfer is TransferBy.REST

    async def hand_on(self, command: Transfer) -> None:
        """Have the REST interface hand the call on, then say the codec's last words.

        Raises RestError where it does not; the call still stands then, as far as is known.
        """
        control = self._terms.control
        assert control is not None
        try:
            await control.transfer(self._ref, command.target, command.metadata)
        except RestError as error:
            # Without a target the platform goes on by itself once the socket closes.
            if command.target or error.code != UNABLE:
                raise
        self._say(command)

    # ---- the end

    def left(self) -> None:
        """The caller has gone: audio that waits for a full message is not sent any more."""
        self._outbox = None

    @property
    def parting(self) -> bool:
        """Whether the call's end takes time on the platform's side: see `part`."""
        return self._last is not None or (self._peer_closes and not self.gone)

    def late(self, data: Wire) -> None:
        """A message after the call has ended: the dialect may still have to answer."""
        if not self._peer_closes or self.gone:
            return
        try:
            events = self.receive(data)
        except ProtocolError:
            self.close(1000, "")
            return
        for event in events:
            if isinstance(event, Reply):
                self.out(event.message)
            elif isinstance(event, Ended):
                # It knows: what is left is the close, which is its own to make or ours soon.
                self._peer_gone.set()

    def lost(self) -> None:
        """The socket is closed."""
        self.gone = True
        self._peer_gone.set()

    async def part(self, reason: EndReason) -> None:
        """The last words: by REST, then the codec's; then the peer may close first. Bounded."""
        last, self._last = self._last, None
        if last is not None:
            await self._hang_up(last)
            self._say(last)
        if self._peer_closes and not self.gone:
            try:
                async with asyncio.timeout(PEER_CLOSE_S):
                    await self._peer_gone.wait()
            except TimeoutError:
                log.info("platform.did_not_close", seconds=PEER_CLOSE_S)
        self.close(1000, reason.value)

    async def _hang_up(self, last: Hangup) -> None:
        control = self._terms.control
        assert control is not None
        if not self._ref.call_id:
            # This socket never was the call's.
            return
        # What the agent leaves may be what the platform refuses; the call has to end all the same.
        for metadata in (last.metadata, {}) if outputs_of(last.metadata) else ({},):
            try:
                await control.hangup(self._ref, metadata)
            except RestError as error:
                if error.code != UNABLE:
                    log.warning("platform.hangup_failed", **error.fields())
                if error.code == REFUSED:
                    continue
            return
