"""Genesys Cloud Audio Connector (AudioHook protocol "2"): JSON control, raw binary audio.

Every text message of either side is numbered without a gap and belongs to the session that its
`id` names. `open` is answered at once; `close` too. The gateway never closes first: it asks for
it (`disconnect`), and what the agent leaves behind travels as `outputVariables`, where the flow
finds it. A connection probe (null ids) is answered and starts no call. How a broken peer is told,
by `disconnect` with the reason `error` and then the close:

    1002  a gap in the numbers, another session, a second `open`, anything before `open`
    1007  not JSON, a field of the wrong type, no media that is spoken here

Pauses come from the platform, which then plays nothing (`paused`, `resumed`), or are asked for
where the agent does not want to hear the caller (`pause`, `resume`). Names: Genesys' published
protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import orjson

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    Ended,
    EndReason,
    Hangup,
    Listen,
    ParamsUpdated,
    Paused,
    PlatformFault,
    PlaybackIdle,
    PlaybackStarted,
    Reply,
    Resumed,
    Started,
    Transfer,
    Wire,
    first_text,
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
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.channels.genesys_proof import GenesysProof
from gateway.channels.outputs import fitting, json_size
from gateway.errors import ProtocolError
from gateway.platform_settings import GenesysSettings

CAPABILITIES: Final = Capabilities(
    dialect="genesys",
    marks=Marks.IDLE,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    max_lead_ms=1000,
    # One message more than the one that plays: a late one leaves no hole.
    min_lead_ms=500,
    # About five messages a second are taken; frames of 20 ms would be fifty.
    min_message_ms=240,
    max_out_bytes=64000,
    binary_in=True,
    # It pings by message every five seconds, also while the caller is on hold.
    receive_idle_s=20.0,
    dtmf_out=DtmfOut.INBAND,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.OUTPUTS,
)

VERSION: Final = "2"
NULL_ID: Final = "00000000-0000-0000-0000-000000000000"
MAX_TEXT_BYTES: Final = 65536
OUTPUT_BYTES: Final = MAX_TEXT_BYTES - 2048
"""Most bytes of output variables in one message."""

_FORMATS: Final[Mapping[str, AudioFormat]] = {
    "PCMU": MULAW_8K,
    # Little endian, as the platform's own server reads it.
    "L16": AudioFormat(Encoding.LINEAR16, 8000),
}
_CLOSE_REASONS: Final = {
    "error": EndReason.ERROR,
    "reconnect": EndReason.TRANSPORT_LOST,
}


class _Message(msgspec.Struct):
    type: str
    seq: int
    id: str
    version: str
    serverseq: int = 0
    parameters: dict[str, Any] = {}


class _Media(msgspec.Struct):
    """One offer of `open.media`."""

    type: str
    format: str
    rate: int
    channels: list[str]

    @property
    def preference(self) -> tuple[bool, int]:
        """Smaller is better: mu-law, and the caller alone."""
        return (self.format != "PCMU", len(self.channels))

    @property
    def spoken(self) -> bool:
        """Whether the caller's channel is in it, in a format of ours."""
        audio = _FORMATS.get(self.format)
        return (
            self.type == "audio"
            and audio is not None
            and self.rate == audio.rate_hz
            and "external" in self.channels
            and len(self.channels) <= 2
        )


_decode = msgspec.json.Decoder(_Message).decode


