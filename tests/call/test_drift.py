"""An hour with a platform whose clock is not ours."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from gateway.audio.formats import Pcm
from gateway.call.profile import CallProfile
from gateway.channels.base import Started
from gateway.channels.capabilities import Capabilities, ClearBy, Marks
from gateway.records.alignment import HeardFrames
from tests.call.harness import (
    EMULATED,
    FRAME_BYTES,
    LINEAR_8K,
    MS_PER_CHARACTER,
    NATIVE,
    RATE_HZ,
    TICK_S,
    Line,
    Platform,
)

HOUR_S = 3590
PERIOD = 40
"""Samples of one wave of the sine; a frame holds four."""
PEAK = 8000
STEEPEST = math.ceil(PEAK * 2 * math.pi / PERIOD)
"""Most by which two samples of the sine that follow one another can differ."""
SINE: Pcm = b"".join(
    round(PEAK * math.sin(2 * math.pi * n / PERIOD)).to_bytes(2, "little", signed=True)
    for n in range(PERIOD)
)
JITTER_S = 0.04
"""What a platform gathers before it begins to play."""


class DriftingPlatform(Platform):
    """Plays by a clock of its own."""

    def __init__(self, ppm: float) -> None:
        super().__init__(delay_s=JITTER_S)
        self.frame_s = TICK_S / (1 + ppm / 1e6)
        self.waits: list[float] = []
        """How long each frame waited for its turn."""
        self.gaps: list[float] = []
        """When it had nothing to play."""

    def frame(self, data: bytes, now: float) -> None:
        if now > self.free_at:
            self.gaps.append(now)
        before = len(self.played)
        super().frame(data, now)
        start = self.played[before].t
        self.waits.append(start - now)
        self.free_at = start + self.frame_s


class DriftingLine(Line):
    """The caller's audio comes by the platform's clock, too."""

    def __init__(self, ppm: float, capabilities: Capabilities, **more: Any) -> None:
        self.far = DriftingPlatform(ppm)
        self.frames_in = 0
        super().__init__(
            CallProfile(max_call_s=7200.0),
            capabilities,
            platform=self.far,
            start=Started("call-1", in_format=LINEAR_8K, out_format=LINEAR_8K),
            **more,
        )

    def _caller_audio(self) -> None:
        while (self.frames_in + 1) * self.far.frame_s <= self.now - self.begun + 1e-9:
            self.frames_in += 1
            at = self.begun + self.frames_in * self.far.frame_s
            self.machine.pace(FRAME_BYTES // 2, at)
        self.actions.clear()


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
@pytest.mark.parametrize("marks", [Marks.NATIVE, Marks.EMULATED])
def test_an_hour_of_one_stretch_neither_piles_up_nor_runs_dry(ppm: float, marks: Marks) -> None:
    able = Capabilities(
        dialect="test", marks=marks, clear=ClearBy.NATIVE, max_lead_ms=1000, continuous=True
    )
    line = DriftingLine(ppm, able)
    line.do(line.machine.ambience(SINE * 200, line.now))
    line.run(0.1)
    line.say("Hello.", 1)
    line.run(HOUR_S)
    # It ran dry at most while it began, and no frame ever waited longer than at the start.
    assert all(t < line.begun + 1.0 for t in line.far.gaps)
    late = line.far.waits[500:]
    assert min(late) > 0.005
    assert max(late) < 0.085
    assert len(line.far.played) * line.far.frame_s == pytest.approx(HOUR_S, abs=0.2)
    # Every sample of the bed came, in its order: no step is steeper than the sine itself.
    edges = [
        int.from_bytes(two.frame[:2], "little", signed=True)
        - int.from_bytes(one.frame[-2:], "little", signed=True)
        for one, two in pairwise(line.far.played[50:])
    ]
    assert max(map(abs, edges)) <= STEEPEST + 1


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
@pytest.mark.parametrize("able", [NATIVE, EMULATED], ids=["marks", "clock"])
def test_after_a_long_time_a_heard_position_is_what_the_platform_played(
    ppm: float, able: Capabilities
) -> None:
    line = DriftingLine(ppm, able)
    line.run(0.1)
    line.say("Hello.", 1)
    # One utterance of many minutes, as music on hold is.
    line.run(2.0)
    line.say("x" * 11_900 + ".", 2)
    line.run(580.0)
    utterance = line.find("utterance_started")[-1].fields["id"]
    line.keys("1")
    line.run(1.0)
    ended = line.one("utterance_ended", id=utterance)
    assert ended.fields["reason"] == "barge_in"
    heard_s = ended.fields["heard_s"]
    assert heard_s > 575
    assert heard_s == pytest.approx(line.heard_s(utterance), abs=0.065)


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_the_recorded_agent_stays_where_the_platform_played_it(ppm: float) -> None:
    track = HeardFrames(RATE_HZ)
    count = 180_000
    frame_s = TICK_S / (1 + ppm / 1e6)
    for n in range(count):
        track.add(n * frame_s, 160)
    for piece in track.placed[::1000]:
        assert piece.start / RATE_HZ == pytest.approx(piece.index * frame_s, abs=0.03)
    assert len(track.placed) == pytest.approx(count, abs=40)


class MuteLine(DriftingLine):
    """A platform that sends nothing of the caller's, so nothing tells its clock."""

    def _caller_audio(self) -> None:
        self.actions.clear()


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_without_the_callers_audio_each_pause_sets_the_clocks_right(ppm: float) -> None:
    # Within one stretch they part by a fifth of a millisecond a second, and no further.
    turns, stretch_s = 60, 50
    line = MuteLine(ppm, EMULATED)
    line.run(0.1)
    for turn in range(1, turns + 1):
        line.say("x" * (stretch_s * 1000 // MS_PER_CHARACTER - 1) + ".", turn)
        line.run(59.0)
    assert len(line.far.waits) >= turns * stretch_s / TICK_S
    begins_s = line.profile.lead_ms / 1000 + JITTER_S
    assert max(line.far.waits) < begins_s + stretch_s * 200e-6 + TICK_S / 2
    # It has nothing to play before each stretch, and never within one.
    assert len(line.far.gaps) <= turns + 1
