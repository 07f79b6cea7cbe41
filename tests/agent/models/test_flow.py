"""Tokens as sentences: nothing is lost, nothing waits longer than it must."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.models.base import Fragment, joined
from gateway.agent.models.flow import MAX_HELD_CHARS, in_sentences
from gateway.agent.platform import Part


async def _stream(*parts: Part | str) -> AsyncGenerator[Part, None]:
    for part in parts:
        yield Fragment(text=part) if isinstance(part, str) else part


async def _texts(*parts: Part | str) -> list[str]:
    return [part.text or "" async for part in in_sentences(_stream(*parts))]


@pytest.mark.parametrize(
    ("tokens", "sentences"),
    [
        (["Hello", ".", " How", " are you", "?"], ["Hello. ", "How are you?"]),
        (["Ask Dr", ".", " No. It", " is 3", ".", "5."], ["Ask Dr. No. ", "It is 3.5."]),
        (["one\n\n", "two"], ["one\n\n", "two"]),
        (["no end"], ["no end"]),
        (["", " ", "x"], [" x"]),
        (["Go to example", ".", "com now"], ["Go to example.com now"]),
    ],
)
async def test_sentences_are_put_together(tokens: list[str], sentences: list[str]) -> None:
    assert await _texts(*tokens) == sentences


async def test_what_is_no_text_ends_the_sentence() -> None:
    call = Part.from_function_call("f")
    parts = [part async for part in in_sentences(_stream("One mo", "ment", call, "then"))]
    assert [part.text for part in parts] == ["One moment", None, "then"]


async def test_a_pause_behind_a_full_stop_is_the_end_of_the_sentence() -> None:
    go_on = asyncio.Event()

    async def slow() -> AsyncGenerator[Part, None]:
        yield Fragment(text="Hello")
        yield Fragment(text=".")
        await go_on.wait()
        yield Fragment(text=" Bye")

    parts = in_sentences(slow())
    assert (await anext(parts)).text == "Hello."
    go_on.set()
    assert (await anext(parts)).text == " Bye"
    assert await anext(parts, None) is None


async def test_a_sentence_without_end_goes_out_in_pieces() -> None:
    pieces = await _texts(*(["word, "] * 200))
    assert len(pieces) > 2
    assert max(map(len, pieces)) <= MAX_HELD_CHARS + len("word, ")


async def test_leaving_early_closes_the_model() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncGenerator[Part, None]:
        try:
            yield Fragment(text="Hello. ")
            await asyncio.Event().wait()
        finally:
            closed.set()

    parts = in_sentences(endless())
    assert (await anext(parts)).text == "Hello. "
    await parts.aclose()
    assert closed.is_set()


@given(st.lists(st.text(st.sampled_from("aB.!? ,\n1"), max_size=8), max_size=12))
def test_all_that_was_said_is_said_in_order(tokens: list[str]) -> None:
    said = asyncio.run(_texts(*tokens))
    assert "".join(said) == "".join(tokens)


def test_joined_fragments_are_one_part_and_others_stay_apart() -> None:
    call = Part.from_function_call("f")
    parts = [
        Fragment(text="a"),
        Fragment(text="b", kept=b"k"),
        call,
        Fragment(text="c"),
        Part(text="d"),
        Part(text="e"),
    ]
    made = joined(parts)
    assert [part.text for part in made] == ["ab", None, "c", "d", "e"]
    assert made[0].kept == b"k"
    assert made[1] is call
    assert parts[0].text == "a"
