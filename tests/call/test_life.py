"""The life of a call: every pair of state and event."""

from __future__ import annotations

import itertools

from gateway.call.life import TRANSITIONS, Life, LifeEvent, after

ENDINGS = {
    Life.DRAINING: (Life.HANDING, Life.ENDED),
    Life.HANDING: (Life.FAREWELL, Life.ENDED),
    Life.FAREWELL: (Life.ENDED,),
    Life.LEAVING: (Life.ENDED,),
}
PAIRS = list(itertools.product(Life, LifeEvent))


def test_the_table_holds_every_pair_and_no_other() -> None:
    assert set(TRANSITIONS) == set(PAIRS)
    assert all(isinstance(after(state, event), Life) for state, event in PAIRS)


def test_no_event_brings_a_call_back() -> None:
    for state, event in PAIRS:
        following = after(state, event)
        if state is Life.ENDED:
            assert following is Life.ENDED
        if state in ENDINGS:
            assert following is state or following in ENDINGS[state]
        if state is not Life.IDLE:
            assert following is not Life.IDLE


def test_every_state_can_be_cut_off() -> None:
    assert {after(state, LifeEvent.CUT_OFF) for state in Life} == {Life.ENDED}


def test_every_state_can_be_reached() -> None:
    reached = {Life.IDLE}
    while True:
        more = reached | {after(s, e) for s, e in PAIRS if s in reached}
        if more == reached:
            break
        reached = more
    assert reached == set(Life)
