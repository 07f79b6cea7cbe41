"""The transcript of a call, made of its notes: who was heard when, and what they said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.call.transcript import Speaker
from gateway.records.scribe import unmasked

Note = Mapping[str, Any]
TIME_DIGITS = 3
LOST = "gateway_lost"
"""Why a call ended whose gateway died."""
CAME_AFTER_S = 0.1
"""How long after its first sound speech is noticed."""


@dataclass(slots=True)
class Line:
    """One stretch of speech, or pressed keys. Times: seconds since the call started.

    `hidden`: shares of its time that are masked. `keys`: pressed rather than said. `typed`: there
    is no sound of it. `known`: what was said is known to its end.
    """

    start: float
    end: float
    speaker: Speaker
    text: str = ""
    hidden: list[tuple[float, float]] = field(default_factory=list)
    turn: int | None = None
    reason: str = ""
    uri: str = ""
    keys: bool = False
    typed: bool = False
    known: bool = True

    def to_json(self) -> dict[str, Any]:
        """As it stands in the transcript."""
        line: dict[str, Any] = {
            "start": round(self.start, TIME_DIGITS),
            "end": round(self.end, TIME_DIGITS),
            "speaker": self.speaker.value,
            "text": self.text,
        }
        if self.keys:
            line["kind"] = "dtmf"
        if self.speaker is Speaker.AGENT:
            line |= {"turn": self.turn, "reason": self.reason}
        if self.uri:
            line["uri"] = self.uri
        return line


@dataclass(slots=True)
class Story:
    """What the notes of a call tell. `unclear`: caller speech of which no words are known."""

    lines: list[Line] = field(default_factory=list)
    unclear: list[tuple[float, float]] = field(default_factory=list)
    started: dict[str, Any] = field(default_factory=dict)
    reason: str = LOST
    transfer: str = ""
    errors: list[str] = field(default_factory=list)
    barge_ins: int = 0
    inactivities: int = 0


def tell(notes: Iterable[tuple[float, Note]], end_s: float, *, plain: bool) -> Story:
    """Read the notes (with times in seconds since the call started) of a call `end_s` long.

    `plain`: with the words as they were said.
    """
    teller = _Teller(end_s)
    for t, note in notes:
        teller.take(t, unmasked(note) if plain else note)
    return teller.finish()


class _Teller:
    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._story = Story()
        self._queued: dict[int, Note] = {}
        self._sounding: dict[int, Line] = {}
        self._speech_from: float | None = None
        self._speech: tuple[float, float] | None = None
        """Speech that is over and whose words are still to come."""

    def take(self, t: float, note: Note) -> None:
        """One note; they come in order of time."""
        story = self._story
        match note["kind"]:
            case "call_started":
                story.started = {k: v for k, v in note.items() if k not in ("kind", "plain")}
            case "call_ended":
                story.reason = str(note["reason"])
            case "transfer":
                story.transfer = str(note["target"])
            case "error":
                story.errors.append(str(note["code"]))
            case "barge_in":
                story.barge_ins += 1
            case "inactivity":
                story.inactivities += 1
            case "utterance_queued":
                self._queued[note["id"]] = note
            case "utterance_started":
                self._started(t, note["id"])
            case "utterance_ended":
                self._ended(t, note)
            case "user_speech_started":
                self._forget_speech()
                self._speech_from = max(0.0, t - CAME_AFTER_S)
            case "user_speech_ended":
                if self._speech_from is not None:
                    self._speech = (self._speech_from, t)
                    self._speech_from = None
            case "user_text":
                self._said(t, note)
            case "dtmf":
                digits = str(note.get("digits", ""))
                story.lines.append(Line(t, t, Speaker.CALLER, digits, keys=True))

    def _started(self, t: float, utterance: int) -> None:
        queued = self._queued.get(utterance, {})
        line = Line(t, self._end_s, Speaker.AGENT, str(queued.get("text", "")), known=False)
        line.hidden = list(queued.get("hidden", ()))
        line.turn = queued.get("turn")
        line.uri = str(queued.get("uri", ""))
        line.reason = self._story.reason
        self._sounding[utterance] = line
        self._story.lines.append(line)

    def _ended(self, t: float, note: Note) -> None:
        self._queued.pop(note["id"], None)
        line = self._sounding.pop(note["id"], None)
        if line is None:
            return
        line.end = t
        line.text = str(note.get("heard_text", ""))
        line.hidden = list(note.get("hidden", ()))
        line.reason = str(note["reason"])
        line.known = True

    def _said(self, t: float, note: Note) -> None:
        text, hidden = str(note.get("text", "")), list(note.get("hidden", ()))
        line = Line(t, t, Speaker.CALLER, text, hidden)
        if self._speech is not None:
            line.start, line.end = self._speech
            self._speech = None
        elif self._speech_from is not None:
            # Words that come while the caller still speaks; the next ones begin here.
            line.start = self._speech_from
            self._speech_from = t
        else:
            line.typed = True
        self._story.lines.append(line)

    def _forget_speech(self) -> None:
        if self._speech is not None:
            self._story.unclear.append(self._speech)
            self._speech = None

    def finish(self) -> Story:
        """All that there is."""
        self._forget_speech()
        if self._speech_from is not None:
            self._story.unclear.append((self._speech_from, self._end_s))
        self._story.lines.sort(key=lambda line: line.start)
        return self._story
