"""Linear16 in odd shapes: two channels, big endian, half samples, and the sample -1."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.l16 import FirstChannel, Swapper, without_minus_one

SAMPLES = st.lists(st.integers(-32768, 32767), max_size=40)
CUTS = st.lists(st.integers(0, 7), max_size=40)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    out = []
    for cut in cuts:
        out.append(data[:cut])
        data = data[cut:]
    return [*out, data]


@given(SAMPLES, CUTS)
def test_the_first_channel_whatever_the_messages(samples: list[int], cuts: list[int]) -> None:
    stereo = array("h", [value for sample in samples for value in (sample, 77)]).tobytes()
    first = FirstChannel()
    mono = b"".join(first.process(piece) for piece in pieces(stereo, cuts))
    assert mono == array("h", samples).tobytes()


@given(SAMPLES, CUTS)
def test_swapped_twice_is_the_same(samples: list[int], cuts: list[int]) -> None:
    data = array("h", samples).tobytes()
    there, back = Swapper(), Swapper()
    assert b"".join(back.process(there.process(piece)) for piece in pieces(data, cuts)) == data


def test_big_endian_is_told_by_its_bytes() -> None:
    assert Swapper().process(b"\x01\x02\x03\x04") == b"\x02\x01\x04\x03"


@given(SAMPLES)
def test_no_sample_of_minus_one_is_left_and_no_other_changes(samples: list[int]) -> None:
    tamed = array("h", without_minus_one(array("h", samples).tobytes()))
    assert list(tamed) == [-2 if sample == -1 else sample for sample in samples]
