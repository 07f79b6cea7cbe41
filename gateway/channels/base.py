"""What every telephone dialect has in common: events in, commands out.

A dialect is a sans-IO codec: wire messages in give `ChannelEvent`s, `ChannelCommand`s give wire
messages out. It keeps no clock, no socket and no task. What it can do is said by its record
(`gateway.channels.capabilities`); where it is met and what opens it, by its entry in the registry
(`gateway.channels.dialect`).

What a codec can leave to others: audio that comes before `Started` is kept, frames are gathered
and padded as the record says, marks of cleared audio are known by their generation, marks that
never come back time out, keys that come twice are taken once, unknown custom parameters do not
reach the agent, and `Ended` is told once however often the platform says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import orjson

from gateway.audio.formats import AudioFormat
from gateway.channels.capabilities import Capabilities
from gateway.errors import ProtocolError

T = TypeVar("T")

Wire = str | bytes
"""One websocket message: text or binary."""


class EndReason(StrEnum):
    """Why a call ended; the values of `call_ended.reason`."""

    COMPLETED = "completed"
    REMOTE_HANGUP = "remote_hangup"
    TRANSFERRED = "transferred"
    ERROR = "error"
    TRANSPORT_LOST = "transport_lost"
    SHUTDOWN = "shutdown"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Close:
    """What the transport does after the last message: the close code and reason."""

    code: int = 1000
    reason: str = ""


# ---- events: channel to core


@dataclass(frozen=True, slots=True)
class Started:
    """The call exists: identity, formats and what the platform said of it. Fires once."""

    call_id: str
    channel_id: str = ""
    from_: str = ""
    to: str = ""
    language: str = ""
    in_format: AudioFormat | None = None
    out_format: AudioFormat | None = None
    custom: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""
    """Full session resource name where the dialect has one."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Session configuration that travels on to the runtime (entryAgent, deployment, …)."""
    account: str = ""
    """The platform's account or organisation: counts calls, and addresses REST requests."""


@dataclass(frozen=True, slots=True)
class AudioIn:
    """Caller audio of any length, still encoded in `Started.in_format`, without a header.

    Linear16 is little endian; half a sample at the end is carried to the next event.
    """

    data: bytes


@dataclass(frozen=True, slots=True)
class DtmfIn:
    """One or more keys pressed, `0-9 * # A-D`."""

    digits: str


@dataclass(frozen=True, slots=True)
class MarkReached:
    """A mark of ours came back: played, or cleared (the engine knows by its generation)."""

    name: str


@dataclass(frozen=True, slots=True)
class FlowControl:
    """The platform's buffer is full (`can_send` false) or has room again.

    While it is full no frame, and no mark, is sent; nothing is lost.
    """

    can_send: bool


@dataclass(frozen=True, slots=True)
class Paused:
    """The platform holds the caller: nothing is played, and silence means nothing."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """The caller is back from a hold."""


@dataclass(frozen=True, slots=True)
class PlaybackStarted:
    """The platform has begun to play what it was sent."""


@dataclass(frozen=True, slots=True)
class PlaybackIdle:
    """The platform has played everything that it was sent (see `Marks.IDLE`)."""


@dataclass(frozen=True, slots=True)
class ParamsUpdated:
    """The platform changed what it said at the start; empty fields stay as they were."""

    language: str = ""
    custom: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlatformFault:
    """The platform tells of an error of its own or of ours; the call goes on.

    `code`: the platform's, a few characters; `message`: its words, which hold nothing of the
    caller's.
    """

    code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the dialect itself has to answer, at once and whatever the engine does.

    For handshakes, pongs and acknowledgements; sent in its place among the events.
    """

    message: Wire | Close


@dataclass(frozen=True, slots=True)
class Rejoin:
    """The first message of a new socket that goes on with a call (`Capabilities.resume_s`).

    The answer is the command `Rejoined`.
    """

    call_id: str


@dataclass(frozen=True, slots=True)
class TextIn:
    """Text typed by the caller's client; `will_continue`: a fragment, more follows."""

    text: str
    will_continue: bool = False


@dataclass(frozen=True, slots=True)
class EventIn:
    """A named event from the client, for the runtime."""

    name: str


@dataclass(frozen=True, slots=True)
class VariablesIn:
    """Session variables from the client."""

    variables: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResponsesIn:
    """Answers of the client to `toolCalls`, as the wire has them."""

    tool_responses: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Ended:
    """The platform ended the call in its own words (a lost socket is the transport's to tell)."""

    reason: EndReason = EndReason.REMOTE_HANGUP


ChannelEvent = (
    Started
    | AudioIn
    | DtmfIn
    | MarkReached
    | FlowControl
    | Paused
    | Resumed
    | PlaybackStarted
    | PlaybackIdle
    | ParamsUpdated
    | PlatformFault
    | Reply
    | Rejoin
    | TextIn
    | EventIn
    | VariablesIn
    | ToolResponsesIn
    | Ended
)


# ---- commands: core to channel


def flat(params: object) -> dict[str, str]:
    """The values of a mapping as text: text as it is, the rest as JSON; null is left out."""
    if not isinstance(params, Mapping):
        return {}
    return {
        str(name): value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
        for name, value in params.items()
        if value is not None
    }


