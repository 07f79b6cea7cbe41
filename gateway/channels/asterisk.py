"""Asterisk chan_websocket: raw binary audio, and control as plain text or JSON.

Asterisk calls us (`/asterisk/media`), or waits for us under a connection id that an ARI or AMI
application tells at `/asterisk/connect`. The socket speaks the same both ways. The control
language is the one that Asterisk uses first; audio may come before any control.

Asterisk cuts audio into frames of its own and drops a remainder, so messages hold whole frames.
It never says goodbye: the socket closes. How a broken peer is closed:

    1002  a second MEDIA_START
    1007  control that is neither language, a format that is not spoken here

Names: Asterisk's channel driver, versions 20 to 23.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import Any, Final

import orjson

from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.channels import asterisk_ari
from gateway.channels.asterisk_control import ControlEvent, command, direction, parse
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    FlowControl,
    Hangup,
    Listen,
    MarkReached,
    PlatformFault,
    SendMark,
    Started,
    Transfer,
    Wire,
    first_text,
    flat,
    key_of,
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
    Outgoing,
    Proof,
    Request,
    WebAnswer,
    Webhook,
)
from gateway.channels.proofs import AuthorizationProof
from gateway.errors import ProtocolError
from gateway.platform_settings import AsteriskSettings

CAPABILITIES: Final = Capabilities(
    dialect="asterisk",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    # Its queue never shrinks by itself: what is sent early stays as delay until a flush.
    max_lead_ms=500,
    max_out_bytes=64000,
    binary_in=True,
    # Nothing comes while the far leg sends nothing, and old versions hang up on a ping.
    ping_allowed=False,
    starts_within_s=3.0,
    subprotocols=("media",),
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.MESSAGE,
)

_FORMATS: Final = {
    "ulaw": MULAW_8K,
    "alaw": ALAW_8K,
    **{
        f"slin{suffix}": AudioFormat(Encoding.LINEAR16, rate_hz)
        for suffix, rate_hz in (
            ("", 8000),
            ("12", 12000),
            ("16", 16000),
            ("24", 24000),
            ("32", 32000),
            ("44", 44100),
            ("48", 48000),
            ("96", 96000),
            ("192", 192000),
        )
    },
}


def format_of(name: str) -> AudioFormat:
    """An Asterisk format name. Raises ProtocolError for one that is not spoken."""
    found = _FORMATS.get(name)
    if found is None:
        raise ProtocolError(
            "protocol.format",
            f"the format {name[:40]!r} is not spoken here",
            where="format",
            hint="dial with c(ulaw), c(alaw) or c(slin16)",
        )
    return found


class AsteriskChannel(Codec):
    """The codec of one media websocket."""

    def __init__(self, opening: Opening[AsteriskSettings]) -> None:
        settings = opening.settings
        capabilities = CAPABILITIES
        if asterisk_ari.rest(settings) is not None:
            capabilities = replace(
                capabilities,
                # Ends the whole call; the socket's own command ends this leg only.
                end_out=EndOut.REST,
                transfer=TransferBy.REST if settings.stasis else TransferBy.MESSAGE,
            )
        if not settings.stasis:
            capabilities = replace(capabilities, dtmf_out=DtmfOut.INBAND)
        super().__init__(capabilities)
        self._settings = settings
        self._request = opening.request
        self._format = format_of(settings.format)
        self._json = False
        self._started = False
        self._announced = False
        self._heard = False

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        if isinstance(message, bytes):
            self._heard = True
            return [AudioIn(message)] if message else []
        event = parse(message)
        if event.name == "MEDIA_START":
            return self._start(event)
        if not self._started:
            return []
        if event.name == "MEDIA_MARK_PROCESSED":
            return [MarkReached(event.text("correlation_id"))]
        if event.name == "DTMF_END":
            return [key_of(event.fields.get("digit", ""), "digit")]
        if event.name in ("MEDIA_XOFF", "MEDIA_XON"):
            return [FlowControl(event.name == "MEDIA_XON")]
        if event.name == "ERROR":
            return [PlatformFault("asterisk", event.text("error_text")[:200])]
        return []

    def overdue(self) -> list[ChannelEvent]:
        """Audio without a MEDIA_START is a call in the configured format."""
        if self._started or not self._heard:
            return []
        self._started = True
        self._refine(plain_marks=False)
        return [self._call(f"asterisk-{secrets.token_hex(8)}", "", self._format, {})]

    def _start(self, event: ControlEvent) -> list[ChannelEvent]:
        if self._announced:
            raise ProtocolError("protocol.started_twice", "a second MEDIA_START", close_code=1002)
        self._announced = True
        self._json = event.is_json
        audio = format_of(event.text("format"))
        if self._started:
            # It comes after we went on without it.
            if audio != self._format:
                raise ProtocolError(
                    "protocol.format",
                    f"the call began in {self._settings.format}, and MEDIA_START names another"
                    " format",
                    where="format",
                    hint="set platforms.asterisk.format to what is dialled with c(…)",
                )
            return []
        self._started = True
        self._format = audio
        channel_id = event.text("channel_id")
        self._refine(_size(event), plain_marks=bool(channel_id))
        variables = event.fields.get("channel_variables")
        custom = dict(variables) if isinstance(variables, dict) else {}
        # Before 22.7 there is no id. The channel's name is unique too, unlike connection_id.
        call_id = channel_id or event.text("channel") or event.text("connection_id")
        if not call_id:
            raise ProtocolError("protocol.shape", "MEDIA_START names no channel", where="channel")
        return [self._call(call_id, channel_id or call_id, audio, custom)]

    def _refine(self, multiple: int = 1, *, plain_marks: bool) -> None:
        """MARK_MEDIA came with JSON control, in 22.8; without a channel id it is 22.6."""
        self._capabilities = replace(
            self._capabilities,
            marks=Marks.NATIVE if self._json or plain_marks else Marks.EMULATED,
            frame_multiple_bytes=multiple,
            ping_allowed=self._json,
        )

    def _call(
        self, call_id: str, channel_id: str, audio: AudioFormat, custom: dict[str, Any]
    ) -> Started:
        if self._settings.trust_query:
            told = {name: values[0] for name, values in self._request.query.items() if values}
            told.pop("access_token", None)
            custom = {**told, **custom}
        # An application that asked us to connect has told about the call itself.
        custom = {**_told(self._request), **custom}
        custom.pop("connection_id", None)
        return Started(
            call_id=call_id,
            channel_id=channel_id,
            from_=first_text(custom, "from", "FROM", "CALLERID"),
            to=first_text(custom, "to", "TO", "DNID"),
            language=first_text(custom, "language", "LANGUAGE"),
            in_format=audio,
            out_format=audio,
            custom=custom,
        )

    def audio(self, data: bytes, turn: int) -> bytes:
        """The frames as they are."""
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, flush, directions and hang-up; behind the last the dialplan goes on.

        Playing is never paused: a pause inside a sound clicks. Where the agent falls silent for a
        moment, its audio is flushed, fades out, and is sent again from what was heard.
        """
        if isinstance(command, SendMark):
            return [self._say("MARK_MEDIA", command.name)]
        if isinstance(command, Clear):
            return [self._say("FLUSH_MEDIA")]
        if isinstance(command, Listen):
            # Plain control has no word for it, and versions before 22.9 pass it over.
            return [direction(both=command.wanted)] if self._json else []
        if isinstance(command, Hangup | Transfer):
            return [self._say("HANGUP")]
        return []

    def _say(self, name: str, correlation_id: str = "") -> str:
        return command(name, correlation_id, as_json=self._json)


