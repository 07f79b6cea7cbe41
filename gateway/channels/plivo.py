"""Plivo audio streaming, bidirectional: JSON text, audio as base64, mu-law or Linear16.

There is no message that ends a call: the socket closes. A checkpoint comes back as `playedStream`
once everything before it was played; those that a clear overtook never do. How a broken peer is
closed:

    1002  wrong order: a second `start`, or `stop` (of platforms that speak as Plivo does) before it
    1003  a binary message
    1007  not JSON, a field of the wrong type, audio that is not base64, another media format
    1008  a `start` for another call than the media token was issued for

Names: Plivo's published description and SDK.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from xml.etree import ElementTree

import msgspec
import orjson
import pybase64

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import plivo_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    Transfer,
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
from gateway.channels.event_stream import EventMessage, EventStream
from gateway.channels.plivo_proof import PlivoProof
from gateway.channels.sip import USER_TO_USER, is_sip, page_after, page_headers
from gateway.errors import ProtocolError
from gateway.platform_settings import PlivoSettings

CAPABILITIES: Final = Capabilities(
    dialect="plivo",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
)

MAX_HEADERS_CHARS: Final = 512
"""Most characters of the custom values that an answer may carry."""
_HEADER_PREFIX: Final = "X-PH-"


class _Media(msgspec.Struct):
    payload: bytes
    track: str = "inbound"


class _MediaFormat(msgspec.Struct, rename="camel"):
    encoding: str = "audio/x-mulaw"
    sample_rate: int = 8000


class _Start(msgspec.Struct, rename="camel"):
    call_id: str
    stream_id: str
    account_id: str = ""
    media_format: _MediaFormat = msgspec.field(default_factory=_MediaFormat)


class _Message(EventMessage):
    name: str = ""
    media: _Media | None = None
    start: _Start | None = None
    extra_headers: Any = None


_messages: Final = EventDecoder(_Message, ("start", "media", "dtmf", "playedStream"))


class PlivoChannel(EventStream[_Message]):
    """The codec of one stream."""

    def __init__(self, opening: Opening[PlivoSettings]) -> None:
        super().__init__(CAPABILITIES, _messages, opening.expected_call_id)
        self._settings = opening.settings
        self._stream_id = ""
        self._media_prefix = ""

    def _media(self, message: _Message) -> list[ChannelEvent]:
        media = given(message.media, "media")
        if not media.payload or media.track != "inbound":
            return []
        return [AudioIn(media.payload)]

    def _other(self, message: _Message) -> list[ChannelEvent]:
        if message.event != "playedStream" or not self._started or not message.name:
            return []
        return [MarkReached(message.name)]

    def _start(self, message: _Message) -> Started:
        start = given(message.start, "start")
        if not start.call_id or not start.stream_id:
            raise ProtocolError("protocol.shape", "start names no call or no stream", where="start")
        self._check_call("start.callId", start.call_id)
        told = start.media_format
        audio = format_of(told.encoding, told.sample_rate)
        self._stream_id = start.stream_id
        content_type = "audio/x-mulaw" if audio == MULAW_8K else "audio/x-l16"
        self._media_prefix = (
            f'{{"event":"playAudio","media":{{"contentType":"{content_type}",'
            f'"sampleRate":{audio.rate_hz},"payload":"'
        )
        custom = custom_of(message.extra_headers)
        return Started(
            call_id=start.call_id,
            channel_id=start.stream_id,
            from_=first_text(custom, "from"),
            to=first_text(custom, "to"),
            language=first_text(custom, "language"),
            in_format=audio,
            out_format=audio,
            custom=custom,
            account=start.account_id,
        )

    def audio(self, data: bytes, turn: int) -> str:
        """One `playAudio`."""
        return f'{self._media_prefix}{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Checkpoints, clear, hang-up and transfer.

        The last two close the socket: without REST the call goes on with the XML behind
        `<Stream>`.
        """
        if isinstance(command, SendMark):
            return [self._say("checkpoint", name=command.name)]
        if isinstance(command, Clear):
            return [self._say("clearAudio")]
        if isinstance(command, Hangup | Transfer):
            last: list[Wire | Close] = []
            if self._settings.stop_stream and self._stream_id:
                last.append(self._say("stop"))
            reason = "transferred" if isinstance(command, Transfer) else command.reason.value
            return [*last, Close(1000, reason)]
        return []

    def _say(self, event: str, **more: str) -> str:
        return orjson.dumps({"event": event, "streamId": self._stream_id, **more}).decode()


