"""A call that sends every piece of audio straight back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gateway.channels.base import (
    AudioIn,
    Channel,
    Close,
    Ended,
    EndReason,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    TextIn,
    Wire,
)
from gateway.errors import GatewayError, ProtocolError
from gateway.server.contract import MediaTransport
from gateway.server.observers import CallObservers


class EchoCall:
    """Echoes audio; `flood` in a text makes it send without end; reports what it saw."""

    def __init__(self, channel: Channel, transport: MediaTransport, calls: EchoCalls) -> None:
        self.channel = channel
        self.transport = transport
        self.calls = calls
        self.start: Started | None = None
        self.errors: list[ProtocolError] = []
        self.messages = 0
        self.texts: list[str] = []
        self.marks: list[str] = []
        self.closed = 0
        self.reason: EndReason | None = None
        self.linger: asyncio.Event | None = None
        self._done = asyncio.Event()
        self._flood: asyncio.Task[None] | None = None

    @property
    def call_id(self) -> str:
        return self.start.call_id if self.start else ""

    @property
    def started(self) -> bool:
        return self.start is not None

    def message(self, data: Wire) -> None:
        self.messages += 1
        try:
            for event in self.channel.receive(data):
                self._event(event)
        except ProtocolError as error:
            self.errors.append(error)
            self._out(self.channel.protocol_close(error))
            self.end(EndReason.ERROR)

    def _event(self, event: object) -> None:
        if isinstance(event, Started):
            self.start = event
            fields = {"channel": self.channel.capabilities.dialect, "call_id": event.call_id}
            self._record("call_started", fields)
        elif isinstance(event, AudioIn) and self.start is not None:
            self.transport.send(self.channel.audio(event.data, 1))
            self._out(self.channel.command(SendMark("m1")))
        elif isinstance(event, MarkReached):
            self.marks.append(event.name)
        elif isinstance(event, TextIn):
            self.texts.append(event.text)
            if event.text == "flood":
                self._flood = asyncio.get_running_loop().create_task(self._send_for_ever())
            elif event.text == "boom":
                raise ZeroDivisionError("a fault inside the call")
        elif isinstance(event, Ended):
            self.end(event.reason)

    async def _send_for_ever(self) -> None:
        while not self.closed:
            self.transport.send(self.channel.audio(bytes(4000), 1))
            await asyncio.sleep(0)

    def _out(self, items: list[Wire | Close]) -> None:
        for item in items:
            if isinstance(item, Close):
                self.transport.close(item.code, item.reason)
            else:
                self.transport.send(item)

    def _record(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self.calls.observers is not None:
            self.calls.observers.record(self.call_id, 0.0, kind, fields)

    def transport_closed(self) -> None:
        self.closed += 1
        self.end(EndReason.TRANSPORT_LOST)

    def shutdown(self) -> None:
        self._out(self.channel.command(Hangup(EndReason.SHUTDOWN)))
        self.end(EndReason.SHUTDOWN)

    def end(self, reason: EndReason) -> None:
        if self.reason is None:
            self.reason = reason
            self._record("call_ended", {"reason": reason.value})
            self._out(self.channel.command(Hangup(reason)))
            if self.calls.observers is not None:
                self.calls.observers.ended(self.call_id, reason)
            self._done.set()

    async def wait_ended(self) -> EndReason:
        await self._done.wait()
        if self._flood is not None:
            await self._flood
        if self.linger is not None:
            await self.linger.wait()
        assert self.reason is not None
        return self.reason


class EchoCalls:
    """The factory; keeps every call that it made."""

    def __init__(self) -> None:
        self.made: list[EchoCall] = []
        self.remote: list[tuple[str, str]] = []
        self.observers: CallObservers | None = None
        self.fault: GatewayError | None = None

    def make(
        self,
        channel: Channel,
        transport: MediaTransport,
        *,
        remote: str,
        path: str,
        custom: Mapping[str, Any],
    ) -> EchoCall:
        if self.fault is not None:
            raise self.fault
        call = EchoCall(channel, transport, self)
        self.made.append(call)
        self.remote.append((remote, path))
        return call


async def until(condition: Any, limit_s: float = 5.0) -> None:
    """Wait until the condition holds; the test's own bound, not a synchronisation by time."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.005)
