"""What came of a row, however it was run, and whether that is what the row says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gateway.call.events import InputType, ToRuntime
from tests.call.rules.row import FRAME_S, RATE_HZ, Row, Who

NEAR = 0.035
"""How far a sample may be from the constant it stands for: the coding of the line included."""
GAP = RATE_HZ // 25
"""Samples without a sound that still count as part of it."""


@dataclass(frozen=True)
class Outcome:
    records: Sequence[Mapping[str, Any]]
    """With `t` since the agent was told, and `kind`."""
    inputs: Sequence[ToRuntime]
    ear: NDArray[np.int16]
    """Every sample that the caller heard."""

    def find(self, kind: str) -> list[Mapping[str, Any]]:
        return [record for record in self.records if record["kind"] == kind]


def told(inputs: Sequence[ToRuntime]) -> list[str]:
    """The agent's inputs as a row writes them."""
    marks = {InputType.DTMF: "#", InputType.EVENT: "!"}
    found = []
    for item in inputs:
        mark = "~" if item.will_continue else marks.get(item.type, "")
        found.append(mark + item.text)
    return found


class Ear:
    """Who was heard when."""

    def __init__(self, row: Row, outcome: Outcome) -> None:
        self._row = row
        self._queued = {r["id"]: r for r in outcome.find("utterance_queued")}
        self.samples = outcome.ear.astype(float)

    def value(self, who: Who) -> float:
        if isinstance(who, str):
            return self._row.file_value(who)
        queued = self._queued[who]
        if not queued["text"] and isinstance(self._row.files.get(queued["uri"]), str):
            return math.nan
        if queued["uri"] in self._row.files and not isinstance(self._row.files[queued["uri"]], str):
            return self._row.file_value(queued["uri"])
        return self._row.speech_value(queued["text"].split(". ")[0])

    def _expected(self, who: Who) -> float:
        gain_db = (self._row.level_db or {}).get(who, 0.0)
        return float(self.value(who) * 10 ** (gain_db / 20))

    def _is(self, who: Who) -> NDArray[np.bool_]:
        level = self._expected(who)
        return np.asarray(np.abs(self.samples - self._row.bed - level) <= level * NEAR)

    def seconds(self, who: Who) -> float:
        return float(self._is(who).sum() / RATE_HZ)

    def stretches(self, who: Who) -> list[tuple[float, float]]:
        """From when to when; short gaps are none."""
        at = np.flatnonzero(self._is(who))
        if not len(at):
            return []
        splits = np.flatnonzero(np.diff(at) > GAP)
        starts = at[np.r_[0, splits + 1]]
        ends = at[np.r_[splits, len(at) - 1]]
        found = [(a / RATE_HZ, (b + 1) / RATE_HZ) for a, b in zip(starts, ends, strict=True)]
        # A fade passes through the values of others.
        return [(float(a), float(b)) for a, b in found if b - a > 0.005]

    def order(self) -> list[Who]:
        """Utterances by their first sound."""
        first = {who: self.stretches(who) for who in self._queued}
        return sorted((w for w in first if first[w]), key=lambda w: first[w][0][0])

    def level_db(self, who: Who) -> float:
        heard = self.samples[self._is(who)]
        assert len(heard), f"{who} was never heard"
        return float(20 * math.log10(np.median(heard) / self.value(who)))

    def steepest(self, at_s: float) -> float:
        """The largest step between neighbours near a moment, as part of what is loudest there."""
        near = self.samples[round((at_s - 0.03) * RATE_HZ) : round((at_s + 0.06) * RATE_HZ)]
        return float(np.abs(np.diff(near)).max() / max(1.0, np.abs(near).max()))

    def fade_s(self, who: Who) -> float:
        """From the last sample at full level to the first of silence."""
        last = int(np.flatnonzero(self._is(who))[-1])
        rest = np.abs(self.samples[last:])
        silent = np.flatnonzero(rest < 0.02 * self.value(who))
        return float(silent[0] / RATE_HZ)