def format_of(encoding: str, rate_hz: int) -> AudioFormat:
    """An encoding's name and rate. Raises ProtocolError for one that is not spoken."""
    name = encoding.lower()
    if name == "audio/x-mulaw" and rate_hz == 8000:
        return MULAW_8K
    if name == "audio/x-l16" and rate_hz in (8000, 16000):
        return AudioFormat(Encoding.LINEAR16, rate_hz)
    raise ProtocolError(
        "protocol.format",
        f"{encoding[:30]} at {rate_hz} Hz is not spoken here",
        where="start.mediaFormat",
        hint="ask for the contentType audio/x-mulaw;rate=8000 or audio/x-l16 at 8000 or 16000",
    )


def custom_of(extra_headers: Any) -> dict[str, Any]:
    """Custom values as they are written: an object, JSON in a text, or `k1=v1,k2=v2`.

    Names with the platform's prefix are also found without it.
    """
    told = extra_headers
    if isinstance(told, str):
        try:
            told = orjson.loads(told)
        except orjson.JSONDecodeError:
            pairs = (re.split(r"[=:]", pair, maxsplit=1) for pair in re.split(r"[,;]", told))
            told = {
                pair[0].strip(" {}"): pair[1].strip(" {}")
                for pair in pairs
                if len(pair) == 2 and pair[0].strip(" {}")
            }
    if not isinstance(told, Mapping):
        return {}
    custom = {str(name): value for name, value in told.items()}
    for name, value in list(custom.items()):
        if name.upper().startswith(_HEADER_PREFIX):
            custom.setdefault(name[len(_HEADER_PREFIX) :], value)
    return custom


# ---- webhooks

_CALL_UUID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def account(request: Request) -> str:
    """The account that a webhook names."""
    return request.form_value("ParentAuthID") or request.query_value("ParentAuthID")


def answer(hook: Hook[PlivoSettings]) -> WebAnswer:
    """XML that streams the call both ways for as long as the stream lasts."""
    request = hook.request
    value = request.query_value if request.method == "GET" else request.form_value
    call_uuid = value("CallUUID")
    if not _CALL_UUID.fullmatch(call_uuid):
        raise ProtocolError("protocol.form", "the request names no call", where="CallUUID")
    told = {name: value(name) for name in hook.settings.variables}
    told |= {"from": value("From"), "to": value("To")}
    response = ElementTree.Element("Response")
    attributes = {
        "bidirectional": "true",
        "keepCallAlive": "true",
        "contentType": hook.settings.content_type,
    }
    if headers := _headers(told):
        attributes["extraHeaders"] = headers
    stream = ElementTree.SubElement(response, "Stream", attributes)
    stream.text = hook.media_url(call_uuid)
    return _xml(response)


def _headers(told: Mapping[str, str]) -> str:
    """What the platform carries: letters and digits only, up to a length."""
    pairs: list[str] = []
    for name, value in told.items():
        pair = f"{re.sub('[^A-Za-z0-9]', '', name)}={re.sub('[^A-Za-z0-9]', '', value)}"
        if not pair.startswith("=") and not pair.endswith("="):
            pairs.append(pair)
    while len(",".join(pairs)) > MAX_HEADERS_CHARS:
        pairs.pop(0)
    return ",".join(pairs)


def transfer(hook: Hook[PlivoSettings]) -> WebAnswer:
    """XML that dials `target`: where a transfer has sent the call; the rest are SIP headers."""
    target = hook.request.query_value("target")
    if not target:
        raise ProtocolError("protocol.form", "the address names no target", where="target")
    response = ElementTree.Element("Response")
    told = page_headers(hook.request.query)
    # The platform puts a prefix of its own before each name, and the value of a user-to-user header
    # would not survive what it does to values.
    headers = _headers(
        {name.removeprefix("X-"): text for name, text in told.items() if name != USER_TO_USER}
    )
    after = page_after(hook.request.query, hook.settings.continue_url)
    attributes = {"sipHeaders": headers, "action": after}
    dial = ElementTree.SubElement(response, "Dial", {k: v for k, v in attributes.items() if v})
    by_sip = is_sip(target)
    dialled = ElementTree.SubElement(dial, "User" if by_sip else "Number")
    dialled.text = target if by_sip else target.removeprefix("tel:")
    return _xml(response)


def _xml(response: ElementTree.Element) -> WebAnswer:
    return WebAnswer(ElementTree.tostring(response, encoding="utf-8", xml_declaration=True))


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=PlivoChannel,
    settings=lambda platforms: platforms.plivo,
    routes=(
        MediaRoute("/plivo/media/{token}", Proof.TOKEN),
        # For XML that is not ours: the platform's signature on the upgrade is the proof.
        MediaRoute("/plivo/media", Proof.PLATFORM),
    ),
    webhooks=(
        Webhook("/plivo/answer", answer, methods=("GET", "POST")),
        Webhook(plivo_rest.TRANSFER, transfer),
    ),
    proof=PlivoProof,
    secrets="auth_tokens",
    rest=plivo_rest.rest,
    account=account,
)
