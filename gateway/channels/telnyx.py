"""Telnyx media streaming, bidirectional in `rtp` mode: JSON text, audio as base64.

The two directions may differ: what comes is what the telephone leg has agreed on, what is sent is
what the answer asked for (`platforms.telnyx.codec`). Messages may overtake one another, so audio
is put in order by its chunk number. How a broken peer is closed:

    1002  wrong order: `stop` before `start`, a second `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, a codec that is not spoken here
    1008  a `start` for another call than the media token was issued for

Names: Telnyx' published description and SDK.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

import msgspec
import orjson
import pybase64

from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.channels import telnyx_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    PlatformFault,
    SendMark,
    Started,
    Wire,
    first_text,
    flat,
    given,
)
from gateway.channels.capabilities import (
    Capabilities,
    ClearBy,
    DtmfOut,
    EndOut,
    Marks,
    MarksOnClear,
    TransferBy,
)
from gateway.channels.dialect import (
    Dialect,
    Hook,
    MediaRoute,
    Opening,
    Proof,
    Request,
    WebAnswer,
    Webhook,
)
from gateway.channels.event_json import EventDecoder
from gateway.channels.event_stream import EVENTS, EventMessage, EventStream
from gateway.channels.l16 import Swapper
from gateway.channels.ordering import Reorder
from gateway.channels.telnyx_proof import TelnyxProof
from gateway.channels.twiml import connect_stream
from gateway.errors import ProtocolError
from gateway.platform_settings import TelnyxSettings

CAPABILITIES: Final = Capabilities(
    dialect="telnyx",
    marks=Marks.NATIVE,
    # What becomes of them at a clear is not said, so nobody waits for them.
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
)

_L16_RATES_HZ: Final = (8000, 16000, 24000, 48000)


def format_of(codec: str, rate_hz: int) -> AudioFormat:
    """A codec's name and rate. Raises ProtocolError for one that is not spoken."""
    if codec == "PCMU" and rate_hz == 8000:
        return MULAW_8K
    if codec == "PCMA" and rate_hz == 8000:
        return ALAW_8K
    if codec == "L16" and rate_hz in _L16_RATES_HZ:
        return AudioFormat(Encoding.LINEAR16, rate_hz)
    raise ProtocolError(
        "protocol.format",
        f"{codec[:20]!r} at {rate_hz} Hz is not spoken here",
        where="start.media_format",
        hint="ask for stream_codec PCMU, PCMA or L16",
    )


class _Media(msgspec.Struct):
    payload: bytes
    track: str = "inbound"
    chunk: int | None = None


class _MediaFormat(msgspec.Struct):
    encoding: str = "PCMU"
    sample_rate: int = 8000
    channels: int = 1


class _Start(msgspec.Struct):
    call_control_id: str
    user_id: str = ""
    client_state: str | None = None
    custom_parameters: dict[str, Any] | list[dict[str, Any]] | None = None
    caller: str = msgspec.field(default="", name="from")
    called: str = msgspec.field(default="", name="to")
    media_format: _MediaFormat = msgspec.field(default_factory=_MediaFormat)


class _Error(msgspec.Struct):
    code: str | int = ""
    title: str = ""
    detail: str = ""


class _Message(EventMessage):
    stream_id: str = ""
    media: _Media | None = None
    start: _Start | None = None
    payload: _Error | None = None


_messages: Final = EventDecoder(_Message, (*EVENTS, "error"))


