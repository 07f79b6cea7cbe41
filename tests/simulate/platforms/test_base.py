"""The play-out buffer plays in real time, tells where it is, and forgets when told to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import MULAW_8K
from gateway.simulate.platforms.base import PlayoutBuffer

SILENCE = MULAW_8K.silence


def test_one_frame_at_a_time_and_silence_after_the_last() -> None:
    buffer = PlayoutBuffer(MULAW_8K)
    buffer.push(b"a" * 200)
    assert buffer.buffered_s == 0.025
    assert buffer.take() == (b"a" * 160, [])
    assert buffer.take() == (b"a" * 40 + SILENCE[:120], [])
    assert buffer.take() == (SILENCE, [])


def test_a_mark_is_reached_with_the_last_sample_before_it() -> None:
    buffer = PlayoutBuffer(MULAW_8K)
    buffer.push(b"a" * 160)
    assert buffer.mark("one") == []
    buffer.push(b"b" * 160)
    assert buffer.mark("two") == []
    assert buffer.take() == (b"a" * 160, ["one"])
    assert buffer.take() == (b"b" * 160, ["two"])


def test_a_mark_with_nothing_before_it_is_reached_at_once() -> None:
    assert PlayoutBuffer(MULAW_8K).mark("now") == ["now"]


def test_clear_gives_all_marks_back_and_plays_no_more() -> None:
    buffer = PlayoutBuffer(MULAW_8K)
    buffer.push(b"a" * 500)
    buffer.mark("one")
    buffer.push(b"b" * 500)
    buffer.mark("two")
    assert buffer.clear() == ["one", "two"]
    assert buffer.buffered_s == 0
    assert buffer.take() == (SILENCE, [])


@given(st.lists(st.binary(max_size=700), max_size=12))
def test_whatever_the_sizes_every_byte_is_played_once_and_in_order(chunks: list[bytes]) -> None:
    buffer = PlayoutBuffer(MULAW_8K)
    for number, chunk in enumerate(chunks):
        buffer.push(chunk)
        buffer.mark(str(number))
    whole = b"".join(chunks)
    played = b"".join(buffer.take()[0] for _ in range(len(whole) // 160 + 1))
    assert played[: len(whole)] == whole
    assert buffer.buffered_s == 0
    assert buffer.received_bytes == len(whole)
