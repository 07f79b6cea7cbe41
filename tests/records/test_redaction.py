"""What is masked in words, and what is left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.records.redaction import MAX_TEXT, Redactor, shares

MASKED = [
    ("My account number is 4711 2233, thanks", "My account number is [number], thanks"),
    ("it's four seven one one", "it's [number]"),
    ("double oh seven three five please", "[number] please"),
    ("plus four four, seven seven double oh nine", "plus [number]"),
    ("+44 (0) 7700 900123", "+[number]"),
    ("card 4111-1111-1111-1111 until 03/27", "card [number] until [number]"),
    ("one two uh three four", "[number]"),
    ("four for to two", "[number]"),
    ("two thousand five hundred", "[number]"),
    ("nineteen eighty four", "[number]"),
    ("fifteen one two", "[number]"),
    ("please take twenty one twenty one", "please take [number]"),
    ("AB12 3CD4 5 is my booking", "[number] is my booking"),
    ("I was born on March 3rd 1985", "I was born on March [number]"),
    ("Meine Nummer ist vier sieben eins eins", "Meine Nummer ist [number]"),
    ("zweitausendfünfhundert", "[number]"),
    ("mi número es uno dos tres cuatro", "mi número es [number]"),
    ("mon code est zéro huit deux neuf", "mon code est [number]"),
    ("the pin is 1 2 3 4?", "the pin is [number]?"),
    ("write to a.b+c@mail.example.co.uk now", "write to [email] now"),
    ("john dot smith at example dot com please", "[email] please"),
    ("j o h n at gmail.com", "[email]"),
    ("my name is anna smith and I want my bill", "my name is [name] and I want my bill"),
    ("My name's Bob. I call about it", "My name's [name]. I call about it"),
    ("This is Anna Smith from Leeds", "This is [name] from Leeds"),
    ("my last name is S M I T H", "my last name is [name]"),
    ("ich heiße Jürgen von der Heide und", "ich heiße [name] und"),
    ("me llamo José García", "me llamo [name]"),
    ("je m'appelle Zoé", "je m'appelle [name]"),
    ("I live at 12 Old Mill Road in York", "I live at [address] in York"),
    ("Lindenstraße 12 in Bonn", "[address] in Bonn"),
]
LEFT = [
    "",
    "this is great",
    "at 10:30 tomorrow",
    "your balance is 42.17 euros",
    "that one is for two people",
    "two",
    "it took ninety nine days",
    "one hundred and twenty kilowatts",
    "I have three children",
    "call me back later",
    "My name is not the matter",
    "meet me at the station",
]


@pytest.mark.parametrize(("said", "kept"), MASKED)
def test_personal_data_is_masked(said: str, kept: str) -> None:
    assert Redactor().redact(said).text == kept


@pytest.mark.parametrize("said", LEFT)
def test_other_words_are_left(said: str) -> None:
    assert Redactor().redact(said).text == said


@pytest.mark.parametrize("said", ["47", "4 7", "four seven", "seven, one."])
def test_digits_alone_are_a_piece_of_a_longer_number(said: str) -> None:
    assert "[number]" in Redactor().redact(said).text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("it starts with four seven", "it starts with [number]"),
        ("one two two, that was it", "[number], that was it"),
        ("we are four or seven people", "we are four or seven people"),
        ("it ends with a four", "it ends with a four"),
        ("that makes 42", "that makes 42"),
    ],
)
def test_so_are_digits_said_one_by_one_where_a_line_begins_or_ends(said: str, kept: str) -> None:
    assert Redactor().redact(said).text == kept


def test_a_name_once_given_is_masked_in_all_later_lines() -> None:
    redactor = Redactor()
    redactor.redact("my name is Anna Smith")
    later = redactor.redact("Thank you, Anna. Is this Smith's bill?", by_caller=False)
    assert later.text == "Thank you, [name]. Is this [name] bill?"


def test_what_introduces_a_caller_does_not_make_a_name_of_the_agent_s_words() -> None:
    said = "This is Northlight Energy."
    assert Redactor().redact(said, by_caller=False).text == said
    assert Redactor().redact(said).text == "This is [name]."


def test_a_text_too_long_to_be_judged_is_masked_whole() -> None:
    assert Redactor().redact("word " * MAX_TEXT).text == "[text]"


@given(st.text(max_size=200))
def test_any_text_can_be_judged_and_hidden_parts_are_really_gone(text: str) -> None:
    redacted = Redactor().redact(text)
    at = 0
    for start, end in redacted.hidden:
        assert at <= start < end <= len(text)
        at = end
    for first, last in shares(text, redacted.hidden):
        assert 0 <= first <= last <= 1


@given(
    st.lists(
        st.sampled_from(
            [
                "4711",
                "four",
                "7",
                "um",
                "zwei",
                "oh",
                "bill",
                "my name is",
                "+49",
                "-",
                ".",
                "ninety",
            ]
        ),
        max_size=12,
    )
)
def test_no_written_number_of_four_digits_survives(words: list[str]) -> None:
    kept = Redactor().redact(" ".join(words)).text
    assert not re.search(r"\d[\d\s]{2,}\d", kept), kept
    assert "4711" not in kept


def test_digits_take_the_time_of_their_words() -> None:
    said = "number 47 please"
    ((first, last),) = shares(said, [(7, 9)])
    assert 0.25 < first < 0.35
    assert 0.6 < last < 0.75


def test_text_without_sound_hides_everything_or_nothing() -> None:
    assert shares("...", [(0, 1)]) == [(0.0, 1.0)]
    assert shares("...", []) == []