class TelnyxChannel(EventStream[_Message]):
    """The codec of one stream."""

    def __init__(self, opening: Opening[TelnyxSettings]) -> None:
        super().__init__(CAPABILITIES, _messages, opening.expected_call_id)
        settings = opening.settings
        self._account = opening.account
        self._out_format = format_of(settings.codec, settings.rate_hz)
        self._order = Reorder(settings.reorder_frames) if settings.reorder_frames else None
        self._big_endian = settings.l16_big_endian
        self._swap_in: Swapper | None = None
        self._swap_out: Swapper | None = None

    def _media(self, message: _Message) -> list[ChannelEvent]:
        media = given(message.media, "media")
        if not media.payload or not media.track.startswith("inbound"):
            return []
        if self._order is None or media.chunk is None:
            pieces = [media.payload]
        else:
            pieces = self._order.put(media.chunk, media.payload)
        if self._swap_in is not None:
            pieces = [self._swap_in.process(piece) for piece in pieces]
        return [AudioIn(piece) for piece in pieces]

    def _other(self, message: _Message) -> list[ChannelEvent]:
        if message.event != "error":
            return []
        fault = given(message.payload, "payload")
        return [PlatformFault(str(fault.code)[:20], f"{fault.title} {fault.detail}".strip())]

    def _start(self, message: _Message) -> Started:
        start = given(message.start, "start")
        if not start.call_control_id:
            raise ProtocolError("protocol.shape", "start names no call", where="start")
        audio = start.media_format
        if audio.channels != 1:
            raise ProtocolError(
                "protocol.format", "only one channel is spoken", where="start.media_format"
            )
        in_format = format_of(audio.encoding, audio.sample_rate)
        custom = _custom(start)
        # TeXML names the call by the id that its answer has put into the parameters.
        self._check_call("start.call_control_id", start.call_control_id, custom.get("callSid"))
        if self._big_endian and in_format.encoding is Encoding.LINEAR16:
            self._swap_in = Swapper()
        if self._big_endian and self._out_format.encoding is Encoding.LINEAR16:
            self._swap_out = Swapper()
        return Started(
            call_id=start.call_control_id,
            channel_id=message.stream_id,
            from_=start.caller or first_text(custom, "from"),
            to=start.called or first_text(custom, "to"),
            language=first_text(custom, "language"),
            in_format=in_format,
            out_format=self._out_format,
            custom=custom,
            account=self._account or start.user_id,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `media` message."""
        if self._swap_out is not None:
            data = self._swap_out.process(data)
        return f'{{"event":"media","media":{{"payload":"{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, clear, hang-up and transfer.

        The last two close the socket: without REST a TeXML call goes on with its next verb, and
        a call-control call stays.
        """
        if isinstance(command, SendMark):
            return [orjson.dumps({"event": "mark", "mark": {"name": command.name}}).decode()]
        if isinstance(command, Clear):
            return ['{"event":"clear"}']
        return super().command(command)


def _custom(start: _Start) -> dict[str, Any]:
    """Custom parameters, in either form, and the client state where it is text."""
    given_ = start.custom_parameters
    custom: dict[str, Any] = {}
    if isinstance(given_, dict):
        custom.update(given_)
    elif given_ is not None:
        custom.update({str(one["name"]): one.get("value") for one in given_ if "name" in one})
    if start.client_state:
        try:
            state = base64.b64decode(start.client_state, validate=True).decode()
        except (binascii.Error, ValueError):
            state = start.client_state
        custom.setdefault("client_state", state)
    return custom


# ---- webhooks

_CALL_ID: Final = re.compile(r"[\w:.-]{1,256}", re.ASCII)


def account(request: Request) -> str:
    """The account that asks for TeXML; call control names none."""
    return request.form_value("AccountSid") or request.query_value("AccountSid")


def texml(hook: Hook[TelnyxSettings]) -> WebAnswer:
    """TeXML that connects the call to its media socket, in both directions."""
    request = hook.request
    value = request.query_value if request.method == "GET" else request.form_value
    call_id = value("CallSid")
    _check_call(call_id, "CallSid")
    parameters = {name: value(name) for name in hook.settings.variables}
    parameters |= {"callSid": call_id, "from": value("From"), "to": value("To")}
    # Without the mode only what the caller says is streamed; the default takes MP3.
    attributes = {"bidirectionalMode": "rtp", "bidirectionalCodec": hook.settings.codec}
    if hook.settings.codec == "L16":
        attributes["bidirectionalSamplingRate"] = str(hook.settings.rate_hz)
    return WebAnswer(connect_stream(hook.media_url(call_id), parameters, attributes))


def call_control(hook: Hook[TelnyxSettings]) -> WebAnswer:
    """A call-control event: an incoming call is answered, with its stream."""
    try:
        body = msgspec.json.decode(hook.request.body, type=_Event)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProtocolError("protocol.json", "the body is no event", where="data") from None
    told = body.data
    call = told.payload
    if told.event_type != "call.initiated" or call.get("direction") != "incoming":
        return WebAnswer(b"{}", "application/json")
    call_id = first_text(call, "call_control_id")
    _check_call(call_id, "call_control_id")
    codec = hook.settings.codec
    answer: dict[str, Any] = {
        "stream_url": hook.media_url(call_id),
        "stream_track": "inbound_track",
        "stream_codec": codec,
        "stream_bidirectional_mode": "rtp",
        "stream_bidirectional_codec": codec,
    }
    if codec == "L16":
        answer["stream_bidirectional_sampling_rate"] = hook.settings.rate_hz
    named = {name: text for name, text in flat(call).items() if name in hook.settings.variables}
    if named:
        answer["custom_parameters"] = [
            {"name": name, "value": text} for name, text in named.items()
        ]
    request = telnyx_rest.action(call_id, "answer", answer)
    return WebAnswer(b"{}", "application/json", requests=(request,))


class _Data(msgspec.Struct):
    event_type: str
    payload: dict[str, Any] = {}


class _Event(msgspec.Struct):
    data: _Data


def _check_call(call_id: str, where: str) -> None:
    if not _CALL_ID.fullmatch(call_id):
        raise ProtocolError("protocol.form", "the request names no call", where=where)


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=TelnyxChannel,
    settings=lambda platforms: platforms.telnyx,
    routes=(
        MediaRoute("/telnyx/media/{token}", Proof.TOKEN),
        # For streams that are started elsewhere: the stream token is the proof.
        MediaRoute("/telnyx/media", Proof.PLATFORM),
    ),
    webhooks=(
        Webhook("/telnyx/texml", texml, methods=("GET", "POST")),
        Webhook("/telnyx/call-control", call_control),
    ),
    proof=TelnyxProof,
    secrets="public_keys and auth_tokens",
    rest=telnyx_rest.rest,
    account=account,
)
