"""AudioCodes VoiceAI Connect and Live Hub, bot API in streaming mode: JSON text, audio as base64.

`session.initiate` agrees on a format and is answered at once; the call starts with the activity
`start`, which holds what is known of the caller, or without it after a moment. The agent is heard
in streams: one is opened by its first audio and closed by its mark, and `playFinished` tells that
it was played. A socket that is lost may be followed by another, with `session.resume`. How a broken
peer is closed:

    1002  a second `session.initiate` or `start`
    1003  a binary message
    1007  not JSON, a field of the wrong type, audio that is not base64, no common format

Names: AudioCodes' published description and SDK.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import orjson
import pybase64

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    DtmfIn,
    Ended,
    Hangup,
    MarkReached,
    ParamsUpdated,
    Rejoin,
    Rejoined,
    Reply,
    SendDtmf,
    SendMark,
    Started,
    Transfer,
    Wire,
    close_reason,
    first_text,
    flat,
    given,
    key_of,
    text_only,
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
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.channels.event_json import EventDecoder
from gateway.channels.proofs import AuthorizationProof
from gateway.channels.sip import USER_TO_USER, named_headers, user_to_user
from gateway.errors import ProtocolError
from gateway.platform_settings import AudioCodesSettings

CAPABILITIES: Final = Capabilities(
    dialect="audiocodes",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    # Long enough for the activity that follows the session, short enough not to be dead air.
    starts_within_s=1.5,
    dtmf_out=DtmfOut.NATIVE,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.MESSAGE,
)

FORMATS: Final[Mapping[str, AudioFormat]] = {
    "raw/lpcm16": AudioFormat(Encoding.LINEAR16, 16000),
    "raw/lpcm16_8": AudioFormat(Encoding.LINEAR16, 8000),
    "raw/lpcm16_24": AudioFormat(Encoding.LINEAR16, 24000),
    "raw/mulaw": MULAW_8K,
}
"""What is spoken. The `wav/` twins begin each stream with a header, for nobody's good."""

MAX_PARTS: Final = 64
"""Most activities of one message that are looked at."""


class _Activity(msgspec.Struct, rename="camel"):
    type: str = ""
    name: str = ""
    value: Any = None
    parameters: dict[str, Any] | None = None
    activity_params: dict[str, Any] | None = None


class _Message(msgspec.Struct, rename="camel"):
    type: str
    conversation_id: str = ""
    bot_name: str = ""
    caller: str | None = None
    supported_media_formats: list[str] | None = None
    participant: str | None = None
    audio_chunk: bytes | None = None
    activities: list[_Activity] | None = None


_messages: Final = EventDecoder(
    _Message,
    (
        "session.initiate",
        "session.resume",
        "session.end",
        "connection.validate",
        "userStream.start",
        "userStream.chunk",
        "userStream.stop",
        "activities",
    ),
    "type",
)