@dataclass(frozen=True, slots=True)
class SendMark:
    """Ask the platform to say when everything before this was played."""

    name: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Drop everything that the platform has buffered; `barge_in`: because the caller spoke."""

    barge_in: bool = True


@dataclass(frozen=True, slots=True)
class AgentText:
    """What the agent says, as text."""

    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class AgentPayload:
    """A custom payload for the client."""

    payload: Mapping[str, Any]
    turn: int


@dataclass(frozen=True, slots=True)
class AgentToolCalls:
    """Client functions to run, as the wire has them."""

    tool_calls: Sequence[Mapping[str, Any]]
    turn: int


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    """The agent's turn is complete and its audio was sent."""

    turn: int


@dataclass(frozen=True, slots=True)
class UserTranscript:
    """What the recogniser understood in this turn so far."""

    text: str


@dataclass(frozen=True, slots=True)
class Hangup:
    """End the call. `metadata` is the runtime's `endSession.metadata`."""

    reason: EndReason
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, str]:
        """Its `params` as flat text, for dialects that carry data back."""
        return flat(self.metadata.get("params"))


@dataclass(frozen=True, slots=True)
class Transfer:
    """Hand the call on to `target`; the codec's words are its last.

    An empty target: the platform knows whom to hand over to. With `TransferBy.REST` the session
    has made the request already, and the codec only closes.
    """

    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, str]:
        """The metadata's `params` as flat text, for dialects that carry data along."""
        return flat(self.metadata.get("params"))


@dataclass(frozen=True, slots=True)
class SendDtmf:
    """Press these keys, `0-9 * # A-D`, towards the far end (`DtmfOut.NATIVE` only)."""

    digits: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Whether the caller's audio is wanted from here on; keys are in any case.

    For platforms that can be asked to keep it. What still comes is not listened to.
    """

    wanted: bool


@dataclass(frozen=True, slots=True)
class Rejoined:
    """Whether the call of a `Rejoin` is still there; the codec answers in its words.

    `started` is how the call had started: the codec goes on with its formats and ids.
    """

    accepted: bool
    started: Started | None = None


@dataclass(frozen=True, slots=True)
class GoAway:
    """Tell the client that this server is going away."""


ChannelCommand = (
    SendMark
    | Clear
    | AgentText
    | AgentPayload
    | AgentToolCalls
    | TurnCompleted
    | UserTranscript
    | Hangup
    | Transfer
    | SendDtmf
    | Listen
    | Rejoined
    | GoAway
)


MAX_REASON_BYTES = 123
"""Longest close reason: a websocket control frame holds 125 bytes, two of them the code."""


def close_reason(text: str) -> str:
    """`text` cut to what fits a close frame, never inside a character."""
    return text.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")


class Channel(Protocol):
    """One call's codec of one dialect. `Codec` has the methods that many dialects share."""

    @property
    def capabilities(self) -> Capabilities:
        """What this dialect can do; may change until `Started` was returned."""
        ...

    def opened(self) -> list[ChannelEvent]:
        """What can be told before the first message (`Started` where the upgrade said all)."""
        ...

    def overdue(self) -> list[ChannelEvent]:
        """What to assume where nothing has started the call within `starts_within_s`."""
        ...

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one wire message. Raises ProtocolError where the peer broke the protocol."""
        ...

    def audio(self, data: bytes, turn: int) -> Wire | tuple[Wire, ...]:
        """The wire message for audio in `Started.out_format`, sized as the record says. Hot path.

        Several where a stretch of audio has to be opened first. Called after `Started` only.
        """
        ...

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """The wire messages for a command; empty where the dialect has no words for it.

        `Hangup` and `Transfer` give everything that ends the call, up to a `Close` if the gateway
        is the one to close; without one the session closes once the peer had time to do so.
        """
        ...

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """What to send and how to close after the peer broke the protocol."""
        ...


class Codec:
    """What most dialects do alike; a codec of its own inherits and overrides."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities

    @property
    def capabilities(self) -> Capabilities:
        """What this dialect can do."""
        return self._capabilities

    def opened(self) -> list[ChannelEvent]:
        """Nothing: the first message starts the call."""
        return []

    def overdue(self) -> list[ChannelEvent]:
        """Nothing is assumed."""
        return []

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Only the close at the end: what else a dialect can say it says itself."""
        if isinstance(command, Hangup):
            return [Close(1000, command.reason.value)]
        if isinstance(command, Transfer):
            return [Close(1000, "transferred")]
        return []

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """Only a close: the dialect has no message for errors."""
        if isinstance(error, ProtocolError):
            return [Close(error.close_code, close_reason(str(error)))]
        return [Close(1011, "internal error")]


def given(part: T | None, name: str) -> T:
    """A part that its event must have. Raises ProtocolError."""
    if part is None:
        raise ProtocolError("protocol.shape", f"a {name} event without {name}", where=name)
    return part


def first_text(custom: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds text; empty where none does."""
    for name in names:
        value = custom.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


DTMF_KEYS = frozenset("0123456789*#ABCD")


def key_of(value: object, where: str) -> DtmfIn:
    """One key as platforms write it (text or number, either case). Raises ProtocolError."""
    digit = str(value).upper()
    if len(digit) != 1 or digit not in DTMF_KEYS:
        raise ProtocolError("protocol.dtmf", "not a telephone key", where=where)
    return DtmfIn(digit)


def text_only(message: Wire) -> str:
    """A message of a dialect without binary ones. Raises ProtocolError (1003)."""
    if not isinstance(message, str):
        raise ProtocolError(
            "protocol.binary", "a binary message where text is spoken", close_code=1003
        )
    return message
