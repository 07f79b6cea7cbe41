"""SignalWire streams (`<Connect><Stream>` of compatibility XML): JSON text, audio as base64.

Close to another platform's messages and yet not the same: `start` carries the stream's id only
inside, `stop` may have no body, audio is mu-law or Linear16 by what the answer asked for, and
keys can be pressed on the stream. How a broken peer is closed:

    1002  wrong order: `stop` before `start`, a second `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, another codec
    1008  a `start` for another call than the media token was issued for

Names: SignalWire's published description.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import msgspec
import orjson
import pybase64

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import signalwire_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    SendDtmf,
    SendMark,
    Started,
    Wire,
    first_text,
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
from gateway.channels.signalwire_proof import SignalWireProof
from gateway.channels.sip import page_after
from gateway.channels.twiml import connect_stream, dial
from gateway.errors import ProtocolError
from gateway.platform_settings import SignalWireSettings

CAPABILITIES: Final = Capabilities(
    dialect="signalwire",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.ECHOED,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    dtmf_out=DtmfOut.NATIVE,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
)

REALTIME_LEAD_MS: Final = 100
"""Lead where the platform drops what comes too early."""


class _Media(msgspec.Struct):
    payload: bytes
    track: str = "inbound"


class _MediaFormat(msgspec.Struct, rename="camel"):
    encoding: str = "audio/x-mulaw"
    sample_rate: int = 8000
    channels: int = 1


class _Start(msgspec.Struct, rename="camel"):
    stream_sid: str
    call_sid: str
    account_sid: str = ""
    custom_parameters: dict[str, Any] | None = None
    media_format: _MediaFormat = msgspec.field(default_factory=_MediaFormat)


class _Message(EventMessage):
    media: _Media | None = None
    start: _Start | None = None


_messages: Final = EventDecoder(_Message, EVENTS)


class SignalWireChannel(EventStream[_Message]):
    """The codec of one stream."""

    def __init__(self, opening: Opening[SignalWireSettings]) -> None:
        settings = opening.settings
        record = CAPABILITIES
        if settings.realtime:
            record = replace(record, max_lead_ms=REALTIME_LEAD_MS)
        super().__init__(record, _messages, opening.expected_call_id)
        self._big_endian = settings.l16_big_endian
        self._swap_in: Swapper | None = None
        self._swap_out: Swapper | None = None
        self._stream_sid = ""
        self._media_prefix = ""

    def _media(self, message: _Message) -> list[ChannelEvent]:
        media = given(message.media, "media")
        if not media.payload or not media.track.startswith("inbound"):
            return []
        data = media.payload
        if self._swap_in is not None:
            data = self._swap_in.process(data)
        return [AudioIn(data)]

    def _start(self, message: _Message) -> Started:
        start = given(message.start, "start")
        if not start.call_sid or not start.stream_sid:
            raise ProtocolError("protocol.shape", "start names no call or no stream", where="start")
        self._check_call("start.callSid", start.call_sid)
        audio = _format_of(start.media_format)
        if self._big_endian and audio.encoding is Encoding.LINEAR16:
            self._swap_in, self._swap_out = Swapper(), Swapper()
        self._stream_sid = start.stream_sid
        sid = orjson.dumps(start.stream_sid).decode()
        self._media_prefix = f'{{"event":"media","streamSid":{sid},"media":{{"payload":"'
        custom = start.custom_parameters or {}
        return Started(
            call_id=start.call_sid,
            channel_id=start.stream_sid,
            from_=first_text(custom, "from", "From"),
            to=first_text(custom, "to", "To"),
            language=first_text(custom, "language"),
            in_format=audio,
            out_format=audio,
            custom=custom,
            account=start.account_sid,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `media` message."""
        if self._swap_out is not None:
            data = self._swap_out.process(data)
        return f'{self._media_prefix}{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, clear, keys, hang-up and transfer.

        The last two close the socket: without REST the call goes on behind `<Connect>`.
        """
        if isinstance(command, SendMark):
            return [self._say("mark", {"mark": {"name": command.name}})]
        if isinstance(command, Clear):
            return [self._say("clear", {})]
        if isinstance(command, SendDtmf):
            return [self._say("dtmf", {"dtmf": {"digit": key}}) for key in command.digits]
        return super().command(command)

    def _say(self, event: str, body: dict[str, Any]) -> str:
        return orjson.dumps({"event": event, "streamSid": self._stream_sid, **body}).decode()


def _format_of(told: _MediaFormat) -> AudioFormat:
    if told.channels == 1:
        if told.encoding == "audio/x-mulaw" and told.sample_rate == 8000:
            return MULAW_8K
        if told.encoding.lower() == "audio/x-l16" and told.sample_rate in (8000, 16000, 24000):
            return AudioFormat(Encoding.LINEAR16, told.sample_rate)
    raise ProtocolError(
        "protocol.format",
        f"{told.encoding[:30]} at {told.sample_rate} Hz with {told.channels} channel(s) is not "
        "spoken here",
        where="start.mediaFormat",
        hint="ask for the codec PCMU@8000h, L16@16000h or L16@24000h",
    )


# ---- webhooks

_CALL_SID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def account(request: Request) -> str:
    """The account that a form names."""
    return request.form_value("AccountSid")


def answer(hook: Hook[SignalWireSettings]) -> WebAnswer:
    """Compatibility XML that connects the call to its media socket."""
    call_sid = hook.request.form_value("CallSid")
    if not _CALL_SID.fullmatch(call_sid):
        raise ProtocolError("protocol.form", "the form names no call", where="CallSid")
    parameters = {name: hook.request.form_value(name) for name in hook.settings.variables}
    parameters |= {
        "callSid": call_sid,
        "from": hook.request.form_value("From"),
        "to": hook.request.form_value("To"),
    }
    attributes: dict[str, str] = {"codec": hook.settings.codec}
    if hook.settings.realtime:
        attributes["realtime"] = "true"
    return WebAnswer(connect_stream(hook.media_url(call_sid), parameters, attributes))


def transfer(hook: Hook[SignalWireSettings]) -> WebAnswer:
    """Compatibility XML that dials `target`: where a transfer has sent the call."""
    target = hook.request.query_value("target")
    if not target:
        raise ProtocolError("protocol.form", "the address names no target", where="target")
    after = page_after(hook.request.query, hook.settings.continue_url)
    return WebAnswer(dial(target, after).encode())


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=SignalWireChannel,
    settings=lambda platforms: platforms.signalwire,
    routes=(
        MediaRoute("/signalwire/media/{token}", Proof.TOKEN),
        # For XML that is not ours: the stream's bearer token is the proof.
        MediaRoute("/signalwire/media", Proof.PLATFORM),
    ),
    webhooks=(
        Webhook("/signalwire/voice", answer),
        Webhook(signalwire_rest.TRANSFER, transfer),
    ),
    proof=SignalWireProof,
    secrets="auth_tokens",
    rest=signalwire_rest.rest,
    account=account,
)
