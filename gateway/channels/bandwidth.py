"""Bandwidth media streaming, bidirectional: JSON text, PCMU in, PCMU or PCM out.

The kind of a message stands in `eventType`. There are no marks and no keys on this socket; keys
are pressed by BXML that the call is sent to, while its stream runs on. How a broken peer is closed:

    1002  wrong order: `stop` before `start`, a second `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, audio that is not base64, another codec
    1008  a `start` for another call than the media token was issued for

Names: Bandwidth's published description.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final
from xml.etree import ElementTree

import msgspec
import pybase64

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import bandwidth_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    Ended,
    Started,
    Wire,
    first_text,
    flat,
    text_only,
)
from gateway.channels.capabilities import (
    Capabilities,
    ClearBy,
    DtmfOut,
    EndOut,
    Marks,
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
from gateway.channels.proofs import AuthorizationProof
from gateway.errors import ProtocolError
from gateway.platform_settings import BandwidthSettings

CAPABILITIES: Final = Capabilities(
    dialect="bandwidth",
    marks=Marks.EMULATED,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    dtmf_in=False,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
)


class _MediaFormat(msgspec.Struct, rename="camel"):
    encoding: str = "PCMU"
    sample_rate: int = 8000


class _Track(msgspec.Struct, rename="camel"):
    name: str = "inbound"
    media_format: _MediaFormat | str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    call_id: str = ""
    account_id: str = ""
    stream_id: str = ""
    tracks: list[_Track] = []


class _Message(msgspec.Struct, rename="camel"):
    event_type: str
    metadata: _Metadata | None = None
    stream_params: dict[str, Any] | None = None
    track: str = "inbound"
    payload: bytes | None = None


_messages: Final = EventDecoder(_Message, ("start", "media", "stop"), "eventType")


class BandwidthChannel(Codec):
    """The codec of one stream."""

    def __init__(self, opening: Opening[BandwidthSettings]) -> None:
        settings = opening.settings
        capabilities = CAPABILITIES
        if not opening.expected_call_id:
            # BXML of somebody else's would not go on behind the keys.
            capabilities = replace(capabilities, dtmf_out=DtmfOut.INBAND)
        super().__init__(capabilities)
        self._expected_call_id = opening.expected_call_id
        self._started = False
        self._stopped = False
        content_type = "audio/pcmu"
        self._out_format = MULAW_8K
        if settings.codec == "PCM":
            self._out_format = AudioFormat(Encoding.LINEAR16, settings.rate_hz)
            content_type = (
                f"audio/pcm;rate={settings.rate_hz};channels=1;bit-depth=16;endian=little;"
                "encoding=signed"
            )
        self._media_prefix = (
            f'{{"eventType":"playAudio","media":{{"contentType":"{content_type}","payload":"'
        )

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        text = text_only(message)
        if self._stopped:
            return []
        parsed = _messages.decode(text)
        if parsed is None:
            return []
        event = parsed.event_type
        if event == "media":
            # With both tracks the agent would hear itself.
            if not parsed.payload or parsed.track != "inbound":
                return []
            return [AudioIn(parsed.payload)]
        if event == "start":
            return [self._start(parsed)]
        if event == "stop":
            if not self._started:
                raise ProtocolError(
                    "protocol.order", "stop came before start", where="eventType", close_code=1002
                )
            self._stopped = True
            return [Ended()]
        return []

    def _start(self, message: _Message) -> Started:
        if self._started:
            raise ProtocolError("protocol.started_twice", "a second start", close_code=1002)
        metadata = message.metadata or _Metadata()
        if not metadata.call_id:
            raise ProtocolError("protocol.shape", "start names no call", where="metadata")
        if self._expected_call_id and metadata.call_id != self._expected_call_id:
            raise ProtocolError(
                "protocol.other_call",
                "the media token belongs to another call",
                where="metadata.callId",
                close_code=1008,
            )
        for track in metadata.tracks:
            told = track.media_format
            encoding = told.encoding if isinstance(told, _MediaFormat) else told
            rate_hz = told.sample_rate if isinstance(told, _MediaFormat) else 8000
            if encoding is not None and ("PCMU" not in encoding.upper() or rate_hz != 8000):
                raise ProtocolError(
                    "protocol.format",
                    f"only PCMU at 8000 Hz is taken, not {encoding[:30]} at {rate_hz} Hz",
                    where="metadata.tracks",
                )
        self._started = True
        custom = message.stream_params or {}
        return Started(
            call_id=metadata.call_id,
            channel_id=metadata.stream_id,
            from_=first_text(custom, "from"),
            to=first_text(custom, "to"),
            language=first_text(custom, "language"),
            in_format=MULAW_8K,
            out_format=self._out_format,
            custom=custom,
            account=metadata.account_id,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `playAudio`."""
        return f'{self._media_prefix}{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Clear; a hang-up and a transfer close the socket.

        Without REST the call then goes on with the BXML behind its stream.
        """
        if isinstance(command, Clear):
            return ['{"eventType":"clear"}']
        return super().command(command)


# ---- webhooks

_CALL_ID: Final = re.compile(r"[\w-]{1,128}", re.ASCII)
_STARTS: Final = frozenset({"initiate", "answer"})
MAX_PARAMS: Final = 12
MAX_PARAM_CHARS: Final = 2048


class _Told(msgspec.Struct, rename="camel"):
    event_type: str = "initiate"
    call_id: str = ""
    account_id: str = ""
    caller: str = msgspec.field(default="", name="from")
    called: str = msgspec.field(default="", name="to")


def _told(request: Request) -> _Told:
    try:
        return msgspec.json.decode(request.body, type=_Told, strict=False)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProtocolError("protocol.json", "the body is no event", where="eventType") from None


def account(request: Request) -> str:
    """The account that a webhook names."""
    try:
        return _told(request).account_id
    except ProtocolError:
        return ""


def answer(hook: Hook[BandwidthSettings]) -> WebAnswer:
    """BXML that streams the call, and something behind it that keeps it up meanwhile."""
    told = _told(hook.request)
    response = ElementTree.Element("Response")
    if told.event_type not in _STARTS:
        return _xml(response)
    if not _CALL_ID.fullmatch(told.call_id):
        raise ProtocolError("protocol.form", "the event names no call", where="callId")
    attributes = {
        "mode": "bidirectional",
        "tracks": "inbound",
        "destination": hook.media_url(told.call_id),
    }
    stream = ElementTree.SubElement(response, "StartStream", attributes)
    fields = msgspec.json.decode(hook.request.body)
    named = flat({name: fields.get(name) for name in hook.settings.variables})
    shown = {
        name: "".join(char for char in value if char.isprintable())[:MAX_PARAM_CHARS]
        for name, value in {"from": told.caller, "to": told.called, **named}.items()
    }
    for name, value in [one for one in shown.items() if one[1]][:MAX_PARAMS]:
        ElementTree.SubElement(stream, "StreamParam", {"name": name, "value": value})
    bandwidth_rest.hold(response, hook.settings)
    return _xml(response)


def _xml(response: ElementTree.Element) -> WebAnswer:
    return WebAnswer(bandwidth_rest.bxml(response), "application/xml")


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=BandwidthChannel,
    settings=lambda platforms: platforms.bandwidth,
    routes=(
        MediaRoute("/bandwidth/media/{token}", Proof.TOKEN),
        # For BXML that is not ours: `destinationUsername` and its password are the proof.
        MediaRoute("/bandwidth/media", Proof.PLATFORM),
    ),
    webhooks=(Webhook("/bandwidth/voice", answer),),
    proof=AuthorizationProof,
    rest=bandwidth_rest.rest,
    account=account,
)
