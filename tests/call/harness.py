"""A call in virtual time: drives the engine with ticks and plays everybody around it.

`Line` owns the clock. Its platform plays frames one after the other as they arrive, drops them on
a clear and sends marks back; its synthesiser makes sound of a length that follows from the text;
its recogniser answers with the words that `speak` was given; its runtime is whatever the test says.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.call import events
from gateway.call.events import (
    Action,
    Record,
    RuntimePayload,
    RuntimeText,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.call.machine import CallMachine
from gateway.call.profile import CallProfile
from gateway.channels.base import (
    Clear,
    DtmfIn,
    MarkReached,
    SendMark,
    Started,
)
from gateway.channels.capabilities import Capabilities, ClearBy, Marks
from gateway.errors import AssetError, SpeechError

TICK_S = 0.02
WINDOW_S = 0.032
RATE_HZ = 8000
FRAME_BYTES = 320
LINEAR_8K = AudioFormat(Encoding.LINEAR16, RATE_HZ)
NATIVE = Capabilities(dialect="test", marks=Marks.NATIVE, clear=ClearBy.NATIVE, max_lead_ms=1000)
EMULATED = Capabilities(
    dialect="test", marks=Marks.EMULATED, clear=ClearBy.NATIVE, max_lead_ms=1000
)
MS_PER_CHARACTER = 50


def tone(value: int, seconds: float, rate_hz: int = RATE_HZ) -> Pcm:
    """A constant sample: audio that can be recognised again, frame by frame."""
    return value.to_bytes(2, "little", signed=True) * round(seconds * rate_hz)


def value_of(frame: bytes) -> int:
    """The constant in a frame of `tone`."""
    return int.from_bytes(frame[:2], "little", signed=True)


@dataclass
class Played:
    """One frame that the caller heard, or the part of it before a clear."""

    t: float
    frame: bytes
    share: float = 1.0


@dataclass
class Platform:
    """A telephone platform with a buffer: plays what it gets, in order, without pause."""

    delay_s: float = 0.0
    """How long after their arrival frames are played at the earliest."""
    played: list[Played] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)
    """Marks that wait for their audio: when they come back, and their names."""
    free_at: float = 0.0

    def frame(self, data: bytes, now: float) -> None:
        start = max(self.free_at, now + self.delay_s)
        self.played.append(Played(start, data))
        self.free_at = start + TICK_S

    def mark(self, name: str, now: float) -> None:
        self.marks.append((max(self.free_at, now), name))

    def clear(self, now: float) -> list[str]:
        """Drop what was not played; all waiting marks come back at once, as platforms do."""
        kept = []
        for frame in self.played:
            share = min(1.0, max(0.0, (now - frame.t) / TICK_S))
            if share > 1e-6:
                frame.share = min(frame.share, share)
                kept.append(frame)
        self.played = kept
        self.free_at = now
        returned = [name for _, name in self.marks]
        self.marks.clear()
        return returned

    def marks_by(self, now: float) -> list[str]:
        due = [name for t, name in self.marks if t <= now + 1e-9]
        self.marks = [(t, name) for t, name in self.marks if t > now + 1e-9]
        return due

    def heard_s(self, value: int, until: float) -> float:
        """Seconds of the tone `value` that had been played by `until`."""
        return sum(
            min(frame.share, max(0.0, (until - frame.t) / TICK_S)) * TICK_S
            for frame in self.played
            if value_of(frame.frame) == value and frame.t < until
        )


class Line:
    """One call with everything around it."""

    def __init__(
        self,
        profile: CallProfile | None = None,
        capabilities: Capabilities = EMULATED,
        *,
        start: Started | None = None,
        runtime_s: float | None = 0.0,
        tts_s: float = 0.0,
        stt_s: float = 0.0,
        platform: Platform | None = None,
        echo_marks: bool = True,
        begin: bool = True,
    ) -> None:
        self.profile = profile or CallProfile()
        self.now = 100.0
        self.begun = self.now
        self.machine = CallMachine(self.profile, capabilities, self.now)
        self.platform = platform or Platform()
        self.echo_marks = echo_marks
        self.runtime_s = runtime_s
        self.tts_s = tts_s
        self.stt_s = stt_s
        self.tts_fails = False
        self.tts_silent = False
        self.stt_silent = False
        self.complete = True
        """What the turn detector says of every pause."""
        self.files: dict[str, Pcm | str] = {}
        """By uri: audio, or the error code of the failure; others never answer."""
        self.actions: list[Action] = []
        self.records: list[Record] = []
        self.inputs: list[ToRuntime] = []
        self.commands: list[Any] = []
        self.agent: Callable[[ToRuntime], None] | None = None
        self.words = ""
        """What the recogniser understands."""
        self.caller_s = 0.0
        """Caller audio so far."""
        self._later: list[tuple[float, int, Callable[[], list[Action]]]] = []
        self._count = 0
        self._cancelled: set[int] = set()
        self._window_s = 0.0
        self._speech: list[tuple[float, float]] = []
        self._start = start or Started(call_id="call-1", in_format=LINEAR_8K, out_format=LINEAR_8K)
        if begin:
            self.begin()

    # ---- driving

    def begin(self) -> None:
        self.do(self.machine.started(self._start, self.now))

    def run(self, seconds: float) -> Line:
        """Let time pass, tick by tick."""
        for _ in range(round(seconds / TICK_S)):
            self._advance(self.now + TICK_S)
        return self

    def until(self, condition: Callable[[], bool], limit_s: float = 120.0) -> Line:
        """Let time pass until `condition` holds."""
        for _ in range(round(limit_s / TICK_S)):
            if condition():
                return self
            self._advance(self.now + TICK_S)
        raise AssertionError("it never came to pass")

    def _advance(self, target: float) -> None:
        self.answer_what_is_due(target)
        self.now = target
        self._caller_audio()
        if self.echo_marks:
            for name in self.platform.marks_by(self.now):
                self.do(self.machine.channel(MarkReached(name), self.now))
        self.do(self.machine.tick(self.now))

    def answer_what_is_due(self, until: float | None = None) -> None:
        """Let the surroundings answer what they have to by now, or by `until`."""
        end = self.now if until is None else until
        while self._later and self._later[0][0] <= end + 1e-9:
            when, _, call = heapq.heappop(self._later)
            self.now = max(self.now, when)
            self.do(call())

    def _caller_audio(self) -> None:
        if self._start.in_format is None:
            return
        loud = any(start <= self.now <= end for start, end in self._speech)
        self.do(self.machine.audio(tone(3000 if loud else 0, TICK_S), self.now))
        self.caller_s += TICK_S
        while self._window_s + WINDOW_S <= self.caller_s + 1e-9:
            self._window_s += WINDOW_S
            middle = self.now - (self.caller_s - self._window_s) - WINDOW_S / 2
            speech = any(start <= middle <= end for start, end in self._speech)
            self.do(self.machine.vad(0.95 if speech else 0.02, self._window_s, self.now))

    def later(self, seconds: float, call: Callable[[], list[Action]]) -> None:
        self._count += 1
        heapq.heappush(self._later, (self.now + seconds, self._count, call))

    def do(self, actions: list[Action]) -> list[Action]:
        """Perform actions as a session would."""
        for action in actions:
            self.actions.append(action)
            match action:
                case events.SendAudio(data, _):
                    self.platform.frame(data, self.now)
                case events.ToChannel(command):
                    self._command(command)
                case events.Record():
                    self.records.append(action)
                case events.ToRuntime():
                    self.inputs.append(action)
                    if self.agent is not None:
                        self.agent(action)
                case events.OpenRuntime():
                    if self.runtime_s is not None:
                        self.later(self.runtime_s, lambda: self.machine.runtime_opened(self.now))
                case events.Synthesize():
                    self._synthesise(action)
                case events.LoadAudio():
                    self._load(action)
                case events.CancelUtterance(utterance_id):
                    self._cancelled.add(utterance_id)
                case events.Recognise():
                    self._recognise(action)
        return actions

    def _command(self, command: Any) -> None:
        self.commands.append(command)
        if isinstance(command, Clear):
            for name in self.platform.clear(self.now):
                if self.echo_marks:
                    self.later(0.0, partial(self._mark_back, name))
        elif isinstance(command, SendMark):
            self.platform.mark(command.name, self.now)

    def _mark_back(self, name: str) -> list[Action]:
        return self.machine.channel(MarkReached(name), self.now)

    def _synthesise(self, action: events.Synthesize) -> None:
        number = action.utterance_id
        if self.tts_silent:
            return
        if self.tts_fails:
            self.later(
                self.tts_s,
                lambda: self.machine.speech_failed(
                    number, SpeechError("speech.failed", "no voice"), self.now
                ),
            )
            return
        sentences = [s.strip() + "." for s in action.text.split(".") if s.strip()]

        def speak(index: int) -> list[Action]:
            if number in self._cancelled:
                return []
            if index == len(sentences):
                return self.machine.speech_finished(number, self.now)
            words = sentences[index]
            value = self.speech_value(number, words)
            pcm = tone(value, len(words) * MS_PER_CHARACTER / 1000)
            out = self.machine.speech_audio(number, words, pcm, self.now)
            self.later(self.tts_s if index + 1 < len(sentences) else 0.0, lambda: speak(index + 1))
            return out

        self.later(self.tts_s, lambda: speak(0))

    def speech_value(self, number: int, words: str) -> int:
        """The constant that stands for what an utterance says."""
        return number

    def _load(self, action: events.LoadAudio) -> None:
        number = action.utterance_id
        file = self.files.get(action.uri)
        if isinstance(file, str):
            self.later(
                0.0,
                lambda: self.machine.audio_failed(number, AssetError(file, "no file"), self.now),
            )
        elif file is not None:
            self.later(0.0, lambda: self.machine.audio_loaded(number, file, self.now))

    def _recognise(self, action: events.Recognise) -> None:
        if self.stt_silent:
            return
        complete = self.complete and action.ask_complete
        words = self.words
        self.later(
            self.stt_s,
            lambda: self.machine.recognised(action.segment_id, words, complete, self.now),
        )

    # ---- the caller

    def speak(self, seconds: float, words: str = "", after_s: float = 0.0) -> None:
        """The caller makes a sound of this length from now (or a little later) on."""
        self._speech.append((self.now + after_s, self.now + after_s + seconds))
        self.words = words

    def keys(self, digits: str) -> list[Action]:
        return self.do(self.machine.channel(DtmfIn(digits), self.now))

    # ---- the runtime

    def text(self, text: str, turn: int) -> list[Action]:
        return self.do(self.machine.runtime(RuntimeText(text, turn), self.now))

    def payload(self, turn: int, **payload: Any) -> list[Action]:
        return self.do(self.machine.runtime(RuntimePayload(payload, turn), self.now))

    def completed(self, turn: int) -> list[Action]:
        return self.do(self.machine.runtime(RuntimeTurnCompleted(turn), self.now))

    def output(self, output: events.RuntimeOutput) -> list[Action]:
        return self.do(self.machine.runtime(output, self.now))

    def say(self, text: str, turn: int) -> None:
        """A whole turn of one text."""
        self.text(text, turn)
        self.completed(turn)

    def greeted(self) -> Line:
        """The greeting was heard: turn 1 is over and the line is quiet."""
        self.run(0.1)
        self.say("Hello.", 1)
        return self.until(lambda: self.quiet)

    # ---- what happened

    @property
    def quiet(self) -> bool:
        queued = len(self.find("utterance_queued"))
        return queued == len(self.find("utterance_ended"))

    def find(self, kind: str, **fields: Any) -> list[Record]:
        return [
            record
            for record in self.records
            if record.kind == kind and all(record.fields.get(k) == v for k, v in fields.items())
        ]

    def one(self, kind: str, **fields: Any) -> Record:
        found = self.find(kind, **fields)
        assert len(found) == 1, f"{len(found)} × {kind} {fields}: {self.kinds()}"
        return found[0]

    def t(self, kind: str, **fields: Any) -> float:
        """Seconds into the call at which the one such record stands."""
        return round(self.one(kind, **fields).t - self.begun, 6)

    def kinds(self) -> list[str]:
        return [record.kind for record in self.records]

    def texts(self) -> list[str]:
        """Texts that the runtime was given."""
        return [i.text for i in self.inputs if i.type is events.InputType.TEXT]

    def sent(self, kind: type) -> list[Any]:
        """Commands of one kind that the platform was given."""
        return [command for command in self.commands if isinstance(command, kind)]

    def heard_s(self, utterance_id: int) -> float:
        """Seconds of an utterance that truly came out of the platform's loudspeaker."""
        return round(self.platform.heard_s(utterance_id, self.now), 6)

    def check(self) -> None:
        """What must hold for every call at every time."""
        times = [record.t for record in self.records]
        assert times == sorted(times)
        assert self.kinds()[0] == "call_started"
        ended = [i for i, a in enumerate(self.actions) if isinstance(a, events.CallEnded)]
        assert len(ended) <= 1
        assert len(self.find("call_ended")) == len(ended)
        if ended:
            assert ended[0] == len(self.actions) - 1
            assert isinstance(self.actions[-2], Record)
            assert self.actions[-2].kind == "call_ended"
        for record in self.find("utterance_ended"):
            assert len(self.find("utterance_ended", id=record.fields["id"])) == 1
