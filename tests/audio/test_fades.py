"""Fades begin and end without a step or a corner."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.audio.fades import fade_in, fade_out, rising

LOUD = (10_000).to_bytes(2, "little") * 160


def values(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2").astype(int)


def test_a_fade_in_rises_all_the_way_and_a_fade_out_is_its_mirror() -> None:
    up = values(fade_in(LOUD))
    assert up[0] < 10
    assert up[-1] > 9990
    assert (np.diff(up) >= 0).all()
    assert (values(fade_out(LOUD)) == up[::-1]).all()


def test_no_step_of_a_fade_is_larger_than_its_length_makes_it() -> None:
    assert np.abs(np.diff(values(fade_out(LOUD)))).max() <= 10_000 * np.pi / 2 / 160 + 1


def test_a_long_fade_comes_in_pieces() -> None:
    whole = fade_in(LOUD * 3)
    size = len(LOUD)
    pieces = b"".join(rising(LOUD, n * size, 3 * size) for n in range(3))
    assert pieces == whole


def test_a_piece_that_reaches_beyond_the_fade_is_untouched_there() -> None:
    made = values(rising(LOUD, 0, len(LOUD) // 2))
    assert (made[80:] == 10_000).all()
    assert made[0] < 10


@pytest.mark.parametrize("pcm", [b"", b"\x10\x00"])
def test_next_to_nothing_can_be_faded(pcm: bytes) -> None:
    assert len(fade_in(pcm)) == len(fade_out(pcm)) == len(pcm)