def check(row: Row, outcome: Outcome, *, exact: bool) -> None:
    """Assert what the row says. `exact`: times too, to one frame; else what, and in what order."""
    slack = FRAME_S + 0.002 if exact else 0.6
    _timeline(row, outcome, exact=exact)
    if row.bed and not exact:
        # A file of a constant sample is no constant any more once its seam is mended.
        assert np.mean(np.abs(outcome.ear) > row.bed / 2) > 0.7, "the bed is not heard"
        return
    ear = Ear(row, outcome)
    if row.order is not None:
        assert ear.order() == list(row.order)
    for who, seconds in (row.heard or {}).items():
        assert ear.seconds(who) == pytest.approx(seconds, abs=slack), f"{who} was heard"
    for who, level_db in (row.level_db or {}).items():
        assert ear.level_db(who) == pytest.approx(level_db, abs=0.1 if exact else 0.5)
    if not exact:
        return
    if row.audible is not None:
        _audible(row, ear)
    for start, end in row.silent_between:
        stretch = ear.samples[round(start * RATE_HZ) : round(end * RATE_HZ)] - row.bed
        assert np.abs(stretch).max() <= 2, f"something is heard between {start} and {end}"
    if row.click_free:
        for at_s in _breaks(outcome):
            assert ear.steepest(at_s) < 0.12, f"a click at {at_s}"
    for who, seconds in (row.fade_s or {}).items():
        assert ear.fade_s(who) == pytest.approx(seconds, rel=0.35)


def _breaks(outcome: Outcome) -> list[float]:
    """When a sound was cut, or went on."""
    kinds = ("barge_in", "held", "resumed")
    found = [r["t"] for kind in kinds for r in outcome.find(kind)]
    return found + [r["t"] for r in outcome.find("utterance_ended") if r["reason"] == "cancelled"]


def _audible(row: Row, ear: Ear) -> None:
    assert row.audible is not None
    wanted: dict[Who, list[tuple[float, float]]] = {}
    for who, start, end in row.audible:
        wanted.setdefault(who, []).append((start, end))
    for who, stretches in wanted.items():
        heard = ear.stretches(who)
        assert len(heard) == len(stretches), f"{who}: {heard}"
        for (start, end), (a, b) in zip(stretches, heard, strict=True):
            assert a == pytest.approx(start, abs=FRAME_S + 0.002), f"{who} begins: {heard}"
            assert b == pytest.approx(end, abs=FRAME_S + 0.002), f"{who} ends: {heard}"


def _rough(ends: Mapping[int, str], exact: bool) -> dict[int, str]:
    """Which frame an interruption hits decides whether what it cut had begun."""
    return {n: why if exact or why != "dropped" else "barge_in" for n, why in ends.items()}


def _unquoted(texts: Sequence[str]) -> list[str]:
    """How much was heard is known to the word in virtual time only."""
    return [re.sub(r"heard '.+' in", "heard '…' in", text) for text in texts]


def _timeline(row: Row, outcome: Outcome, *, exact: bool) -> None:
    ended = {r["id"]: r["reason"] for r in outcome.find("utterance_ended")}
    if row.ends is not None:
        assert _rough(ended, exact) == _rough(row.ends, exact)
    cuts = [(r["by"], list(r["cut"])) for r in outcome.find("barge_in")]
    if row.cut is not None:
        assert cuts == [(by, list(ids)) for by, ids in row.cut]
    if row.told is not None:
        heard = told(outcome.inputs)
        assert heard == list(row.told) if exact else _unquoted(heard) == _unquoted(row.told)
    if row.user is not None:
        words = [r["text"] for r in outcome.find("user_text") if r["final"]]
        assert words == list(row.user)
    for number, words in (row.heard_words or {}).items() if exact else ():
        (record,) = (r for r in outcome.find("utterance_ended") if r["id"] == number)
        assert record["heard_text"] == words
    assert [r["code"] for r in outcome.find("error")] == list(row.errors)
    for kind, count in row.kinds.items():
        assert len(outcome.find(kind)) == count, kind
    ends = [r["reason"] for r in outcome.find("call_ended")]
    assert ends == ([row.ended] if row.ended else [])
    if row.transfer is not None:
        assert [r["target"] for r in outcome.find("transfer")] == [row.transfer]
    if exact:
        if row.cut_at is not None:
            (cut,) = outcome.find("barge_in")
            assert cut["t"] == pytest.approx(row.cut_at, abs=FRAME_S)
        for number, start in (row.starts or {}).items():
            (record,) = (r for r in outcome.find("utterance_started") if r["id"] == number)
            assert record["t"] == pytest.approx(start, abs=FRAME_S)