class AudioCodesChannel(Codec):
    """The codec of one socket."""

    def __init__(self, opening: Opening[AudioCodesSettings]) -> None:
        settings = opening.settings
        super().__init__(replace(CAPABILITIES, resume_s=settings.resume_s))
        self._preferred = settings.media_format
        self._conversation = ""
        self._media_format = ""
        self._bot = ""
        self._caller = ""
        self._started = False
        self._waited = False
        self._ended = False
        self._participant: str | None = None
        self._streams = 0
        self._prefix = ""
        """Of the streams' ids: they do not come again where a socket follows another."""
        self._open = ""
        """Id of the stream that is being sent."""
        self._chunk_prefix = ""
        self._unplayed: deque[str] = deque()
        """The marks of the streams that are closed and not played yet."""

    # ---- in

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        text = text_only(message)
        if self._ended:
            return []
        told = _messages.decode(text)
        if told is None:
            return []
        match told.type:
            case "userStream.chunk":
                chunk = given(told.audio_chunk, "audioChunk")
                # Of two participants the first is the caller.
                if not chunk or (told.participant or self._participant) != self._participant:
                    return []
                return [AudioIn(chunk)]
            case "activities":
                return self._activities(given(told.activities, "activities"))
            case "userStream.start" | "userStream.stop":
                return [self._stream(told)]
            case "session.initiate":
                return self._initiate(told)
            case "session.resume":
                return [self._resume(told)]
            case "session.end":
                return self._end()
            case "connection.validate":
                return [Reply(_say("connection.validated", success=True))]
        return []

    def overdue(self) -> list[ChannelEvent]:
        """The start without the activity that would have told more."""
        self._waited = True
        if not self._conversation or self._started:
            return []
        return [self._start({})]

    def _initiate(self, told: _Message) -> list[ChannelEvent]:
        if self._conversation:
            raise ProtocolError(
                "protocol.started_twice", "a second session.initiate", close_code=1002
            )
        if not told.conversation_id:
            raise ProtocolError("protocol.shape", "no conversationId", where="conversationId")
        offered = told.supported_media_formats
        # An older platform offers nothing and takes what it is told.
        spoken = [name for name in offered or FORMATS if name in FORMATS]
        if not spoken:
            raise ProtocolError(
                "protocol.format",
                "none of the offered formats is spoken here",
                where="supportedMediaFormats",
                hint=f"one of {', '.join(FORMATS)}",
            )
        self._conversation = told.conversation_id
        self._media_format = self._preferred if self._preferred in spoken else spoken[0]
        self._bot = told.bot_name
        self._caller = told.caller or ""
        accepted = Reply(_say("session.accepted", mediaFormat=self._media_format))
        return [accepted, self._start({})] if self._waited else [accepted]

    def _start(self, parameters: Mapping[str, Any]) -> Started:
        self._started = True
        audio = FORMATS[self._media_format]
        return Started(
            call_id=self._conversation,
            from_=first_text(parameters, "caller") or self._caller,
            to=first_text(parameters, "callee"),
            language=first_text(parameters, "language", "locale"),
            in_format=audio,
            out_format=audio,
            custom={"botName": self._bot, **parameters} if self._bot else parameters,
        )

    def _resume(self, told: _Message) -> ChannelEvent:
        if self._conversation:
            raise ProtocolError("protocol.order", "a session is open already", close_code=1002)
        if not told.conversation_id:
            raise ProtocolError("protocol.shape", "no conversationId", where="conversationId")
        self._conversation = told.conversation_id
        return Rejoin(told.conversation_id)

    def _stream(self, told: _Message) -> Reply:
        if told.type == "userStream.start" and self._participant is None:
            self._participant = told.participant
        answer = "userStream.started" if told.type == "userStream.start" else "userStream.stopped"
        echoed = {"participant": told.participant} if told.participant else {}
        return Reply(_say(answer, **echoed))

    def _activities(self, activities: list[_Activity]) -> list[ChannelEvent]:
        events: list[ChannelEvent] = []
        for activity in activities[:MAX_PARTS]:
            if activity.type == "event" and not self._ended:
                events += self._activity(activity)
        return events

    def _activity(self, activity: _Activity) -> list[ChannelEvent]:
        told = activity.parameters or activity.activity_params or {}
        if activity.name == "start":
            if not self._conversation:
                raise ProtocolError("protocol.order", "start without a session", close_code=1002)
            if self._started:
                language = first_text(told, "language", "locale")
                return [ParamsUpdated(language, told)]
            return [self._start(told)]
        if not self._started:
            return []
        if activity.name == "dtmf":
            return _keys(activity.value)
        if activity.name == "playFinished":
            # It names no stream: they are played in the order in which they came.
            return [MarkReached(self._unplayed.popleft())] if self._unplayed else []
        if activity.name == "hangup":
            return self._end()
        return []

    def _end(self) -> list[ChannelEvent]:
        self._ended = True
        return [Ended()]

    # ---- out

    def audio(self, data: bytes, turn: int) -> str | tuple[str, ...]:
        """One chunk; the first of a stream behind the message that opens it."""
        if self._open:
            return f'{self._chunk_prefix}{pybase64.b64encode_as_string(data)}"}}'
        self._streams += 1
        self._open = f"{self._prefix}{self._streams}"
        self._chunk_prefix = f'{{"type":"playStream.chunk","streamId":"{self._open}","audioChunk":"'
        opening = _say("playStream.start", streamId=self._open, mediaFormat=self._media_format)
        return opening, f'{self._chunk_prefix}{pybase64.b64encode_as_string(data)}"}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, clear, keys, hang-up, transfer, and the answer to one who comes back."""
        if isinstance(command, SendMark):
            # Without an open stream there is nothing that could be told of as played.
            if self._open:
                self._unplayed.append(command.name)
            return self._stop()
        if isinstance(command, Clear):
            self._unplayed.clear()
            return [*self._stop(), _activity("abortPrompts")]
        if isinstance(command, SendDtmf):
            return [_activity("sendDtmf", {"dtmf": command.digits})]
        if isinstance(command, Rejoined):
            return self._rejoined(command)
        if isinstance(command, Hangup):
            if not self._started:
                return [Close(1000, command.reason.value)]
            return [*self._stop(), *self._hang_up(command)]
        if isinstance(command, Transfer):
            return [*self._stop(), self._transfer(command)]
        return []

    def _stop(self) -> list[Wire | Close]:
        if not self._open:
            return []
        stream, self._open = self._open, ""
        return [_say("playStream.stop", streamId=stream)]

    def _rejoined(self, command: Rejoined) -> list[Wire | Close]:
        started = command.started
        if not command.accepted or started is None:
            reason = "the conversation is not known here"
            return [_say("session.error", reason=reason), Close(1000, reason)]
        names = {audio: name for name, audio in FORMATS.items()}
        self._media_format = names[started.out_format or FORMATS[self._preferred]]
        self._prefix = f"{secrets.token_hex(4)}-"
        self._started = True
        return [_say("session.accepted", mediaFormat=self._media_format)]

    def _hang_up(self, command: Hangup) -> list[Wire | Close]:
        words: list[Wire | Close] = []
        if command.outputs:
            words.append(_activity("sendMetaData", value=command.outputs))
        words.append(_activity("hangup", {"hangupReason": command.reason.value}))
        return words

    def _transfer(self, command: Transfer) -> str:
        told: dict[str, Any] = {}
        if reason := first_text(command.metadata, "reason"):
            told["handoverReason"] = reason
        if command.target:
            target = command.target
            by_name = target.lower().startswith(("sip:", "sips:", "tel:"))
            told["transferTarget"] = target if by_name else f"tel:{target}"
        named = {**command.outputs, **flat(named_headers(command.metadata))}
        headers = [
            {"name": f"X-{_header(name)}", "value": _header(value)} for name, value in named.items()
        ]
        if uui := user_to_user(command.metadata):
            headers.append({"name": USER_TO_USER, "value": uui})
        if headers:
            told["transferSipHeaders"] = headers
        return _activity("transfer", told)

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """`session.error` with the reason, and the close."""
        reason = str(error) if isinstance(error, ProtocolError) else "internal error"
        return [
            _say("session.error", reason=close_reason(reason)),
            *super().protocol_close(error),
        ]


def _keys(value: Any) -> list[ChannelEvent]:
    """The keys of one activity: one, or several in a row."""
    digits = str(value) if isinstance(value, str | int) else ""
    if not digits:
        raise ProtocolError("protocol.dtmf", "a dtmf activity without keys", where="activities")
    return [DtmfIn("".join(key_of(digit, "activities.value").digits for digit in digits[:32]))]


def _header(text: str) -> str:
    """Text that fits into one line of a SIP message."""
    return "".join(char for char in text if char.isprintable())


def _say(kind: str, **more: Any) -> str:
    return orjson.dumps({"type": kind, **more}).decode()


def _activity(name: str, told: Mapping[str, Any] | None = None, value: Any = None) -> str:
    activity: dict[str, Any] = {"type": "event", "name": name}
    if value is not None:
        activity["value"] = value
    if told:
        activity["activityParams"] = told
    return _say("activities", activities=[activity])


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=AudioCodesChannel,
    settings=lambda platforms: platforms.audiocodes,
    routes=(MediaRoute("/audiocodes/bot", Proof.PLATFORM),),
    proof=AuthorizationProof,
    secrets="auth_tokens",
)
