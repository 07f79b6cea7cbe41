"""Words of attention, counts of words, unfinished numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.call.wording import count_words, digits_at_end, expects_more, is_back_channel

LANGUAGES = ["en-US", "de", "es-MX", "fr-FR", "it", "pt-BR", "nl", "xx", ""]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("...", 0),
        ("stop", 1),
        ("don't stop", 3),
        ("Stop it, now!", 3),
        ("はい、そうです", 3),
        ("你好", 1),
    ],
)
def test_words_are_counted_in_any_script(text: str, count: int) -> None:
    assert count_words(text) == count


@pytest.mark.parametrize("text", ["uh-huh", "Uh huh.", "OKAY", "yeah, yeah", "I see. Right."])
def test_attention_is_known_however_it_is_written(text: str) -> None:
    assert is_back_channel(text, "en-US", {})


@pytest.mark.parametrize("text", ["", "  ", "no", "yes please", "right now", "i"])
def test_a_word_of_its_own_is_no_attention(text: str) -> None:
    assert not is_back_channel(text, "en-US", {})


def test_own_lists_are_found_by_code_then_root() -> None:
    own = {"EN-GB": ("cheers",), "en": ("sure thing",)}
    assert is_back_channel("Cheers", "en-gb", own)
    assert not is_back_channel("sure thing", "en-GB", own)
    assert is_back_channel("sure thing", "en-US", own)
    assert is_back_channel("genau", "de", own)


@pytest.mark.parametrize(
    ("text", "language", "digits"),
    [
        ("my number is 47", "en-US", 2),
        ("four seven", "en", 2),
        ("4 7 one 1", "en", 4),
        ("seven dwarfs", "en", 0),
        ("sieben eins", "de-DE", 2),
        ("sieben eins", "en", 0),
        ("", "en", 0),
    ],
)
def test_digits_at_the_end_written_or_spoken(text: str, language: str, digits: int) -> None:
    assert digits_at_end(text, language) == digits


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("at nine", False),
        ("four seven one", True),
        ("4711", True),
        ("two hundred and", True),
        ("two and", True),
        ("salt and", False),
        ("two hundred people", False),
    ],
)
def test_which_numbers_must_go_on(text: str, more: bool) -> None:
    assert expects_more(text, "en-US") is more


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_any_text_is_survived(text: str, language: str) -> None:
    assert count_words(text) >= 0
    assert digits_at_end(text, language) >= 0
    assert not (is_back_channel(text, language, {}) and count_words(text) == 0)
    expects_more(text, language)
