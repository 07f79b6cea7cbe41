"""Sinch Voice Stream: JSON commands, Linear16 (little endian) as binary messages.

The answer to the callback of an incoming call connects it to a media socket, which comes without
headers: a one-use token in its path says whose it is. On the socket the platform asks with
`connect` and waits for `answer`; a call for which there is no room is told `busy`, a peer that
breaks the protocol `reject`. A lost socket is the end of the call. There are no marks, and no keys
come. How a broken peer is closed:

    1002  a second `connect`, audio or another command before the first
    1007  not JSON, a field of the wrong type, another codec or rate

Names: Sinch's published description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import orjson

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels import sinch_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    EndReason,
    Hangup,
    Reply,
    Started,
    Transfer,
    Wire,
    first_text,
    flat,
)
from gateway.channels.capabilities import Capabilities, ClearBy, DtmfOut, EndOut, Marks
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
from gateway.channels.sinch_proof import SinchProof
from gateway.errors import ProtocolError
from gateway.platform_settings import SinchSettings

CAPABILITIES: Final = Capabilities(
    dialect="sinch",
    marks=Marks.EMULATED,
    clear=ClearBy.NATIVE,
    # It keeps 5 MB and drops the oldest beyond: never more than a second of it is used.
    max_lead_ms=1000,
    # 96000 Hz: 20 ms are 3840 bytes, and a peer may gather some.
    max_message_bytes=1 << 18,
    binary_in=True,
    dtmf_in=False,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.REST,
)

MIN_RATE_HZ: Final = 8000
MAX_RATE_HZ: Final = 96000


class _Message(msgspec.Struct, rename="camel"):
    command: str
    call_id: str = ""
    application_key: str = ""
    codec: str = "PCM"
    sample_rate: int = 8000
    call_headers: dict[str, Any] | list[dict[str, Any]] | None = None


_messages: Final = EventDecoder(_Message, ("connect", "heartbeat"), "command")


class SinchChannel(Codec):
    """The codec of one stream."""

    def __init__(self, opening: Opening[SinchSettings]) -> None:
        super().__init__(CAPABILITIES)
        self._call_id = opening.expected_call_id
        self._started = False
        self._answering = False
        """`answer` is on its way, after what `Started` brings about."""

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        self._answering = False
        if isinstance(message, bytes):
            if not self._started:
                raise ProtocolError("protocol.order", "audio before connect", close_code=1002)
            return [AudioIn(message)] if message else []
        told = _messages.decode(message)
        if told is None:
            return []
        if told.command == "connect":
            started = self._start(told)
            self._answering = True
            return [started, Reply('{"command":"answer"}')]
        if not self._started:
            raise ProtocolError("protocol.order", "a command before connect", close_code=1002)
        if told.command == "heartbeat":
            return [Reply('{"command":"heartbeat"}')]
        return []

    def _start(self, told: _Message) -> Started:
        if self._started:
            raise ProtocolError("protocol.started_twice", "a second connect", close_code=1002)
        if not told.call_id:
            raise ProtocolError("protocol.shape", "connect names no call", where="callId")
        rate_hz = told.sample_rate
        whole = rate_hz % 50 == 0
        if told.codec.upper() != "PCM" or not (MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ and whole):
            raise ProtocolError(
                "protocol.format",
                f"{told.codec[:20]} at {rate_hz} Hz is not spoken here",
                where="sampleRate",
                hint=f"ask for PCM at {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz",
            )
        self._started = True
        custom = _headers(told.call_headers)
        audio = AudioFormat(Encoding.LINEAR16, rate_hz)
        return Started(
            # What the callback named: its leg is the one that REST requests are about.
            call_id=self._call_id or told.call_id,
            channel_id=told.call_id,
            from_=first_text(custom, "from", "From"),
            to=first_text(custom, "to", "To"),
            language=first_text(custom, "language"),
            in_format=audio,
            out_format=audio,
            custom=custom,
            account=told.application_key,
        )

    def audio(self, data: bytes, turn: int) -> bytes:
        """Raw samples."""
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Clear; a hang-up and a transfer close the socket, which ends the call."""
        if isinstance(command, Clear):
            return ['{"command":"clear"}']
        if isinstance(command, Hangup):
            closed = Close(1000, command.reason.value)
            if self._answering and command.reason is EndReason.LIMIT:
                return ['{"command":"busy"}', closed]
            return [closed]
        if isinstance(command, Transfer):
            return [Close(1000, "transferred")]
        return []

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """`reject` where the call was not answered yet, and the close."""
        closing = super().protocol_close(error)
        return closing if self._started else ['{"command":"reject"}', *closing]


def _headers(told: dict[str, Any] | list[dict[str, Any]] | None) -> dict[str, Any]:
    """Custom values, as an object or as a list of keys and values."""
    if isinstance(told, dict):
        return told
    return {str(one["key"]): one.get("value") for one in told or () if "key" in one}


# ---- webhooks

_CALL_ID: Final = re.compile(r"[\w.-]{1,128}", re.ASCII)


class _To(msgspec.Struct):
    endpoint: str = ""


class _Event(msgspec.Struct, rename="camel"):
    event: str
    # All small here, unlike in the stream's own messages.
    call_id: str = msgspec.field(default="", name="callid")
    application_key: str = ""
    cli: str = ""
    to: _To | None = None
    call_headers: dict[str, Any] | list[dict[str, Any]] | None = None


_callbacks: Final = EventDecoder(_Event, ("ice",))


def account(request: Request) -> str:
    """The application that a callback names."""
    try:
        told = _callbacks.decode(request.body.decode("utf-8", "replace"))
    except ProtocolError:
        return ""
    return told.application_key if told is not None else ""


def answer(hook: Hook[SinchSettings]) -> WebAnswer:
    """The instruction that streams an incoming call; after other events the call goes on."""
    body = hook.request.body.decode("utf-8", "replace")
    told = _callbacks.decode(body)
    if told is None or told.event != "ice":
        return _svaml({"name": "continue"})
    if not _CALL_ID.fullmatch(told.call_id):
        raise ProtocolError("protocol.form", "the event names no call", where="callid")
    fields = msgspec.json.decode(body)
    headers = {
        # A caller's own client may have set these: they do not replace what the platform says.
        **_headers(told.call_headers),
        **{name: fields[name] for name in hook.settings.variables if name in fields},
        "from": told.cli,
        "to": told.to.endpoint if told.to is not None else "",
    }
    return _svaml(
        {
            "name": "connectStream",
            "destination": {"type": "Websocket", "endpoint": hook.media_url(told.call_id)},
            "streamingOptions": {"version": 1, "sampleRate": hook.settings.rate_hz},
            "callHeaders": [{"key": key, "value": value} for key, value in flat(headers).items()],
        }
    )


def _svaml(action: Mapping[str, Any]) -> WebAnswer:
    return WebAnswer(orjson.dumps({"instructions": [], "action": action}), "application/json")


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=SinchChannel,
    settings=lambda platforms: platforms.sinch,
    routes=(
        MediaRoute("/sinch/media/{token}", Proof.TOKEN),
        # For instructions that are not ours: credentials that a proxy adds are the proof.
        MediaRoute("/sinch/media", Proof.PLATFORM),
    ),
    webhooks=(Webhook("/sinch/voice", answer),),
    proof=SinchProof,
    secrets="api_key and api_secret",
    rest=sinch_rest.rest,
    account=account,
)
