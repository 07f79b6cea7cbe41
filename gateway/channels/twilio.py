"""Twilio Media Streams, bidirectional: JSON text messages, mu-law at 8 kHz both ways.

How a broken peer is closed:

    1002  wrong order: `stop` before `start`, a second `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, audio that is not base64, another media format
    1008  a `start` for another call than the media token was issued for

Field names: Twilio's published description of Media Streams.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import msgspec
import orjson
import pybase64

from gateway.audio.formats import MULAW_8K
from gateway.channels import twilio_rest
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
from gateway.channels.twilio_signature import TwilioProof
from gateway.channels.twiml import connect_stream
from gateway.errors import ProtocolError
from gateway.platform_settings import TwilioSettings

CAPABILITIES: Final = Capabilities(
    dialect="twilio",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.ECHOED,
    clear=ClearBy.NATIVE,
    dtmf_out=DtmfOut.INBAND,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
    max_lead_ms=1000,
    # The platform sends audio all the time, silence included.
    receive_idle_s=15.0,
)


class _Media(msgspec.Struct):
    payload: bytes
    track: str = "inbound"


class _MediaFormat(msgspec.Struct, rename="camel"):
    encoding: str = "audio/x-mulaw"
    sample_rate: int = 8000
    channels: int = 1


class _Start(msgspec.Struct, rename="camel"):
    call_sid: str
    stream_sid: str = ""
    account_sid: str = ""
    custom_parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    media_format: _MediaFormat = msgspec.field(default_factory=_MediaFormat)


class _Message(EventMessage, rename="camel"):
    stream_sid: str = ""
    media: _Media | None = None
    start: _Start | None = None


_messages: Final = EventDecoder(_Message, EVENTS)


class TwilioChannel(EventStream[_Message]):
    """The codec of one Media Stream."""

    def __init__(self, opening: Opening[TwilioSettings]) -> None:
        record = replace(CAPABILITIES, min_message_ms=opening.settings.batch_ms)
        super().__init__(record, _messages, opening.expected_call_id)
        self._media_prefix = ""
        self._stream_sid_json = ""

    def _media(self, message: _Message) -> list[ChannelEvent]:
        media = given(message.media, "media")
        if not media.payload or media.track != "inbound":
            return []
        return [AudioIn(media.payload)]

    def _start(self, message: _Message) -> Started:
        start = given(message.start, "start")
        stream_sid = start.stream_sid or message.stream_sid
        if not start.call_sid or not stream_sid:
            raise ProtocolError("protocol.shape", "start names no call or no stream", where="start")
        self._check_call("start.callSid", start.call_sid)
        audio = start.media_format
        if audio != _MediaFormat():
            raise ProtocolError(
                "protocol.format",
                f"only audio/x-mulaw at 8000 Hz mono is spoken, not {audio.encoding} at "
                f"{audio.sample_rate} Hz with {audio.channels} channel(s)",
                where="start.mediaFormat",
            )
        self._stream_sid_json = orjson.dumps(stream_sid).decode()
        self._media_prefix = (
            f'{{"event":"media","streamSid":{self._stream_sid_json},"media":{{"payload":"'
        )
        custom = start.custom_parameters
        return Started(
            call_id=start.call_sid,
            channel_id=stream_sid,
            from_=first_text(custom, "from", "From"),
            to=first_text(custom, "to", "To"),
            language=first_text(custom, "language"),
            in_format=MULAW_8K,
            out_format=MULAW_8K,
            custom=custom,
            account=start.account_sid,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `media` message; `data` is mu-law of any length."""
        if not self._started:
            raise RuntimeError("audio cannot be sent before the stream has started")
        return f'{self._media_prefix}{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, clear, hang-up and transfer.

        The last two close the socket: without REST the call goes on with the TwiML that follows
        `<Connect>`.
        """
        if isinstance(command, SendMark):
            name = orjson.dumps(command.name).decode()
            return [
                f'{{"event":"mark","streamSid":{self._stream_sid_json},"mark":{{"name":{name}}}}}'
            ]
        if isinstance(command, Clear):
            return [f'{{"event":"clear","streamSid":{self._stream_sid_json}}}']
        return super().command(command)


_CALL_SID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def account(request: Request) -> str:
    """The account that a form names."""
    return request.form_value("AccountSid")


def answer(hook: Hook[TwilioSettings]) -> WebAnswer:
    """TwiML that connects the call to its media socket, with what is known of the caller."""
    call_sid = hook.request.form_value("CallSid")
    if not _CALL_SID.fullmatch(call_sid):
        raise ProtocolError("protocol.form", "the form names no call", where="CallSid")
    # Fields that the operator has named go along: they become session variables.
    parameters = {name: hook.request.form_value(name) for name in hook.settings.variables}
    parameters |= {
        "callSid": call_sid,
        "from": hook.request.form_value("From"),
        "to": hook.request.form_value("To"),
    }
    return WebAnswer(connect_stream(hook.media_url(call_sid), parameters))


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=TwilioChannel,
    settings=lambda platforms: platforms.twilio,
    routes=(
        MediaRoute("/twilio/media/{token}", Proof.TOKEN),
        # For TwiML that is not ours: the platform's signature on the upgrade is the proof.
        MediaRoute("/twilio/media", Proof.PLATFORM),
    ),
    webhooks=(Webhook("/twilio/voice", answer),),
    proof=TwilioProof,
    secrets="auth_tokens",
    rest=twilio_rest.rest,
    account=account,
)
