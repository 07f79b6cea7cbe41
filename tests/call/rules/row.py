"""A rule as data: who does what and when, and what must then be in the timeline and in the ear.

Times are seconds since the agent was told that the call began. Every sentence, file and caller's
sound is a constant sample of its own, so what is heard can be told apart sample by sample.
Speech takes 50 ms a character.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.audio.formats import Pcm

RATE_HZ = 8000
FRAME_S = 0.02
KEY_S = 0.14
"""From one key to the next."""
WINDOW_S = 0.032
S_PER_CHAR = 0.05
SPEECH_VALUE, SPEECH_STEP = 900, 350
FILE_VALUE, FILE_STEP = 9000, 1300
CALLER_VALUE, CALLER_STEP = 2500, 700


def constant(value: int, seconds: float) -> Pcm:
    """A constant sample."""
    return value.to_bytes(2, "little", signed=True) * round(seconds * RATE_HZ)


# ---- what the agent gives


@dataclass(frozen=True)
class Text:
    words: str


@dataclass(frozen=True)
class Payload:
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """The turn is complete."""


@dataclass(frozen=True)
class Interrupt:
    """The agent says: stop what you play."""

    barge_in: bool = False


@dataclass(frozen=True)
class End:
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lose:
    """The agent's connection breaks."""


Output = Text | Payload | Done | Interrupt | End | Lose


def play(uri: str, **more: Any) -> Payload:
    return Payload({"audioUri": uri, **more})


def hold(uri: str = "music.wav", **more: Any) -> Payload:
    return Payload({"audioUri": uri, "cancellable": True, **more})


def custom(content: str, **more: Any) -> Payload:
    return Payload({"customizedResponse": {"content": content, **more}})


def protected(content: str) -> Payload:
    return custom(content, disableBargeIn=True)


# ---- what happens when


@dataclass(frozen=True)
class Agent:
    at: float
    outputs: tuple[Output, ...]
    turn: int | None = None


@dataclass(frozen=True)
class Say:
    at: float
    seconds: float
    words: str = ""


@dataclass(frozen=True)
class Keys:
    at: float
    digits: str


@dataclass(frozen=True)
class HangUp:
    at: float


Step = Agent | Say | Keys | HangUp


def agent(at: float, *outputs: Output, turn: int | None = None) -> Agent:
    return Agent(at, outputs, turn)


def says(at: float, seconds: float, words: str = "") -> Say:
    return Say(at, seconds, words)


def keys(at: float, digits: str) -> Keys:
    return Keys(at, digits)


# ---- what must hold

Who = int | str
"""An utterance by its number, or a file by its uri."""


@dataclass(frozen=True)
class Row:
    """One rule. What is None is not asked about."""

    name: str
    script: Sequence[Step]
    profile: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, float | str] = field(default_factory=dict)
    """By uri: length in seconds, or the code of the failure."""
    answers: Mapping[str, Sequence[Output]] = field(default_factory=dict)
    """What the agent gives for an input, in a turn of its own; the key is as in `told`."""
    complete: bool = True
    """What the turn detector says of every pause."""
    tts_s: float = 0.0
    stt_s: float = 0.0
    """What a sentence and a question to the recogniser take."""
    bed: int = 0
    """A constant background of this value."""
    seconds: float = 8.0
    wire: bool = True
    """False: it is about a single frame, which real time does not hit for sure."""

    # --- of the timeline
    ends: Mapping[int, str] | None = None
    """How each utterance ended."""
    starts: Mapping[int, float] | None = None
    cut: Sequence[tuple[str, Sequence[int]]] | None = None
    """Every interruption: by whom, and what it cut."""
    cut_at: float | None = None
    """When the (only) interruption came."""
    told: Sequence[str] | None = None
    """Every input of the agent but the first: words; `#12` for keys; `!name` for an event; `~`
    with words for an interruption."""
    user: Sequence[str] | None = None
    """Final words of the caller."""
    heard_words: Mapping[int, str] | None = None
    errors: Sequence[str] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    """How many records of a kind there are."""
    ended: str | None = None
    transfer: str | None = None

    # --- of the ear
    order: Sequence[Who] | None = None
    """Who is heard, in order of their first sound."""
    heard: Mapping[Who, float] | None = None
    """For how many seconds."""
    audible: Sequence[tuple[Who, float, float]] | None = None
    """From when to when; all sounds, if given."""
    level_db: Mapping[Who, float] | None = None
    """Level over that of the source."""
    click_free: bool = False
    """No step between neighbouring samples is larger than a fade makes it."""
    fade_s: Mapping[Who, float] | None = None
    """How long it takes from full level to silence where it is cut."""
    silent_between: Sequence[tuple[float, float]] = ()

    def texts(self) -> list[str]:
        """Everything that may be spoken, in order of mention."""
        found: list[str] = []
        outputs = [o for s in self.script if isinstance(s, Agent) for o in s.outputs]
        outputs += [o for answer in self.answers.values() for o in answer]
        for output in outputs:
            if isinstance(output, Text):
                found.append(output.words)
            elif isinstance(output, Payload):
                response = output.content.get("customizedResponse")
                if isinstance(response, Mapping):
                    found.append(str(response.get("content")))
                if output.content.get("transcript"):
                    found.append(str(output.content["transcript"]))
        found.append(str(self.profile.get("fallback_message", FALLBACK)))
        return list(dict.fromkeys(found))

    def speech_value(self, sentence: str) -> int:
        """The sample that stands for a sentence: that of the text it belongs to."""
        for number, text in enumerate(self.texts()):
            if sentence.rstrip(".") in text:
                return SPEECH_VALUE + SPEECH_STEP * number
        raise AssertionError(f"{self.name}: nobody says {sentence!r}")

    def file_value(self, uri: str) -> int:
        return FILE_VALUE + FILE_STEP * sorted(self.files).index(uri)

    def caller_value(self, said: Say) -> int:
        return CALLER_VALUE + CALLER_STEP * self.said.index(said)

    @property
    def said(self) -> list[Say]:
        """Everything that the caller says."""
        return [step for step in self.script if isinstance(step, Say)]


FALLBACK = "Sorry, something went wrong."


def detected(at: float, windows: int = 2) -> float:
    """When a voice that begins at `at` is taken for speech: after so many whole windows."""
    first = math.ceil((at - WINDOW_S / 2) / WINDOW_S - 1e-9)
    end = (first + windows) * WINDOW_S
    return math.ceil(end / FRAME_S - 1e-9) * FRAME_S


def length(text: str) -> float:
    """Seconds that a text of one sentence takes to speak, in whole frames."""
    return math.ceil(len(text) * S_PER_CHAR / FRAME_S - 1e-9) * FRAME_S
