"""What FreeSWITCH's audio modules, and jambonz on top of them, have in common.

FreeSWITCH calls us. If it was given metadata, they come first, as one text message: a JSON object
or anything else. The caller's audio is binary Linear16, little endian, in messages of any size;
of two channels the first is the caller. Other text comes from the application that runs the call
(`send_text`): keys as `{"event": "dtmf", "dtmf": "5"}`, and what a dialect knows besides.

    1002  a message of the wrong sort, where the dialect says what its first one is
    1007  metadata that contradict themselves, a rate that is not spoken, a key that is none
    1008  metadata of another call than the media token was issued for
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import (
    AudioIn,
    ChannelEvent,
    Codec,
    Ended,
    Started,
    Wire,
    first_text,
    key_of,
)
from gateway.channels.capabilities import Capabilities
from gateway.channels.dialect import Opening, Request
from gateway.channels.l16 import FirstChannel
from gateway.errors import ProtocolError

MAX_RATE_HZ: Final = 48000
_CALL_ID: Final = re.compile(r"[\w.:@+-]{1,128}", re.ASCII)
_CALL_ID_NAMES: Final = ("callSid", "call_id", "uuid", "callId")


class FreeswitchChannel(Codec):
    """One socket of an audio module. Dialects add what goes out."""

    def __init__(
        self,
        opening: Opening[Any],
        capabilities: Capabilities,
        *,
        in_rate_hz: int,
        out_rate_hz: int,
        stereo: bool = False,
        metadata_needed: bool = False,
    ) -> None:
        super().__init__(capabilities)
        self._in_rate_hz = in_rate_hz
        self._out_rate_hz = out_rate_hz
        self._stereo = stereo
        self._metadata_needed = metadata_needed
        self._expected_call_id = opening.expected_call_id
        self._query = {
            name: values[0]
            for name, values in opening.request.query.items()
            if values and name != "access_token"
        }
        self._first_channel: FirstChannel | None = None
        self._started = False
        self._ended = False

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        if self._ended:
            return []
        if isinstance(message, str):
            if self._started:
                return self._text(message)
            return [self._start(self._metadata(message))]
        events: list[ChannelEvent] = []
        if not self._started and not self._metadata_needed:
            events.append(self._start({}))
        if not message:
            # The module's graceful end: no more audio of the caller will come.
            self._ended = True
            return [*events, Ended()]
        if self._first_channel is not None:
            message = self._first_channel.process(message)
        events.append(AudioIn(message))
        return events

    def overdue(self) -> list[ChannelEvent]:
        """Without metadata the call starts all the same, where the dialect allows it."""
        if self._started or self._metadata_needed:
            return []
        return [self._start({})]

    def _metadata(self, message: str) -> dict[str, Any]:
        body = _object(message)
        if body is not None:
            return body
        if self._metadata_needed:
            raise ProtocolError(
                "protocol.order", "the first message is no JSON object", close_code=1002
            )
        return {"metadata": message}

    def _start(self, metadata: Mapping[str, Any]) -> Started:
        custom = {**self._query, **metadata}
        call_id = first_text(custom, *_CALL_ID_NAMES)
        if call_id and not _CALL_ID.fullmatch(call_id):
            raise ProtocolError("protocol.shape", "that is no call id", where="callSid")
        expected = self._expected_call_id
        if expected and call_id and call_id != expected:
            raise ProtocolError(
                "protocol.other_call",
                "the media token belongs to another call",
                where="callSid",
                close_code=1008,
            )
        if not call_id:
            if self._metadata_needed:
                raise ProtocolError("protocol.shape", "no call is named", where="callSid")
            call_id = expected or f"{self.capabilities.dialect}-{secrets.token_hex(8)}"
        rate_hz = _rate(custom.get("sampleRate", custom.get("rate")), self._in_rate_hz)
        mix = custom.get("mixType")
        if mix == "stereo" or (mix is None and self._stereo):
            self._first_channel = FirstChannel()
        self._started = True
        return Started(
            call_id=call_id,
            channel_id=first_text(custom, "callId") or call_id,
            from_=first_text(custom, "from"),
            to=first_text(custom, "to"),
            language=first_text(custom, "language"),
            in_format=AudioFormat(Encoding.LINEAR16, rate_hz),
            out_format=AudioFormat(Encoding.LINEAR16, self._out_rate_hz),
            custom=custom,
            account=first_text(custom, "accountSid"),
        )

    def _text(self, message: str) -> list[ChannelEvent]:
        body = _object(message)
        if body is None:
            # What the call's application sends is its own affair.
            return []
        if body.get("event") == "dtmf":
            return [key_of(body.get("dtmf", ""), "dtmf")]
        return self._told(body)

    def _told(self, body: Mapping[str, Any]) -> list[ChannelEvent]:
        """A JSON message after the start that is no key."""
        return []


def account(request: Request) -> str:
    """The account that the address names, as the metadata would."""
    return request.query_value("accountSid")


def _object(message: str) -> dict[str, Any] | None:
    try:
        body = orjson.loads(message)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _rate(value: object, usual_hz: int) -> int:
    """A rate as a number, or as text such as `16000` or `16k`. Raises ProtocolError."""
    if value is None:
        return usual_hz
    text = str(value)
    if text.endswith("k"):
        text = f"{text[:-1]}000"
    rate_hz = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
    if not 0 < rate_hz <= MAX_RATE_HZ or rate_hz % 8000:
        raise ProtocolError(
            "protocol.format",
            f"rates from 8000 to {MAX_RATE_HZ} Hz in steps of 8000 are spoken",
            where="sampleRate",
        )
    return rate_hz
