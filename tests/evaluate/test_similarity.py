"""Likeness of words: same on every machine, never blind to numbers and negations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.likeness import likeness, words
from gateway.evaluate.similarity import contains, score


@pytest.mark.parametrize(
    ("expected", "actual", "points"),
    [
        ("Your parcel is here.", "your parcel is here", 4),
        ("It's open.", "Its open!", 4),
        ("Your parcel comes on Monday.", "Your parcel comes on Monday morning.", 3),
        ("We are open from nine to five.", "From nine to five we are open.", 3),
        ("Your parcel comes on Monday.", "It comes on Monday.", 2),
        ("Your parcel comes on Monday.", "Which parcel?", 1),
        ("Goodbye.", "Your parcel comes on Monday.", 0),
        ("Goodbye.", "", 0),
        # Nearly the same words, another fact.
        ("Your balance is 84.50 euros.", "Your balance is 84.55 euros.", 2),
        ("The office is open today.", "The office is not open today.", 2),
        ("We can do that for you.", "We can't do that for you.", 2),
        # Signs stand for themselves where a script has no spaces.
        ("今日は月曜日です", "今日は月曜日です。", 4),
        ("今日は月曜日です", "今日は火曜日です", 3),
    ],
)
def test_the_score(expected: str, actual: str, points: int) -> None:
    assert score(expected, actual) == points


def test_words_are_contained_side_by_side_and_in_order() -> None:
    assert contains("Please enter your number, then wait.", "your number, then")
    assert contains("anything", "")
    assert not contains("Please enter your number.", "number your")
    assert not contains("Please enter your numbers.", "your number")
    assert not contains("", "word")


@given(st.text(), st.text())
def test_a_score_is_within_its_bounds_and_has_no_direction(one: str, other: str) -> None:
    assert 0 <= score(one, other) <= 4
    assert score(one, one) == 4
    alike = likeness(words(one), words(other))
    assert 0 <= alike <= 1
    assert (alike == 1) == (words(one) == words(other))
