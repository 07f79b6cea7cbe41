"""What streams of JSON events have in common: the order of `start`, `media`, keys, marks, `stop`.

Before `start` only audio is passed on (the session keeps it); keys and marks are dropped, since
neither can exist yet, and so is everything after `stop`. Unknown events are ignored. Which fields
the events have, and what else there is, is each dialect's own.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from gateway.channels.base import (
    ChannelEvent,
    Codec,
    Ended,
    MarkReached,
    Started,
    Wire,
    given,
    key_of,
    text_only,
)
from gateway.channels.capabilities import Capabilities
from gateway.channels.event_json import EventDecoder
from gateway.errors import ProtocolError


class Dtmf(msgspec.Struct):
    """One key."""

    digit: str | int


class Mark(msgspec.Struct):
    """A mark of ours."""

    name: str


class EventMessage(msgspec.Struct):
    """A message; dialects add what they have besides."""

    event: str
    dtmf: Dtmf | None = None
    mark: Mark | None = None


M = TypeVar("M", bound=EventMessage)

EVENTS = ("connected", "start", "media", "dtmf", "mark", "stop")
"""Events whose shape matters in most dialects."""


class EventStream(Codec, Generic[M]):
    """The codec of one stream. A dialect reads its own `start` and `media`, and writes."""

    def __init__(
        self, capabilities: Capabilities, messages: EventDecoder[M], expected_call_id: str
    ) -> None:
        super().__init__(capabilities)
        self._decode = messages.decode
        self._expected_call_id = expected_call_id
        self._started = False
        self._stopped = False

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message.

        Raises ProtocolError: 1003 for a binary one, 1007 for one that is not JSON or of a wrong
        shape, 1002 for a second `start` or a `stop` before it; and what the dialect adds.
        """
        text = text_only(message)
        if self._stopped:
            return []
        parsed = self._decode(text)
        if parsed is None:
            return []
        event = parsed.event
        if event == "media":
            return self._media(parsed)
        if event == "start":
            if self._started:
                raise ProtocolError("protocol.started_twice", "a second start", close_code=1002)
            started = self._start(parsed)
            self._started = True
            return [started]
        if event == "stop":
            if not self._started:
                raise ProtocolError(
                    "protocol.order", "stop came before start", where="event", close_code=1002
                )
            self._stopped = True
            return [Ended()]
        if event == "mark" and self._started:
            return [MarkReached(given(parsed.mark, "mark").name)]
        if event == "dtmf" and self._started:
            return [key_of(given(parsed.dtmf, "dtmf").digit, "dtmf.digit")]
        return self._other(parsed)

    def _media(self, message: M) -> list[ChannelEvent]:
        """The caller's audio. Hot path."""
        raise NotImplementedError

    def _start(self, message: M) -> Started:
        """The start of the call. Raises ProtocolError where it cannot be taken."""
        raise NotImplementedError

    def _other(self, message: M) -> list[ChannelEvent]:
        """An event that only this dialect has."""
        return []

    def _check_call(self, where: str, *names: object) -> None:
        """Whether the media token was issued for this call, by any of its names.

        Raises ProtocolError (1008).
        """
        if self._expected_call_id and self._expected_call_id not in names:
            raise ProtocolError(
                "protocol.other_call",
                "the media token belongs to another call",
                where=where,
                close_code=1008,
            )
