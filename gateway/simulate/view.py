"""What a caller can know of a running call: its timeline so far, and how loud the line is.

Times are seconds of the observer's clock (the moment a record became known), not the record's `t`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.simulate.patterns import TimelineRecord, matches
from gateway.simulate.scenario import EventPattern

QUIET_S = 0.3
"""Nothing sounds, waits or thinks for so long: the agent is quiet."""
EAR_QUIET_S = 1.0
"""The same for a caller who only has ears; longer than a pause between two sentences."""
_LOST_TURN_S = 3.0
_AUDIBLE_DBFS = -50.0


@dataclass(slots=True)
class HeardUtterance:
    """One utterance as the caller meets it."""

    ended: float | None = None
    heard_text: str = ""
    completed: bool = False


class CallView:
    """Follows one call's records. `timeline=False`: no records will come, ears alone must do."""

    def __init__(self, *, timeline: bool = True) -> None:
        self.timeline = timeline
        self.records: list[tuple[float, TimelineRecord]] = []
        self.utterances: dict[int, HeardUtterance] = {}
        self.ended = False
        self._open_turns = 0
        self._turn_began: dict[int, float] = {}
        self._answered_turns: list[float] = []
        self._last_busy = 0.0
        self._last_completion: float | None = None
        self._last_input: float | None = None
        self._speaking = False
        self._last_audible: float | None = None

    def record(self, record: TimelineRecord, now: float) -> None:
        """Take the next record of the timeline."""
        self.records.append((now, record))
        kind = record.get("kind")
        if kind == "utterance_queued":
            self.utterances[record["id"]] = HeardUtterance()
        elif kind == "utterance_ended":
            utterance = self.utterances.setdefault(record["id"], HeardUtterance())
            utterance.ended = now
            utterance.completed = record.get("reason") == "completed"
            utterance.heard_text = str(record.get("heard_text") or "")
        elif kind == "runtime_input":
            self._input(record, now)
        elif kind == "runtime_output":
            self._output(record, now)
        elif kind in ("user_speech_started", "user_speech_ended"):
            self._speaking = kind == "user_speech_started"
        elif kind == "call_ended":
            self.ended = True
        self._last_busy = now

    def _input(self, record: TimelineRecord, now: float) -> None:
        text = str(record.get("text") or record.get("event") or "")
        opens_only = record.get("type") == "text" and (
            not text or text.startswith("<context>agent speaking was interrupted. user only")
        )
        # Answers of the client's functions belong to the turn that waits for them.
        if record.get("type") in ("variables", "audio", "toolResponses") or opens_only:
            return
        self._open_turns += 1
        self._last_input = now

    def _output(self, record: TimelineRecord, now: float) -> None:
        turn = int(record.get("turn") or 0)
        if record.get("type") != "turnCompleted":
            self._open_turns = max(self._open_turns, 1)
            self._turn_began.setdefault(turn, now)
            return
        self._open_turns = max(0, self._open_turns - 1)
        self._last_completion = now
        began = self._turn_began.pop(turn, None)
        if began is None:
            began = self._last_input if self._last_input is not None else now
        self._answered_turns.append(began)

    def hear(self, level_dbfs: float, now: float) -> None:
        """Take the level of the last 20 ms of what the caller hears."""
        if level_dbfs > _AUDIBLE_DBFS:
            self._last_audible = now

    def quiet(self, now: float, since: float) -> bool:
        """The agent has said something (or completed a turn) after `since` and is quiet now."""
        if not self.timeline:
            heard = self._last_audible
            return heard is not None and heard > since and now - heard >= EAR_QUIET_S
        spoke = any(u.completed and (u.ended or 0.0) > since for u in self.utterances.values())
        # A turn that began before the caller's last words is no answer to them.
        answered = any(began > since for began in self._answered_turns)
        if not (spoke or answered) or self._speaking or now - self._last_busy < QUIET_S:
            return False
        if any(u.ended is None for u in self.utterances.values()):
            return False
        return self._open_turns == 0 or self._turn_was_lost(now)

    def _turn_was_lost(self, now: float) -> bool:
        """A runtime that merges two inputs into one turn completes only once."""
        answered = (
            self._last_completion is not None
            and self._last_input is not None
            and self._last_completion > self._last_input
        )
        return answered and now - self._last_busy >= _LOST_TURN_S

    def sounding(self, since: float) -> bool:
        """Something was audible after `since`; for a caller who only has ears."""
        return self._last_audible is not None and self._last_audible > since

    def heard(self, pattern: str, since: float, after_id: int) -> int | None:
        """The first utterance later than `after_id`, heard out after `since`, that matches."""
        for number, utterance in self.utterances.items():
            if number <= after_id or utterance.ended is None or utterance.ended <= since:
                continue
            if re.search(pattern, utterance.heard_text, re.IGNORECASE):
                return number
        return None

    def happened(self, event: EventPattern, since: float, after_index: int) -> int | None:
        """The index of the first record from `since` on, later than `after_index`, that matches."""
        for index in range(after_index + 1, len(self.records)):
            moment, record = self.records[index]
            if moment >= since and matches(event, record):
                return index
        return None
