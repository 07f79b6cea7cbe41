"""The shared ticker: a grid that never drifts, spread over the frame, catching up after stalls."""

from __future__ import annotations

from contextvars import Context, ContextVar
from itertools import pairwise
from typing import Any, cast

import pytest

from gateway.ticker import FRAME_S, Ticker
from tests.virtual import HandLoop


def _ticker(loop: HandLoop) -> Ticker:
    return Ticker(cast(Any, loop))


def test_a_member_ticks_on_a_20_ms_grid() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    ticker.add(lambda due, late: seen.append(due))
    loop.run_until(101.0)
    gaps = {round(b - a, 9) for a, b in pairwise(seen)}
    assert gaps == {FRAME_S}
    assert len(seen) == 51


def test_a_late_wake_up_gives_the_nominal_time_and_says_how_late() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    ticker.add(lambda due, late: seen.append((due, late)))
    loop.run_until(100.1)
    loop.stall(0.025)
    loop.run_until(loop.now)
    loop.run_until(100.3)
    dues = [due for due, _ in seen]
    assert {round(b - a, 9) for a, b in pairwise(dues)} == {FRAME_S}
    assert max(late for _, late in seen) == pytest.approx(0.005, abs=1e-6)


def test_after_a_long_stall_members_tick_once_and_stay_on_the_grid() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    ticker.add(lambda due, late: seen.append(due))
    loop.run_until(100.1)
    count = len(seen)
    loop.stall(1.0)
    loop.run_until(loop.now)
    assert len(seen) <= count + 2
    loop.run_until(102.0)
    on_grid = [(due - seen[0]) / FRAME_S for due in seen]
    assert on_grid == pytest.approx([round(x) for x in on_grid], abs=1e-6)


def test_members_are_spread_over_the_frame() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    for n in range(10):
        ticker.add(lambda due, late, n=n: seen.append((n, due)))
    loop.run_until(100.2)
    phases = {n: round((due - 100.0) % FRAME_S, 6) for n, due in seen}
    assert len(set(phases.values())) == 10


def test_a_member_that_left_ticks_no_more_and_the_last_stops_the_clock() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    key = ticker.add(lambda due, late: seen.append(due))
    loop.run_until(100.1)
    ticker.remove(key)
    ticker.remove(key)
    count = len(seen)
    loop.run_until(101.0)
    assert len(seen) == count
    assert loop.pending == 0
    assert len(ticker) == 0


def test_a_member_may_leave_or_join_while_ticking() -> None:
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)
    keys: list[int] = []

    def once(due: float, late: float) -> None:
        seen.append(due)
        ticker.remove(keys[0])
        ticker.add(lambda due, late: seen.append(due))

    keys.append(ticker.add(once))
    loop.run_until(100.1)
    assert len(seen) >= 4
    ticker.close()
    assert loop.pending == 0


def test_each_member_ticks_in_the_context_that_it_was_added_in_or_adopted_by() -> None:
    name: ContextVar[str] = ContextVar("name")
    loop, seen = HandLoop(), []
    ticker = _ticker(loop)

    def join(own: str) -> int:
        name.set(own)
        return ticker.add(lambda due, late: seen.append(name.get()))

    first = Context().run(join, "first")
    Context().run(join, "second")
    loop.run_until(100.04)
    assert set(seen) == {"first", "second"}

    def rename() -> None:
        name.set("renamed")
        ticker.adopt(first)
        ticker.adopt(77)

    Context().run(rename)
    seen.clear()
    loop.run_until(100.1)
    assert set(seen) == {"renamed", "second"}
