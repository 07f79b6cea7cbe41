"""G.711 over every input, against the recommendation's rules written out here."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio import g711
from gateway.audio.formats import Encoding

ALL_SAMPLES = range(-32768, 32768)
ALL_CODES = bytes(range(256))


def itu_mulaw_decode(code: int) -> int:
    """Sign, segment and step of the inverted byte; 14 bits, shifted up to 16."""
    code ^= 0xFF
    segment, step = code >> 4 & 7, code & 15
    magnitude = ((2 * step + 33) << segment) - 33
    return -4 * magnitude if code & 0x80 else 4 * magnitude


def itu_mulaw_encode(sample: int) -> int:
    """14 bits, the magnitude of a negative sample by complement, biased by 33, then inverted."""
    magnitude = min(((~sample if sample < 0 else sample) >> 2) + 33, 0x1FFF)
    segment = magnitude.bit_length() - 6
    code = segment << 4 | magnitude >> (segment + 1) & 15
    return (code | (0x80 if sample < 0 else 0)) ^ 0xFF


def itu_alaw_decode(code: int) -> int:
    """Even bits inverted; 13 bits, shifted up to 16."""
    code ^= 0x55
    segment, step = code >> 4 & 7, code & 15
    magnitude = 2 * step + 1 if segment == 0 else (2 * step + 33) << (segment - 1)
    return 8 * magnitude if code & 0x80 else -8 * magnitude


def itu_alaw_encode(sample: int) -> int:
    """12 bits of magnitude; the two lowest segments are one straight line."""
    magnitude = (~sample if sample < 0 else sample) >> 4
    if magnitude >= 32:
        segment = magnitude.bit_length() - 4
        magnitude = segment << 4 | magnitude >> (segment - 1) & 15
    return (magnitude | (0 if sample < 0 else 0x80)) ^ 0x55


def as_samples(pcm: bytes) -> list[int]:
    return np.frombuffer(pcm, "<i2").tolist()


def encode_all(encoding: Encoding) -> bytes:
    return g711.encode(np.array(ALL_SAMPLES, "<i2").tobytes(), encoding)


def test_every_mulaw_code_decodes_as_the_itu_says():
    decoded = as_samples(g711.decode(ALL_CODES, Encoding.MULAW))
    assert decoded == [itu_mulaw_decode(code) for code in ALL_CODES]


def test_every_alaw_code_decodes_as_the_itu_says():
    decoded = as_samples(g711.decode(ALL_CODES, Encoding.ALAW))
    assert decoded == [itu_alaw_decode(code) for code in ALL_CODES]


def test_every_sample_encodes_to_alaw_as_the_itu_says():
    assert list(encode_all(Encoding.ALAW)) == [itu_alaw_encode(sample) for sample in ALL_SAMPLES]


def test_mulaw_encoding_is_exact_but_for_508_negative_samples_beside_a_boundary():
    encoded = encode_all(Encoding.MULAW)
    differing = [
        (sample, code, itu_mulaw_encode(sample))
        for sample, code in zip(ALL_SAMPLES, encoded, strict=True)
        if code != itu_mulaw_encode(sample)
    ]
    assert len(differing) == 508
    for sample, ours, theirs in differing:
        assert sample < 0
        assert abs(ours - theirs) == 1
        near = {itu_mulaw_encode(min(-1, sample + step)) for step in range(-4, 5)}
        assert len(near) == 2, f"{sample} is not within 4 of a decision boundary"


@pytest.mark.parametrize("encoding", [Encoding.MULAW, Encoding.ALAW])
def test_a_code_survives_decoding_and_encoding(encoding):
    again = g711.encode(g711.decode(ALL_CODES, encoding), encoding)
    changed = {code for code, back in zip(ALL_CODES, again, strict=True) if code != back}
    # Mu-law has two zeros; the negative one comes back as the positive one.
    assert changed == ({0x7F} if encoding is Encoding.MULAW else set())


@pytest.mark.parametrize(
    ("encoding", "code", "sample"),
    [
        (Encoding.MULAW, 0xFF, 0),
        (Encoding.MULAW, 0x80, 32124),
        (Encoding.MULAW, 0x00, -32124),
        (Encoding.ALAW, 0xD5, 8),
        (Encoding.ALAW, 0xAA, 32256),
        (Encoding.ALAW, 0x2A, -32256),
    ],
)
def test_silence_and_full_scale_are_where_platforms_expect_them(encoding, code, sample):
    assert as_samples(g711.decode(bytes([code]), encoding)) == [sample]
    assert g711.encode(np.array([sample], "<i2").tobytes(), encoding) == bytes([code])


def test_linear16_is_the_identity():
    assert g711.encode(b"\x01\x02\x03\x04", Encoding.LINEAR16) == b"\x01\x02\x03\x04"
    assert g711.decode(b"\x01\x02\x03\x04", Encoding.LINEAR16) == b"\x01\x02\x03\x04"


@pytest.mark.parametrize("encoding", list(Encoding))
def test_half_a_sample_at_the_end_is_dropped(encoding):
    assert g711.encode(b"\x00\x10\x7f", encoding) == g711.encode(b"\x00\x10", encoding)


def test_half_a_linear16_sample_is_dropped_by_a_single_decode():
    assert g711.decode(b"\x01\x02\x03", Encoding.LINEAR16) == b"\x01\x02"


@given(data=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_a_stream_decoder_carries_half_samples_over(data, cuts):
    decoder = g711.Decoder(Encoding.LINEAR16)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    decoded = b"".join(decoder.process(data[start:end]) for start, end in pairwise(edges))
    assert decoded == data[: len(data) // 2 * 2]


@given(data=st.binary(max_size=60))
def test_a_stream_decoder_of_g711_needs_no_memory(data):
    decoder = g711.Decoder(Encoding.MULAW)
    assert decoder.process(data) == g711.decode(data, Encoding.MULAW)
