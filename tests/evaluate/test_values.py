"""JSON values compared: exactly for payloads, kindly for what was understood from speech."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.evaluate.values import differences, fits, same

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, "1", False),
        (1, True, False),
        (0, False, False),
        (None, None, True),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        ("Monday", "monday", False),
    ],
)
def test_same(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


def test_case_spaces_and_the_last_stop_are_nothing_in_speech() -> None:
    assert fits("Monday", " monday. ")
    assert fits({"days": ["New Year"]}, {"days": ["new  year!"]})
    assert not fits("Monday", "Mon day")
    assert not fits("1", 1)


def test_each_difference_names_its_place() -> None:
    expected = {"a": {"b": [1, 2]}, "gone": True, "list": [1]}
    actual = {"a": {"b": [1, 3]}, "new": "x", "list": [1, 2]}
    assert list(differences(expected, actual)) == [
        "a.b[1]: expected 2, got 3",
        "gone: missing, expected true",
        "list: expected [1], got [1, 2]",
        'new: not expected, got "x"',
    ]


@given(JSON, JSON)
def test_there_are_differences_exactly_where_values_are_not_the_same(one: Any, other: Any) -> None:
    assert same(one, one)
    assert same(one, other) == (not list(differences(one, other)))
