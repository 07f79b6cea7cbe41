"""Text is cut into sentences and cleaned before an engine sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.speech.text import MAX_SENTENCE_CHARS, prepare, sentences, strip_markup


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Hello. How are you? Fine!", ["Hello.", "How are you?", "Fine!"]),
        ("Dr. Smith owes 3.5 euros. He pays.", ["Dr. Smith owes 3.5 euros.", "He pays."]),
        ("Bring fruit, e.g. apples. Thanks.", ["Bring fruit, e.g. apples.", "Thanks."]),
        ("J. K. Rowling wrote it. I did not.", ["J. K. Rowling wrote it.", "I did not."]),
        ("No. I cannot.", ["No.", "I cannot."]),
        ("Take bus No. 5 today.", ["Take bus No. 5 today."]),
        ("We open at 9 a.m. on Mondays.", ["We open at 9 a.m. on Mondays."]),
        ("Well... maybe. So?", ["Well... maybe.", "So?"]),
        ('She said "Go!" and left. Then?', ['She said "Go!" and left.', "Then?"]),
        ("hello! how are you", ["hello!", "how are you"]),
        ("It is you and I. We go.", ["It is you and I.", "We go."]),
        ("One line\nthat wraps. Two", ["One line that wraps.", "Two"]),
        ("- first\n- second", ["- first", "- second"]),
        ("Title\n\nbody", ["Title", "body"]),
        ("Visit example.com now.", ["Visit example.com now."]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences(text: str, cut: list[str]) -> None:
    assert sentences(text) == cut


def test_long_text_without_punctuation_is_cut_between_words() -> None:
    text = "word " * 400
    pieces = sentences(text)
    assert all(len(piece) <= MAX_SENTENCE_CHARS for piece in pieces)
    assert " ".join(pieces) == text.strip()


def test_a_long_sentence_is_cut_at_a_clause_rather_than_between_words() -> None:
    clause = "we looked at the meter in your cellar and found nothing wrong with it"
    first, second = sentences(f"{clause}, {clause}, {clause}.")
    assert first == f"{clause}, {clause},"
    assert second == f"{clause}."


def test_a_word_longer_than_a_sentence_is_cut_anywhere() -> None:
    assert [len(piece) for piece in sentences("x" * 450)] == [200, 200, 50]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("<speak>Hi there.</speak>", ["Hi there."]),
        ('<speak>Hi <break time="0.5s"/>there.</speak>', ["Hi", "there."]),
        ("<p><s>One</s><s>Two</s></p>", ["One", "Two"]),
        ('<sub alias="World Wide Web">WWW</sub> is old.', ["World Wide Web is old."]),
        ('Code <say-as interpret-as="characters">AB12</say-as>.', ["Code A B 1 2."]),
        ("<emphasis level='strong'>Now</emphasis>!", ["Now!"]),
        ("<!-- a note. Here. -->Yes.", ["Yes."]),
        ("Salt &amp; pepper.", ["Salt & pepper."]),
        ("Is 5 < 6 or 7 > 6?", ["Is 5 < 6 or 7 > 6?"]),
    ],
)
def test_ssml_is_followed_or_removed(text: str, cut: list[str]) -> None:
    assert sentences(text) == cut


@pytest.mark.parametrize(
    ("sentence", "spoken"),
    [
        ("Call 617-555-0100.", "Call 6 1 7, 5 5 5, 0 1 0 0."),
        ("Call +1 (617) 555-0100 now", "Call plus 1, 6 1 7, 5 5 5, 0 1 0 0 now"),
        ("Call 0800 123456.", "Call 0 8 0 0, 1 2 3 4 5 6."),
        ("Reference 1234567", "Reference 1 2 3 4 5 6 7"),
        ("Your account number is 48213.", "Your account number is 4 8 2 1 3."),
        ("The code is: 907", "The code is: 9 0 7"),
        ("PIN 1234", "PIN 1 2 3 4"),
        ("Zone 007 is closed.", "Zone 0 0 7 is closed."),
    ],
)
def test_digits_of_numbers_that_are_names_are_spelled(sentence: str, spoken: str) -> None:
    assert prepare(sentence) == spoken


@pytest.mark.parametrize(
    "sentence",
    [
        "You owe 12500 euros.",
        "It costs 1,250,000.50 dollars.",
        "It costs $1250000.",
        "It is due on 2024-03-01 at 10:30.",
        "It is due on 01.03.2024.",
        "Open 24/7, 5-10 days, 10.5 kWh.",
        "There are 1 000 000 of them.",
        "Say 1 2 3 4 5 6 7.",
        "In 1999 or 2026.",
        "Model 48213X and 100%.",
    ],
)
def test_other_numbers_stay_for_the_engine_to_read(sentence: str) -> None:
    assert prepare(sentence) == sentence


@pytest.mark.parametrize(
    ("sentence", "spoken"),
    [
        ("Hi 😀 there 👍🏽!", "Hi there!"),
        ("😀👍", ""),
        ("Привет", ""),
        ("こんにちは", ""),
        ("Hello мир again", "Hello again"),
        ("Café à la crème", "Café à la crème"),
        ("**Bold** and `code` and _soft_", "Bold and code and soft"),
        ("- an item", "an item"),
        ("See [our page](https://x.example/a?b=1).", "See our page."),
        ("\u201cquoted\u201d it\u2019s \u2014 fine\u2026", '"quoted" it\'s, fine...'),
        ("ﬁne ½", "fine 1/2"),
        ("...", ""),
        ("<b>!</b>", ""),
        ("", ""),
    ],
)
def test_only_what_can_be_spoken_is_left(sentence: str, spoken: str) -> None:
    assert prepare(sentence) == spoken


@given(st.text(max_size=400))
def test_any_text_gives_short_sentences_and_loses_no_letter(text: str) -> None:
    pieces = sentences(text)
    assert all(0 < len(piece) <= MAX_SENTENCE_CHARS for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(strip_markup(text).split())


@given(st.text(max_size=MAX_SENTENCE_CHARS))
def test_preparing_any_text_ends_in_something_speakable_or_nothing(text: str) -> None:
    spoken = prepare(text)
    assert spoken == "" or any(char.isalnum() for char in spoken)
    assert spoken == spoken.strip()
    assert len(spoken) <= 1500


@given(st.text(alphabet="0123456789 -+().", max_size=MAX_SENTENCE_CHARS))
def test_no_digit_is_lost_or_moved(text: str) -> None:
    assert [c for c in prepare(text) if c.isdigit()] == [c for c in text if c.isdigit()]