def _size(event: ControlEvent) -> int:
    """`optimal_frame_size`. Raises ProtocolError where media are passed through as they are."""
    try:
        size = int(event.fields.get("optimal_frame_size", 1))
    except (TypeError, ValueError):
        size = 0
    if not 0 < size <= CAPABILITIES.max_out_bytes:
        raise ProtocolError(
            "protocol.format",
            "MEDIA_START names no frame size that can be spoken",
            where="optimal_frame_size",
            hint="dial with c(ulaw), c(alaw) or c(slin16), and without p",
        )
    return size


def _told(request: Request) -> dict[str, str]:
    """The fields of a request's body, a form or a JSON object. Raises ProtocolError."""
    if not request.header("content-type").startswith("application/json"):
        return {name: values[0] for name, values in request.form.items() if values}
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise ProtocolError("protocol.json", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProtocolError("protocol.shape", "the body is not a JSON object")
    return flat(body)


_CONNECTION_ID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def connect(hook: Hook[AsteriskSettings]) -> WebAnswer:
    """Asterisk waits for us: open its socket. The body (form or JSON) names the `connection_id`.

    Its other fields are custom data of the call.
    """
    connection_id = _told(hook.request).get("connection_id", "")
    if not _CONNECTION_ID.fullmatch(connection_id):
        raise ProtocolError("protocol.form", "the body names no connection", where="connection_id")
    base = hook.settings.media_url.rstrip("/")
    if not base:
        raise ProtocolError(
            "protocol.no_media_url",
            "where Asterisk waits is not configured",
            where="platforms.asterisk.media_url",
            hint="ws://asterisk:8088/media",
        )
    return WebAnswer(
        orjson.dumps({"connection_id": connection_id}),
        "application/json",
        connect=Outgoing(f"{base}/{connection_id}", subprotocols=("media",)),
    )


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=AsteriskChannel,
    settings=lambda platforms: platforms.asterisk,
    routes=(MediaRoute("/asterisk/media", Proof.PLATFORM),),
    webhooks=(Webhook("/asterisk/connect", connect),),
    proof=AuthorizationProof,
    rest=asterisk_ari.rest,
)
