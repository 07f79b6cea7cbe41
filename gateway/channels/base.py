"""What every telephone dialect has in common: events in, commands out, and what it can do.

A dialect is a sans-IO codec: wire messages in give `ChannelEvent`s, `ChannelCommand`s give wire
messages out. It keeps no clock, no socket and no task. The engine asks the `Capabilities`
record and never a dialect's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from gateway.audio.formats import AudioFormat

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


class Marks(StrEnum):
    """How a platform tells that audio was played."""

    NATIVE = "native"
    EMULATED = "emulated"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a dialect can do. The engine decides by this record alone."""

    dialect: str
    marks: Marks = Marks.EMULATED
    native_clear: bool = False
    max_lead_ms: int = 200
    kickoff: bool = True
    """True where the gateway greets (event `session start`); false where the client kicks off."""
    continuous: bool = False
    """True where silence must be sent too; false where gaps are fine."""
    agent_messages: bool = False
    """True where texts, payloads and turn ends travel to the client (native dialect)."""
    dtmf_in: bool = True
    transfer: bool = False
    max_message_bytes: int = 65536
    receive_idle_s: float | None = None
    """Silence on the socket after which the peer is taken for dead; None: never."""


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


@dataclass(frozen=True, slots=True)
class AudioIn:
    """Caller audio, still encoded in `Started.in_format`."""

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
    | TextIn
    | EventIn
    | VariablesIn
    | ToolResponsesIn
    | Ended
)


# ---- commands: core to channel


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


@dataclass(frozen=True, slots=True)
class Transfer:
    """Hand the call on to `target`, where the dialect can."""

    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


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
    | GoAway
)


@dataclass(frozen=True, slots=True)
class Close:
    """What the transport does after the last message: the close code and reason."""

    code: int = 1000
    reason: str = ""


MAX_REASON_BYTES = 123
"""Longest close reason: a websocket control frame holds 125 bytes, two of them the code."""


def close_reason(text: str) -> str:
    """`text` cut to what fits a close frame, never inside a character."""
    return text.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")


class Channel(Protocol):
    """One call's codec of one dialect."""

    @property
    def capabilities(self) -> Capabilities:
        """What this dialect can do."""
        ...

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one wire message. Raises ProtocolError where the peer broke the protocol."""
        ...

    def audio(self, data: bytes, turn: int) -> Wire:
        """The wire message for audio already encoded in `Started.out_format`. Hot path."""
        ...

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """The wire messages for a command; empty where the dialect has no words for it."""
        ...

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """What to send and how to close after the peer broke the protocol."""
        ...
