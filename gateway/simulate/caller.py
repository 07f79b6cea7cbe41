"""The caller: a script engine without IO. Asked each 20 ms what it sends, told what it observes.

Audio is 16-bit PCM at `rate_hz`; `now` is in seconds. Speech and recordings are handed in
beforehand as clips, one for each `say` and `play` step.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from gateway.audio.formats import FRAME_MS, Pcm
from gateway.simulate.scenario import (
    Dtmf,
    Hangup,
    Noise,
    Play,
    Say,
    Silence,
    Step,
    WaitEvent,
    WaitHeard,
    WaitQuiet,
    WaitTime,
)
from gateway.simulate.view import CallView

FRAME_S = FRAME_MS / 1000
KEY_FRAMES = 10
"""Frames from one key press to the next: 200 ms."""


@dataclass(frozen=True, slots=True)
class Output:
    """What the caller sends in one 20 ms frame. `pcm` None: silence."""

    pcm: Pcm | None = None
    digit: str = ""
    hangup: bool = False


@dataclass(slots=True)
class StepSpan:
    """When a step ran, and what it was. `end` None: not finished."""

    index: int
    kind: str
    label: str
    line: int
    start: float
    end: float | None = None
    as_text: str | None = None
    problem: str = ""


@dataclass(slots=True)
class _Running:
    """The state of the step at hand."""

    step: Step
    span: StepSpan
    frames: list[Pcm] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    position: int = 0


def label(step: Step) -> str:
    """A step in one line, for people."""
    match step:
        case Say():
            return f"say {step.text!r}"
        case Play():
            return f"play {step.path.name}"
        case Dtmf():
            return f"dtmf {step.digits}"
        case Silence():
            return f"silence {step.seconds:g}s"
        case Noise():
            return f"noise {step.seconds:g}s at {step.level_dbfs:g} dBFS"
        case Hangup():
            return "hang up"
        case WaitQuiet():
            return "wait for agent_quiet"
        case WaitHeard():
            return f"wait to hear {step.pattern!r}"
        case WaitEvent():
            return f"wait for event {step.event}"
        case WaitTime():
            return f"wait {step.seconds:g}s"
        case _:
            assert_never(step)


def kind(step: Step) -> str:
    """The step's key in the scenario file."""
    if isinstance(step, WaitQuiet | WaitHeard | WaitEvent | WaitTime):
        return "wait"
    return type(step).__name__.lower()


def cut(pcm: Pcm, rate_hz: int) -> list[Pcm]:
    """A clip in 20 ms frames, the last one padded with silence."""
    size = rate_hz * FRAME_MS // 1000 * 2
    return [pcm[at : at + size].ljust(size, b"\0") for at in range(0, len(pcm), size)]


def noise(seconds: float, level_dbfs: float, rate_hz: int, seed: int) -> Pcm:
    """White noise whose RMS is `level_dbfs`, the same for the same seed."""
    generator = random.Random(seed)
    # Uniform noise of amplitude A has an RMS of A / sqrt(3).
    amplitude = min(32767.0, 32768 * 10 ** (level_dbfs / 20) * 3**0.5)
    count = int(seconds * rate_hz)
    samples = [round(generator.uniform(-amplitude, amplitude)) for _ in range(count)]
    return struct.pack(f"<{count}h", *samples)


