"""Runs a row on the engine in virtual time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gateway.call import events
from gateway.call.events import (
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimePayload,
    RuntimeText,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.call.profile import CallProfile
from gateway.channels.base import Ended, Started
from gateway.channels.capabilities import Capabilities
from gateway.errors import RuntimeFailure
from tests.call.harness import LINEAR_8K, Line
from tests.call.rules.outcome import Outcome, told
from tests.call.rules.row import (
    FALLBACK,
    KEY_S,
    RATE_HZ,
    Agent,
    Done,
    End,
    HangUp,
    Interrupt,
    Keys,
    Lose,
    Output,
    Payload,
    Row,
    Say,
    Text,
    constant,
)


def profile_of(row: Row) -> CallProfile:
    """The row's profile over plain defaults."""
    return CallProfile(**{"fallback_message": FALLBACK, "lead_ms": 60, **row.profile})


class Told:
    """Keeps count of the agent's turns."""

    def __init__(self) -> None:
        self.turn = 1

    def runtime(self, output: Output, turn: int | None) -> events.RuntimeOutput | None:
        """The output as the engine gets it; None: the connection breaks."""
        now = self.turn if turn is None else turn
        match output:
            case Text(words):
                return RuntimeText(words, now)
            case Payload(content):
                return RuntimePayload(content, now)
            case Done():
                self.turn = max(self.turn, now + 1)
                return RuntimeTurnCompleted(now)
            case Interrupt(barge_in):
                return RuntimeInterruption(barge_in)
            case End(metadata):
                return RuntimeEndSession(metadata)
            case Lose():
                return None


class RuleLine(Line):
    """A line whose sounds are those of a row."""

    def __init__(self, row: Row, capabilities: Capabilities) -> None:
        self.row = row
        self.turns = Told()
        started = Started(call_id="call-1", in_format=LINEAR_8K, out_format=LINEAR_8K)
        super().__init__(
            profile_of(row),
            capabilities,
            start=started,
            begin=False,
            tts_s=row.tts_s,
            stt_s=row.stt_s,
        )
        self.complete = row.complete
        for uri, what in row.files.items():
            value = row.file_value(uri)
            self.files[uri] = what if isinstance(what, str) else constant(value, what)
        self.agent = self._answer
        if row.bed:
            self.do(self.machine.ambience(constant(row.bed, 1.0), self.now))
        self.begin()

    def speech_value(self, number: int, words: str) -> int:
        return self.row.speech_value(words)

    def _answer(self, item: ToRuntime) -> None:
        (key,) = told([item])
        answer = self.row.answers.get(key)
        if answer is not None:
            outputs = [*answer, Done()]
            self.later(0.0, lambda: [a for o in outputs for a in self._output(o, None)])

    def _output(self, output: Output, turn: int | None) -> list[events.Action]:
        made = self.turns.runtime(output, turn)
        if made is None:
            return self.machine.runtime_lost(RuntimeFailure("runtime.lost", "gone"), self.now)
        return self.machine.runtime(made, self.now)

    def give(self, outputs: Sequence[Output], turn: int | None) -> None:
        for output in outputs:
            self.do(self._output(output, turn))

    def ear(self) -> np.ndarray:
        """What came out of the loudspeaker, from the beginning of the call."""
        samples = np.zeros(math.ceil((self.now - self.begun + 1) * RATE_HZ), np.int16)
        for played in self.platform.played:
            frame = np.frombuffer(played.frame, "<i2")
            frame = frame[: round(len(frame) * played.share)]
            at = round((played.t - self.begun) * RATE_HZ)
            frame = frame[: max(0, len(samples) - at)]
            samples[at : at + len(frame)] = frame
        return samples[: round((self.now - self.begun) * RATE_HZ)]


def run(row: Row, capabilities: Capabilities) -> Outcome:
    """The whole row, and what came of it."""
    line = RuleLine(row, capabilities)
    for step in sorted(row.script, key=lambda step: step.at):
        line.run(step.at - (line.now - line.begun))
        match step:
            case Agent(_, outputs, turn):
                line.give(outputs, turn)
            case Say(_, seconds, words):
                line.speak(seconds, words)
            case Keys(_, digits):
                for digit in digits:
                    line.keys(digit)
                    line.run(KEY_S)
            case HangUp():
                line.do(line.machine.channel(Ended(), line.now))
    line.run(row.seconds - (line.now - line.begun))
    line.check()
    records = [
        {"t": round(record.t - line.begun, 6), "kind": record.kind, **record.fields}
        for record in line.records
    ]
    return Outcome(records, line.inputs, line.ear())