class GenesysChannel(Codec):
    """The codec of one session."""

    def __init__(self, opening: Opening[GenesysSettings]) -> None:
        settings = opening.settings
        super().__init__(replace(CAPABILITIES, min_message_ms=settings.message_ms))
        self._settings = settings
        self._organization = opening.request.header("audiohook-organization-id")
        self._connector = opening.request.values.get("connector", "")
        self._id = opening.request.header("audiohook-session-id")
        self._client_seq = 0
        self._server_seq = 0
        self._opened = False
        self._probe = False
        self._closed = False
        self._leaving = False
        """We have asked the platform to close."""
        self._paused = False
        self._asked = False
        """The pause is ours: the caller is not on hold, and hears the agent."""
        self._channels = 1
        self._external = 0
        self._carry = b""
        self._sent = False
        """Audio was sent since the last clear."""
        self._sample_bytes = 1
        self._handlers: dict[str, Callable[[dict[str, Any]], list[ChannelEvent]]] = {
            "ping": lambda _: [self._reply("pong")],
            "close": self._close,
            "dtmf": lambda told: [key_of(told.get("digit", ""), "parameters.digit")],
            "paused": self._pause,
            "resumed": self._resume,
            "update": self._update,
            "playback_started": lambda _: [PlaybackStarted()],
            "playback_completed": lambda _: [PlaybackIdle()],
            "error": _fault,
        }

    # ---- in

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        if isinstance(message, bytes):
            return self._audio_in(message)
        told = _parse(message)
        self._number(told)
        if told.type == "open":
            return self._open(told)
        if not self._opened:
            raise ProtocolError(
                "protocol.order", "the first message is not open", where="type", close_code=1002
            )
        handler = self._handlers.get(told.type)
        if handler is None or (self._probe and told.type not in ("ping", "close")):
            return []
        return handler(told.parameters)

    def _number(self, told: _Message) -> None:
        expected = self._client_seq + 1
        if told.seq != expected or told.serverseq > self._server_seq:
            raise ProtocolError(
                "protocol.sequence",
                f"message {expected} was due, {told.seq} came (we had sent {self._server_seq}, "
                f"it has seen {told.serverseq})",
                where="seq",
                close_code=1002,
            )
        if self._id and told.id != self._id:
            raise ProtocolError(
                "protocol.other_call", "a message of another session", where="id", close_code=1002
            )
        self._client_seq = told.seq
        self._id = told.id

    def _open(self, told: _Message) -> list[ChannelEvent]:
        if self._opened:
            raise ProtocolError("protocol.started_twice", "a second open", close_code=1002)
        parameters = told.parameters
        organization = first_text(parameters, "organizationId")
        if self._organization and organization != self._organization:
            raise ProtocolError(
                "protocol.other_call",
                "open names another organisation than the request",
                where="organizationId",
                close_code=1002,
            )
        participant = _mapping(parameters.get("participant"))
        conversation = first_text(parameters, "conversationId")
        self._opened = True
        offer, media = _choose(parameters.get("media"))
        answer: dict[str, Any] = {"media": [offer]}
        if parameters.get("supportedLanguages") is True and self._settings.languages:
            answer["supportedLanguages"] = self._settings.languages
        opened = self._reply("opened", answer)
        if conversation == NULL_ID and participant.get("id") == NULL_ID:
            self._probe = True
            return [opened]
        audio = _FORMATS[media.format]
        self._channels = len(media.channels)
        self._external = media.channels.index("external")
        self._sample_bytes = audio.sample_bytes
        known = {
            "conversationId": conversation,
            "participantId": first_text(participant, "id"),
            "aniName": first_text(participant, "aniName"),
            "connector": self._connector,
        }
        return [
            opened,
            Started(
                call_id=told.id,
                channel_id=conversation,
                from_=first_text(participant, "ani").removeprefix("tel:"),
                to=first_text(participant, "dnis").removeprefix("tel:"),
                language=first_text(parameters, "language"),
                in_format=audio,
                out_format=audio,
                custom={
                    **{name: value for name, value in known.items() if value},
                    **_mapping(parameters.get("customConfig")),
                    **_mapping(parameters.get("inputVariables")),
                },
                account=organization,
            ),
        ]

    def _audio_in(self, data: bytes) -> list[ChannelEvent]:
        if not self._opened:
            raise ProtocolError(
                "protocol.order", "audio came before open", where="binary", close_code=1002
            )
        if self._paused or self._closed or self._probe or not data:
            return []
        if self._channels == 1:
            return [AudioIn(data)]
        # Two channels take turns sample by sample; a cut frame goes on with the next message.
        data = self._carry + data
        whole = len(data) - len(data) % (2 * self._sample_bytes)
        data, self._carry = data[:whole], data[whole:]
        samples = memoryview(data).cast("B" if self._sample_bytes == 1 else "H")
        caller = samples[self._external :: 2].tobytes()
        return [AudioIn(caller)] if caller else []

    def _pause(self, _told: dict[str, Any]) -> list[ChannelEvent]:
        self._paused = True
        return [] if self._asked else [Paused()]

    def _resume(self, _told: dict[str, Any]) -> list[ChannelEvent]:
        self._paused = False
        return [Resumed()]

    def _update(self, told: dict[str, Any]) -> list[ChannelEvent]:
        return [self._reply("updated"), ParamsUpdated(language=first_text(told, "language"))]

    def _close(self, told: dict[str, Any]) -> list[ChannelEvent]:
        if self._closed:
            return []
        self._closed = True
        closed = self._reply("closed")
        if self._probe or self._leaving:
            # The platform closes the socket now; nobody else has to know.
            return [closed]
        reason = first_text(told, "reason")
        return [closed, Ended(_CLOSE_REASONS.get(reason, EndReason.REMOTE_HANGUP))]

    # ---- out

    def _say(self, kind: str, parameters: Mapping[str, Any] | None = None) -> str:
        self._server_seq += 1
        return orjson.dumps(
            {
                "version": VERSION,
                "id": self._id,
                "type": kind,
                "seq": self._server_seq,
                "clientseq": self._client_seq,
                # Never left out: the platform refuses a message without it.
                "parameters": parameters or {},
            }
        ).decode()

    def _reply(self, kind: str, parameters: Mapping[str, Any] | None = None) -> Reply:
        return Reply(self._say(kind, parameters))

    def audio(self, data: bytes, turn: int) -> bytes:
        """The audio as it is."""
        self._sent = True
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Clear, pauses, hang-up and transfer; the last two ask the platform to close.

        A clear with nothing sent since the last one is not repeated: messages are few here.
        """
        if isinstance(command, Clear):
            if not self._sent:
                return []
            self._sent = False
            return [self._say("event", {"entities": [{"type": "barge_in", "data": {}}]})]
        if isinstance(command, Listen):
            self._asked = not command.wanted
            return [self._say("resume" if command.wanted else "pause")]
        if isinstance(command, Hangup):
            failed = command.reason is EndReason.ERROR
            outputs = {
                self._settings.action_output: "error" if failed else "hangup",
                **command.outputs,
            }
            return self._leave("error" if failed else "completed", outputs)
        if isinstance(command, Transfer):
            outputs = {
                **command.outputs,
                self._settings.action_output: "transfer",
                self._settings.target_output: command.target,
            }
            return self._leave("completed", outputs)
        return []

    def _leave(self, reason: str, outputs: dict[str, str]) -> list[Wire | Close]:
        if not self._opened or self._closed or self._leaving:
            return [Close(1000, reason)]
        self._leaving = True
        told = {"reason": reason, "outputVariables": fitting(outputs, json_size, OUTPUT_BYTES)}
        return [self._say("disconnect", told)]

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """`disconnect` with what is wrong, and the close."""
        closes = super().protocol_close(error)
        if not self._id or self._closed:
            return closes
        info = error.message if isinstance(error, ProtocolError) else "internal error"
        return [self._say("disconnect", {"reason": "error", "info": info[:500]}), *closes]


def _parse(message: str) -> _Message:
    try:
        told = _decode(message)
    except msgspec.ValidationError as error:
        raise ProtocolError("protocol.shape", f"message has a wrong shape: {error}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProtocolError("protocol.json", f"message is not JSON: {error}") from None
    if told.version != VERSION:
        raise ProtocolError("protocol.version", 'only version "2" is spoken', where="version")
    return told


def _choose(offers: object) -> tuple[dict[str, Any], _Media]:
    """The best offer, as it was written and as it was read. Raises ProtocolError without one."""
    found: list[tuple[_Media, dict[str, Any]]] = []
    for offer in offers if isinstance(offers, list) else []:
        try:
            media = msgspec.convert(offer, _Media)
        except msgspec.ValidationError:
            continue
        if media.spoken:
            found.append((media, offer))
    if not found:
        raise ProtocolError(
            "protocol.format",
            "none of the media is spoken here",
            where="parameters.media",
            hint="PCMU or L16 at 8000 Hz with the external channel",
        )
    media, offer = min(found, key=lambda one: one[0].preference)
    return offer, media


def _fault(told: dict[str, Any]) -> list[ChannelEvent]:
    code, message = told.get("code", ""), told.get("message", "")
    return [PlatformFault(str(code)[:20], str(message)[:200])]


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=GenesysChannel,
    settings=lambda platforms: platforms.genesys,
    routes=(
        MediaRoute("/genesys/audiohook", Proof.PLATFORM),
        # The platform appends the connector's id to the base address.
        MediaRoute("/genesys/audiohook/{connector}", Proof.PLATFORM),
    ),
    proof=GenesysProof,
    secrets="clients",
    account=lambda request: request.header("audiohook-organization-id"),
)
