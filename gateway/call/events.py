"""What the call engine is told and what it asks for.

The engine is a plain object: `(event, now) -> list[Action]`. `now` is in seconds of a monotonic
clock. Channel events come from `gateway.channels.base`; the rest is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.audio.formats import Pcm
from gateway.channels.base import ChannelCommand, EndReason


class Source(StrEnum):
    """Where the audio of an utterance comes from."""

    SPEECH = "speech"
    FILE = "file"
    AUDIO = "audio"
    KEYS = "keys"
    """Keys pressed towards the far end; audio only where they are played as tones."""


class UtteranceEnd(StrEnum):
    """Why an utterance is over; the values of `utterance_ended.reason`."""

    COMPLETED = "completed"
    BARGE_IN = "barge_in"
    CANCELLED = "cancelled"
    DROPPED = "dropped"
    FAILED = "failed"


class InputType(StrEnum):
    """Kinds of input to the agent runtime."""

    TEXT = "text"
    EVENT = "event"
    DTMF = "dtmf"
    VARIABLES = "variables"
    AUDIO = "audio"
    TOOL_RESPONSES = "toolResponses"


# ---- from the agent runtime (already parsed from BidiRunSession JSON by gateway.runtime)


@dataclass(frozen=True, slots=True)
class RuntimeText:
    """Agent text to be spoken. `turn` is the runtime's turnIndex."""

    text: str
    turn: int


@dataclass(frozen=True, slots=True)
class RuntimePayload:
    """A custom payload: audioUri and customizedResponse are ours, all others the client's."""

    payload: Mapping[str, Any]
    turn: int


@dataclass(frozen=True, slots=True)
class RuntimeAudio:
    """Audio that the runtime made itself, as PCM at the channel's output rate.

    `wire`: the same in the channel's output format, where the runtime gave it so; it is sent
    untouched as long as nothing has to be mixed into it. `background`: nobody speaks in it; it
    is heard, and means nothing.
    """

    pcm: Pcm
    turn: int
    wire: bytes = b""
    background: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeTranscript:
    """What an audio runtime understood of the caller, all of the turn so far."""

    text: str


@dataclass(frozen=True, slots=True)
class RuntimeToolCalls:
    """Client functions that the channel's client should run."""

    tool_calls: Sequence[Mapping[str, Any]]
    turn: int


@dataclass(frozen=True, slots=True)
class RuntimeTurnCompleted:
    """The last output of a turn."""

    turn: int


@dataclass(frozen=True, slots=True)
class RuntimeInterruption:
    """The runtime says: stop what you play."""

    barge_in: bool


@dataclass(frozen=True, slots=True)
class RuntimeEndSession:
    """The agent ended the session. `metadata`: reason, session_escalated, params."""

    metadata: Mapping[str, Any] = field(default_factory=dict)


RuntimeOutput = (
    RuntimeText
    | RuntimePayload
    | RuntimeAudio
    | RuntimeTranscript
    | RuntimeToolCalls
    | RuntimeTurnCompleted
    | RuntimeInterruption
    | RuntimeEndSession
)


# ---- actions: what the engine asks its surroundings to do


@dataclass(frozen=True, slots=True)
class SendAudio:
    """One frame of audio for the platform, already encoded in the output format.

    `due`: when it is played, in seconds of the engine's clock.
    """

    data: bytes
    turn: int
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class AudioUnheard:
    """Frames that are due from `since` on and were sent before this were never heard."""

    since: float


@dataclass(frozen=True, slots=True)
class ToChannel:
    """A command for the dialect's codec."""

    command: ChannelCommand


@dataclass(frozen=True, slots=True)
class OpenRuntime:
    """Open the agent runtime's session (config; then variables and the kick-off event, if any).

    `first_words`: what begins the session in place of the event.
    """

    variables: Mapping[str, Any]
    kickoff: str | None
    first_words: str = ""


@dataclass(frozen=True, slots=True)
class ToRuntime:
    """One input for the agent runtime.

    TEXT: `text` (with `will_continue`, a fragment that only opens the caller's turn: an
    interruption); EVENT: `text` is the name; DTMF: `text` holds the digits; VARIABLES: `data`;
    TOOL_RESPONSES: `items`; AUDIO: `audio`, in the runtime's own format.
    """

    type: InputType
    text: str = ""
    will_continue: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    items: Sequence[Mapping[str, Any]] = ()
    audio: bytes = b""


@dataclass(frozen=True, slots=True)
class CloseRuntime:
    """The call is over: close the runtime's session."""


@dataclass(frozen=True, slots=True)
class Synthesize:
    """Make speech of `text`; PCM comes back by `speech_audio`, sentence by sentence."""

    utterance_id: int
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class LoadAudio:
    """Fetch and decode `uri` at the output rate; the answer is `audio_loaded` or `_failed`."""

    utterance_id: int
    uri: str


@dataclass(frozen=True, slots=True)
class CancelUtterance:
    """Nobody waits for this utterance's audio any more."""

    utterance_id: int


@dataclass(frozen=True, slots=True)
class Recognise:
    """Understand a stretch of caller speech (16-bit PCM at `rate_hz`).

    It lies between `start_s` and `end_s` of the caller's audio, for a recogniser that hears it all.
    The answer goes to `recognised(segment_id, text, complete)`. `ask_complete`: also judge
    whether the caller has finished (the turn detector).
    """

    segment_id: int
    pcm: Pcm
    rate_hz: int
    language: str
    ask_complete: bool
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the timeline. `t`: seconds of the engine's clock (heard time for playout)."""

    t: float
    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The call is over, exactly once: tear everything down."""

    reason: EndReason


Action = (
    SendAudio
    | AudioUnheard
    | ToChannel
    | OpenRuntime
    | ToRuntime
    | CloseRuntime
    | Synthesize
    | LoadAudio
    | CancelUtterance
    | Recognise
    | Record
    | CallEnded
)
