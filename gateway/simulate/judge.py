"""Were the expectations met? Every line of a scenario's `expect` gets a tick or a cross."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.simulate.caller import StepSpan
from gateway.simulate.patterns import TimelineRecord, matches
from gateway.simulate.result import CallLog, Verdict
from gateway.simulate.scenario import (
    EventPattern,
    Expectation,
    ExpectEnded,
    ExpectEvent,
    ExpectHeard,
    Window,
)

_FLAGS = re.IGNORECASE | re.MULTILINE
_MAX_DETAIL = 160
_ACTIVE = frozenset(("say", "play", "dtmf"))


@dataclass(frozen=True, slots=True)
class _Heard:
    """Words that the caller heard, and from when to when."""

    text: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class _Allowed:
    """A window in seconds of the timeline."""

    not_before: float
    not_after: float
    within_s: float | None
    steps: Sequence[StepSpan]
    missing: str = ""

    def holds(self, t: float) -> bool:
        if not self.not_before <= t <= self.not_after:
            return False
        if self.within_s is None:
            return True
        # An answer may begin in the silence at the end of the caller's own clip.
        ends = [step.end or step.start for step in self.steps if step.start <= t]
        return t - max(ends, default=0.0) <= self.within_s


def judge(log: CallLog) -> tuple[Verdict, ...]:
    """All verdicts: caller steps that failed first, then the expectations in order."""
    verdicts = [
        Verdict(False, f"caller: {step.label}", step.problem, step.line)
        for step in (*log.steps, *log.missed)
        if step.problem
    ]
    verdicts += [
        Verdict(False, "the platform accepts every message", complaint, 0)
        for complaint in log.complaints
    ]
    verdicts += [_judge(expectation, log) for expectation in log.scenario.expect]
    return tuple(verdicts)


def _judge(expectation: Expectation, log: CallLog) -> Verdict:
    if isinstance(expectation, ExpectEnded):
        text = f"ended: {expectation.reason.value}"
        ended = log.ended or "not at all"
        ok = ended == expectation.reason
        return Verdict(ok, text, "" if ok else f"it ended {ended}", expectation.line)
    allowed = _window(expectation.window, log)
    if isinstance(expectation, ExpectHeard):
        return _heard(expectation, log, allowed)
    return _event(expectation, log, allowed)


def _window(window: Window, log: CallLog) -> _Allowed:
    not_before, not_after = float("-inf"), float("inf")
    missing = ""
    if window.after is not None:
        found = _first(window.after, log.timeline)
        if found is None:
            missing = f"after: {window.after} never happened"
        else:
            not_before = float(found["t"])
    if window.before is not None:
        found = _first(window.before, log.timeline)
        if found is None:
            missing = f"before: {window.before} never happened"
        else:
            not_after = float(found["t"])
    active = [step for step in log.steps if step.kind in _ACTIVE]
    return _Allowed(not_before, not_after, window.within_s, active, missing)


def _first(pattern: EventPattern, timeline: Sequence[TimelineRecord]) -> TimelineRecord | None:
    return next((record for record in timeline if matches(pattern, record)), None)


def _phrase(expectation: ExpectHeard | ExpectEvent, head: str) -> str:
    window = expectation.window
    parts = [head]
    if window.within_s is not None:
        parts.append(f"within {window.within_s:g}s")
    if window.after is not None:
        parts.append(f"after {window.after}")
    if window.before is not None:
        parts.append(f"before {window.before}")
    return " ".join(parts)


def _utterances(timeline: Sequence[TimelineRecord]) -> list[_Heard]:
    starts: dict[Any, float] = {}
    heard: list[_Heard] = []
    for record in timeline:
        kind = record.get("kind")
        if kind == "utterance_started":
            starts[record.get("id")] = float(record["t"])
        elif kind == "utterance_ended":
            text = str(record.get("heard_text") or "")
            end = float(record["t"])
            if text:
                heard.append(_Heard(text, starts.get(record.get("id"), end), end))
    return heard


def _heard(expectation: ExpectHeard, log: CallLog, allowed: _Allowed) -> Verdict:
    utterances = _utterances(log.timeline)
    name = "not heard" if expectation.negative else "heard"
    text = _phrase(expectation, f"{name}: {expectation.pattern}")
    if allowed.missing:
        return Verdict(False, text, allowed.missing, expectation.line)
    found = _search(expectation.pattern, utterances, allowed)
    if expectation.negative:
        detail = f"at {found.start:.2f}s: {_short(found.text)}" if found else ""
        return Verdict(found is None, text, detail, expectation.line)
    if found is not None:
        return Verdict(True, text, f"at {found.start:.2f}s", expectation.line)
    outside = _search(expectation.pattern, utterances, _Allowed(-1e9, 1e9, None, ()))
    if outside is not None:
        detail = f"heard only at {outside.start:.2f}s"
    else:
        said = " | ".join(utterance.text for utterance in utterances)
        detail = f"heard: {_short(said)}" if said else "nothing was heard"
    return Verdict(False, text, detail, expectation.line)


def _search(pattern: str, utterances: Sequence[_Heard], allowed: _Allowed) -> _Heard | None:
    """The first match: one utterance a line, then all as one running text."""
    regex = re.compile(pattern, _FLAGS)
    for joint in ("\n", " "):
        text = joint.join(utterance.text.replace("\n", " ") for utterance in utterances)
        for match in regex.finditer(text):
            position = 0
            for utterance in utterances:
                position += len(utterance.text) + 1
                if match.start() < position:
                    if allowed.holds(utterance.start):
                        return _Heard(match.group() or utterance.text, utterance.start, 0.0)
                    break
    return None


def _event(expectation: ExpectEvent, log: CallLog, allowed: _Allowed) -> Verdict:
    text = _phrase(expectation, f"event: {expectation.event}")
    if expectation.count is not None:
        text += f" count {expectation.count}"
    if allowed.missing:
        return Verdict(False, text, allowed.missing, expectation.line)
    every = [record for record in log.timeline if matches(expectation.event, record)]
    found = [record for record in every if allowed.holds(float(record["t"]))]
    times = ", ".join(f"{record['t']:.2f}s" for record in found[:5])
    if expectation.count is not None:
        ok = len(found) == expectation.count
        detail = f"{len(found)} times" + (f" at {times}" if times else "")
        return Verdict(ok, text, detail, expectation.line)
    if found:
        return Verdict(True, text, f"at {times}", expectation.line)
    return Verdict(False, text, _nearest(expectation.event, every, log), expectation.line)


def _nearest(event: EventPattern, every: Sequence[TimelineRecord], log: CallLog) -> str:
    if every:
        return f"only at {every[0]['t']:.2f}s"
    alike = [record for record in log.timeline if record.get("kind") == event.kind]
    if not alike:
        return f"there is no {event.kind}"
    shown = {key: alike[-1].get(key) for key in event.fields}
    return f"{len(alike)} of its kind, the last with {_short(str(shown))}"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 1] + "…"
