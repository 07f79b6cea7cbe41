"""Where sentences end, in whole texts and in growing ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sentences import complete_until, seems_complete, sentence_ends


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("One. Two", "Two"),
        ("One. Two. Three.", "Three."),
        ("Dr. Who", "Dr. Who"),
        ("It is No. 5 or 3.5 k", "It is No. 5 or 3.5 k"),
        ("No. I cannot", "I cannot"),
        ("Really?! Yes", "Yes"),
        ("a line\n\nanother. And", "And"),
        ("- one\n- two", "- two"),
        ("One.", "One."),
    ],
)
def test_the_whole_sentences_of_a_growing_text(text: str, rest: str) -> None:
    assert text[complete_until(text) :] == rest


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("It is sent.", True),
        ("It is sent. ", True),
        ('He said "yes."', True),
        ("Really?", True),
        ("Ask Dr.", False),
        ("It costs 3.", False),
        ("See no.", False),
        ("Well,", False),
        ("", False),
    ],
)
def test_what_may_be_the_end_of_a_sentence(text: str, complete: bool) -> None:
    assert seems_complete(text) is complete


@given(st.text(st.sampled_from("abC1.!? \n\"'"), max_size=60))
def test_ends_are_in_order_and_inside(text: str) -> None:
    ends = sentence_ends(text)
    assert ends == sorted(set(ends))
    assert all(0 < end < len(text) for end in ends)
    assert 0 <= complete_until(text) <= len(text)
