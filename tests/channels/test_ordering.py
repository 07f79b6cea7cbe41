"""Audio that comes out of order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.ordering import Reorder


def put(order: Reorder, *numbers: int) -> list[int]:
    return [int(piece) for number in numbers for piece in order.put(number, str(number).encode())]


def test_what_is_in_order_is_not_held() -> None:
    order = Reorder(5)
    assert [put(order, number) for number in (1, 2, 3)] == [[1], [2], [3]]


def test_what_was_overtaken_goes_first() -> None:
    order = Reorder(5)
    assert [put(order, number) for number in (1, 3, 4, 2, 5)] == [[1], [], [], [2, 3, 4], [5]]


def test_what_is_lost_is_not_waited_for_long() -> None:
    order = Reorder(2)
    assert [put(order, number) for number in (1, 3, 4, 5, 6)] == [[1], [], [], [3, 4, 5], [6]]


def test_what_comes_after_it_was_given_up_and_what_comes_twice_is_dropped() -> None:
    order = Reorder(1)
    assert put(order, 1, 3, 4, 2, 4, 5) == [1, 3, 4, 5]


def test_the_first_may_be_overtaken_too_and_counts_may_begin_anywhere() -> None:
    assert put(Reorder(3), 2, 1, 3) == [1, 2, 3]
    assert put(Reorder(3), 0, 1, 2) == [0, 1, 2]
    assert put(Reorder(3), 700, 701) == [700, 701]


def test_a_count_that_begins_anew_is_followed() -> None:
    order = Reorder(3)
    assert put(order, 1000, 1001, 1, 2, 3) == [1000, 1001, 1, 2, 3]


@given(st.permutations(range(1, 9)), st.integers(1, 8))
def test_all_that_comes_out_is_in_order(numbers: list[int], wait: int) -> None:
    out = put(Reorder(wait), *numbers, *range(9, 20))
    assert out == sorted(out)
    if wait == 8:
        assert out == list(range(1, 20))


@given(st.lists(st.integers(), max_size=30), st.integers(0, 5))
def test_no_more_is_held_than_is_waited_for(numbers: list[int], wait: int) -> None:
    order = Reorder(wait)
    for number in numbers:
        order.put(number, b"x")
        assert len(order._held) <= wait
