"""Where audio lies in a recording: by when it came, and by when it was heard."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.records.alignment import FRAME_S, GAP_S, HeardFrames, place_stream

RATE = 8000
FRAME = 160


def starts(came_s: list[float], samples: int = FRAME) -> list[int]:
    return [p.start for p in place_stream(came_s, [samples] * len(came_s), RATE)]


def test_a_steady_stream_lies_where_it_came() -> None:
    assert starts([0.02 * n for n in range(100)]) == [FRAME * n for n in range(100)]


def test_silence_stands_where_nothing_was_sent() -> None:
    came = [0.0, 0.02, 0.04, 1.04, 1.06]
    assert starts(came) == [0, 160, 320, 8320, 8480]


def test_a_burst_after_a_stall_has_no_gap_in_it_or_before_it() -> None:
    steady = [0.02 * n for n in range(10)]
    stalled = [0.5] * 16 + [0.02 * n for n in range(26, 40)]
    assert starts(steady + stalled) == [FRAME * n for n in range(40)]


def test_jitter_makes_no_gaps() -> None:
    came = [0.02 * n + (0.005, 0.0, 0.03, 0.012)[n % 4] for n in range(200)]
    placed = starts(came)
    assert [b - a for a, b in pairwise(placed)] == [FRAME] * 199


def test_a_long_piece_ends_when_it_came() -> None:
    assert starts([1.0], 800) == [round((1.0 + FRAME_S) * RATE) - 800]


def test_what_came_before_the_call_counts_from_its_beginning() -> None:
    assert starts([0.0], 8000) == [0]


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 800)), max_size=60))
def test_pieces_never_overlap_and_keep_their_order(steps: list[tuple[float, int]]) -> None:
    came, at = [], 0.0
    for step, _ in steps:
        at += step
        came.append(at)
    samples = [length for _, length in steps]
    placed = place_stream(came, samples, RATE)
    assert [p.index for p in placed] == list(range(len(steps)))
    end = 0
    for piece in placed:
        assert piece.start >= end
        assert piece.start == end or piece.start - end >= 1
        end = piece.start + piece.samples
    gaps = [b.start - a.start - a.samples for a, b in pairwise(placed)]
    assert all(gap == 0 or gap >= GAP_S * RATE for gap in gaps)


def heard(*frames: float) -> HeardFrames:
    track = HeardFrames(RATE)
    for at in frames:
        track.add(at, FRAME)
    return track


def lies(track: HeardFrames) -> list[tuple[int, int, int]]:
    return [(p.index, p.start, p.samples) for p in track.placed]


def test_frames_lie_where_they_are_heard() -> None:
    assert lies(heard(0.5, 0.52, 1.0)) == [(0, 4000, 160), (1, 4160, 160), (2, 8000, 160)]


@pytest.mark.parametrize("error", [-1e-9, 0.0, 1e-9, 6e-5])
def test_rounding_leaves_no_hole_between_frames(error: float) -> None:
    track = heard(*(0.1 + 0.02 * n + error * (n % 2) for n in range(50)))
    assert [p.start for p in track.placed] == [800 + FRAME * n for n in range(50)]


def test_cut_audio_is_heard_up_to_the_sample() -> None:
    track = heard(0.0, 0.02, 0.04, 0.06)
    track.unheard(0.03)
    assert lies(track) == [(0, 0, 160), (1, 160, 80)]


def test_what_follows_a_cut_is_heard() -> None:
    track = heard(0.0, 0.02, 0.04)
    track.unheard(0.02)
    track.add(0.06, FRAME)
    assert lies(track) == [(0, 0, 160), (3, 480, 160)]


def test_a_cut_from_the_start_leaves_nothing() -> None:
    track = heard(0.0, 0.02)
    track.unheard(-1.0)
    assert not track.placed


@pytest.mark.parametrize("ppm", [-200.0, 200.0])
def test_an_hour_of_a_clock_that_is_not_ours_stays_in_its_place(ppm: float) -> None:
    frame_s = 0.02 / (1 + ppm / 1e6)
    came = [n * frame_s for n in range(round(3600 / frame_s))]
    placed = place_stream(came, [FRAME] * len(came), RATE)
    # Of a fast clock hardly anything is left out.
    assert len(placed) >= len(came) - 60
    assert max(abs(p.start / RATE - came[p.index]) for p in placed) < 0.1
    assert all(b.start >= a.start + a.samples for a, b in pairwise(placed))
