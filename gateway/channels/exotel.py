"""Exotel AgentStream (Voicebot applet), bidirectional: JSON text, Linear16 as base64.

Audio goes out in multiples of 320 bytes, numbered and timed as the platform's own is. How a broken
peer is closed:

    1002  wrong order: `stop` before `start`, a second `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, audio that is not base64, another rate
    1008  a `start` for another call than the media token was issued for

Names: Exotel's published description and samples.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import orjson
import pybase64

from gateway.audio.formats import FRAME_MS, AudioFormat, Encoding
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    SendMark,
    Started,
    Wire,
    first_text,
    given,
)
from gateway.channels.capabilities import Capabilities, ClearBy, Marks, MarksOnClear
from gateway.channels.dialect import (
    Dialect,
    Hook,
    MediaRoute,
    Opening,
    Proof,
    WebAnswer,
    Webhook,
)
from gateway.channels.event_json import EventDecoder
from gateway.channels.event_stream import EVENTS, EventMessage, EventStream
from gateway.channels.proofs import AuthorizationProof
from gateway.errors import ProtocolError
from gateway.platform_settings import ExotelSettings

CAPABILITIES: Final = Capabilities(
    dialect="exotel",
    marks=Marks.NATIVE,
    # What becomes of them at a clear is not said, so nobody waits for them.
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    min_message_ms=200,
    frame_multiple_bytes=320,
)

_RATES_HZ: Final = (8000, 16000, 24000)
RATE: Final = "sample-rate"
"""Field of the socket's query that asks for a rate."""


class _Media(msgspec.Struct):
    payload: bytes


class _MediaFormat(msgspec.Struct):
    sample_rate: int = 8000


class _Start(msgspec.Struct):
    call_sid: str
    stream_sid: str = ""
    account_sid: str = ""
    caller: str = msgspec.field(default="", name="from")
    called: str = msgspec.field(default="", name="to")
    custom_parameters: dict[str, Any] | None = None
    media_format: _MediaFormat = msgspec.field(default_factory=_MediaFormat)


class _Message(EventMessage):
    stream_sid: str = ""
    media: _Media | None = None
    start: _Start | None = None


_messages: Final = EventDecoder(_Message, EVENTS)


class ExotelChannel(EventStream[_Message]):
    """The codec of one stream."""

    def __init__(self, opening: Opening[ExotelSettings]) -> None:
        super().__init__(CAPABILITIES, _messages, opening.expected_call_id)
        self._min_chunk_bytes = opening.settings.min_chunk_bytes
        query = opening.request.query
        self._query = {name: values[0] for name, values in query.items() if name != RATE}
        self._stream_sid = ""
        self._stream_sid_json = ""
        self._bytes_per_ms = 16
        self._sequence = 0
        self._chunk = 0
        self._sent_bytes = 0

    def _media(self, message: _Message) -> list[ChannelEvent]:
        payload = given(message.media, "media").payload
        return [AudioIn(payload)] if payload else []

    def _start(self, message: _Message) -> Started:
        start = given(message.start, "start")
        stream_sid = message.stream_sid or start.stream_sid
        if not start.call_sid or not stream_sid:
            raise ProtocolError("protocol.shape", "start names no call or no stream", where="start")
        self._check_call("start.call_sid", start.call_sid)
        rate_hz = start.media_format.sample_rate
        if rate_hz not in _RATES_HZ:
            raise ProtocolError(
                "protocol.format",
                f"{rate_hz} Hz is not spoken here",
                where="start.media_format",
                hint="ask for sample-rate 8000, 16000 or 24000",
            )
        self._stream_sid = stream_sid
        self._stream_sid_json = orjson.dumps(stream_sid).decode()
        audio = AudioFormat(Encoding.LINEAR16, rate_hz)
        self._bytes_per_ms = audio.frame_bytes // FRAME_MS
        frames = -(-self._min_chunk_bytes // audio.frame_bytes)
        self._capabilities = replace(CAPABILITIES, min_message_ms=frames * FRAME_MS)
        custom = {**self._query, **(start.custom_parameters or {})}
        return Started(
            call_id=start.call_sid,
            channel_id=stream_sid,
            from_=start.caller,
            to=start.called,
            language=first_text(custom, "language"),
            in_format=audio,
            out_format=audio,
            custom=custom,
            account=start.account_sid,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `media`; its numbers go on as the platform's own do."""
        self._chunk += 1
        self._sequence += 1
        timestamp_ms = self._sent_bytes // self._bytes_per_ms
        self._sent_bytes += len(data)
        return (
            f'{{"event":"media","stream_sid":{self._stream_sid_json},'
            f'"sequence_number":{self._sequence},"media":{{"chunk":{self._chunk},'
            f'"timestamp":"{timestamp_ms}","payload":"{pybase64.b64encode_as_string(data)}"}}}}'
        )

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks and clear; a hang-up and a transfer close the socket.

        Then the call goes on with the applet behind this one in its flow.
        """
        if isinstance(command, SendMark):
            return [self._say("mark", {"mark": {"name": command.name}})]
        if isinstance(command, Clear):
            return [self._say("clear", {})]
        return super().command(command)

    def _say(self, event: str, body: dict[str, Any]) -> str:
        self._sequence += 1
        head = {
            "event": event,
            "stream_sid": self._stream_sid,
            "sequence_number": self._sequence,
        }
        return orjson.dumps({**head, **body}).decode()


# ---- webhooks

_CALL_SID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def answer(hook: Hook[ExotelSettings]) -> WebAnswer:
    """The media socket's address, for an applet that is given ours instead of a fixed one."""
    request = hook.request
    value = request.query_value if request.method == "GET" else request.form_value
    call_sid = value("CallSid")
    if not _CALL_SID.fullmatch(call_sid):
        raise ProtocolError("protocol.form", "the request names no call", where="CallSid")
    # Fields that the operator has named come back with the upgrade.
    told = {name: value(name) for name in hook.settings.variables if value(name)}
    query = urlencode({RATE: hook.settings.rate_hz, **told})
    return WebAnswer(
        orjson.dumps({"url": f"{hook.media_url(call_sid)}?{query}"}), "application/json"
    )


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=ExotelChannel,
    settings=lambda platforms: platforms.exotel,
    routes=(
        MediaRoute("/exotel/media/{token}", Proof.TOKEN),
        # For an address that stands in the applet: its Basic credentials are the proof.
        MediaRoute("/exotel/media", Proof.PLATFORM),
    ),
    webhooks=(Webhook("/exotel/voice", answer, methods=("GET", "POST")),),
    proof=AuthorizationProof,
)
