"""What is known of a call once it is over, whether it was simulated or real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.audio.formats import Pcm
from gateway.audio.resample import resample_clip
from gateway.simulate.caller import StepSpan
from gateway.simulate.patterns import TimelineRecord
from gateway.simulate.scenario import Scenario

TIME_DIGITS = 3
"""Decimals of a second that reports show: float noise does not reach a file."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judged line: an expectation, or a caller step that could not be done."""

    ok: bool
    text: str
    detail: str
    line: int

    def __str__(self) -> str:
        mark = "✓" if self.ok else "✗"
        return f"{mark} {self.text}" + (f"   ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class CallLog:
    """The raw yield of one call; both tracks begin with the call and share `rate_hz`."""

    scenario: Scenario
    channel: str
    call_id: str
    timeline: Sequence[TimelineRecord]
    steps: Sequence[StepSpan]
    missed: Sequence[StepSpan]
    sent: Pcm
    heard: Pcm
    rate_hz: int
    complaints: Sequence[str] = ()
    """What the platform found wrong with the gateway's messages."""

    @property
    def seconds(self) -> float:
        """Length of the call."""
        return max(len(self.sent), len(self.heard)) / 2 / self.rate_hz

    @property
    def ended(self) -> str:
        """Why the call ended; empty where nobody said."""
        for record in reversed(self.timeline):
            if record.get("kind") == "call_ended":
                return str(record.get("reason"))
        return ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A call and what came of its expectations."""

    log: CallLog
    verdicts: Sequence[Verdict] = field(default_factory=tuple)

    @property
    def ok(self) -> bool:
        """Every line holds."""
        return all(verdict.ok for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """`result.json`: verdicts, end, length, what was heard and understood."""
        log = self.log
        return {
            "scenario": log.scenario.name,
            "channel": log.channel,
            "call_id": log.call_id,
            "ok": self.ok,
            "ended": log.ended,
            "seconds": round(log.seconds, TIME_DIGITS),
            "verdicts": [
                {"ok": v.ok, "text": v.text, "detail": v.detail, "line": v.line}
                for v in self.verdicts
            ],
            "heard": [
                {"id": r.get("id"), "text": r.get("heard_text", ""), "reason": r.get("reason")}
                for r in log.timeline
                if r.get("kind") == "utterance_ended"
            ],
            "understood": [
                r.get("text", "")
                for r in log.timeline
                if r.get("kind") == "user_text" and r.get("final", True)
            ],
            "steps": [_step_json(step) for step in (*log.steps, *log.missed)],
        }


def _step_json(step: StepSpan) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "label": step.label,
        "line": step.line,
        "start": round(step.start, TIME_DIGITS),
        "end": None if step.end is None else round(step.end, TIME_DIGITS),
        "problem": step.problem,
    }


def at_one_rate(sent: Pcm, sent_hz: int, heard: Pcm, heard_hz: int) -> tuple[Pcm, Pcm, int]:
    """Both tracks at the higher of the two rates."""
    rate_hz = max(sent_hz, heard_hz)
    if sent_hz != rate_hz:
        sent = resample_clip(sent, sent_hz, rate_hz)
    if heard_hz != rate_hz:
        heard = resample_clip(heard, heard_hz, rate_hz)
    return sent, heard, rate_hz


def timeline_record(t: float, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """One timeline line with a rounded time."""
    return {"t": round(t, TIME_DIGITS), "kind": kind, **fields}