class Caller:
    """Runs the steps in order. `clips`: PCM at `rate_hz` by step index for say and play.

    `linger_s` None: hang up after the last step once the agent is quiet; else stay on the line up
    to so many seconds for the agent to end the call.
    """

    def __init__(
        self,
        steps: tuple[Step, ...],
        clips: Mapping[int, Pcm],
        rate_hz: int,
        view: CallView,
        *,
        linger_s: float | None = None,
    ) -> None:
        self.spans: list[StepSpan] = []
        self.hung_up = False
        self.failed = False
        self._steps = steps
        self._frames = {index: cut(pcm, rate_hz) for index, pcm in clips.items()}
        for index, step in enumerate(steps):
            if isinstance(step, Noise):
                pcm = noise(step.seconds, step.level_dbfs, rate_hz, seed=index)
                self._frames[index] = cut(pcm, rate_hz)
        self._view = view
        self._linger_s = linger_s
        self._index = 0
        self._running: _Running | None = None
        self._finished: float | None = None
        self._input_start = float("-inf")
        self._input_end = float("-inf")
        self._heard_id = -1
        self._event_index = -1

    @property
    def done(self) -> bool:
        """All steps are done."""
        return self._index >= len(self._steps)

    def frame(self, now: float) -> Output:
        """What the caller sends in the 20 ms that begin at `now`."""
        if self.hung_up:
            return Output()
        if self.failed:
            return self._hang_up()
        while not self.done:
            output = self._advance(now)
            if output is not None:
                return output
            if self.failed:
                return self._hang_up()
        return self._after_script(now)

    def keyless(self) -> None:
        """The platform has no words for the key that was just pressed: the step has failed."""
        if self._running is not None:
            self._running.span.problem = "no keys come by this dialect"
            self.failed = True

    def missed(self) -> list[StepSpan]:
        """Steps that matter and were not done when the call ended, as spans with a problem."""
        for index in range(self._index, len(self._steps)):
            step = self._steps[index]
            if isinstance(step, WaitHeard | WaitEvent) and self._met(step, float("inf"), None):
                continue
            if isinstance(step, Say | Play | Dtmf | WaitHeard | WaitEvent):
                problem = "the call had ended before"
                yet = self._running.span.start if self._running is not None else 0.0
                return [
                    StepSpan(index, kind(step), label(step), step.line, yet, None, None, problem)
                ]
        return []

    # ---- steps

    def _advance(self, now: float) -> Output | None:
        """One frame of the current step; None: the step is over (or failed) without a frame."""
        running = self._running
        if running is None:
            running = self._begin(self._steps[self._index], now)
        step = running.step
        if isinstance(step, Say | Play | Noise):
            if running.position < len(running.frames):
                running.position += 1
                return Output(running.frames[running.position - 1])
        elif isinstance(step, Dtmf):
            if running.position < len(running.digits) * KEY_FRAMES:
                key, phase = divmod(running.position, KEY_FRAMES)
                running.position += 1
                return Output(digit=running.digits[key] if phase == 0 else "")
        elif isinstance(step, Silence | WaitTime):
            if now - running.span.start < step.seconds - FRAME_S / 2:
                return Output()
        elif isinstance(step, Hangup):
            self._end(now)
            return self._hang_up()
        elif not self._met(step, now, running):
            if now - running.span.start < step.timeout_s:
                return Output()
            running.span.problem = f"waited {step.timeout_s:g} s in vain"
            self.failed = True
            return None
        self._end(now)
        return None

    def _begin(self, step: Step, now: float) -> _Running:
        as_text = step.as_text if isinstance(step, Say | Play) else None
        span = StepSpan(self._index, kind(step), label(step), step.line, now, as_text=as_text)
        self.spans.append(span)
        running = _Running(step, span, self._frames.get(self._index, []))
        if isinstance(step, Dtmf):
            running.digits = list(step.digits)
        if isinstance(step, Say | Play | Dtmf):
            self._input_start = now
        self._running = running
        return running

    def _end(self, now: float) -> None:
        running = self._running
        if running is not None:
            running.span.end = now
            if isinstance(running.step, Say | Play | Dtmf):
                self._input_end = now
        self._running = None
        self._index += 1

    def _met(
        self, step: WaitQuiet | WaitHeard | WaitEvent, now: float, running: _Running | None
    ) -> bool:
        """The wait is over. What an earlier wait has found is not found again."""
        if isinstance(step, WaitQuiet):
            return self._view.quiet(now, self._input_end)
        if not self._view.timeline:
            return self._met_by_ear(step, now, running)
        if isinstance(step, WaitHeard):
            found = self._view.heard(step.pattern, self._input_end, self._heard_id)
            if found is not None and running is not None:
                self._heard_id = found
            return found is not None
        index = self._view.happened(step.event, self._input_start, self._event_index)
        if index is not None and running is not None:
            self._event_index = index
        return index is not None

    def _met_by_ear(
        self, step: WaitHeard | WaitEvent, now: float, running: _Running | None
    ) -> bool:
        """What comes nearest to the wait: a sound for a start, the end itself, else quiet."""
        if isinstance(step, WaitEvent):
            if step.event.kind in ("utterance_queued", "utterance_started"):
                begun = running.span.start if running is not None else now
                return self._view.sounding(max(self._input_end, begun))
            if step.event.kind == "call_ended":
                return False
        return self._view.quiet(now, self._input_end)

    # ---- the end

    def _after_script(self, now: float) -> Output:
        if self._finished is None:
            self._finished = now
        waited = now - self._finished
        if self._linger_s is not None:
            return self._hang_up() if waited >= self._linger_s else Output()
        if self._view.quiet(now, self._input_end) or waited >= 30.0:
            return self._hang_up()
        return Output()

    def _hang_up(self) -> Output:
        self.hung_up = True
        return Output(hangup=True)
