"""What a cloud service sends, cut anywhere: samples play, headers and messages do not."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.errors import SpeechError
from gateway.speech.google_audio import MAX_HEADER_BYTES, ServiceAudio
from tests.speech.google_voices import voice_of, wav

LINEAR_8K = AudioFormat(Encoding.LINEAR16, 8000)
SOUND = voice_of("Hi", 8000)


def played(pieces: list[bytes], wanted: AudioFormat = LINEAR_8K) -> Pcm:
    audio = ServiceAudio(wanted)
    return b"".join([audio.feed(piece) for piece in pieces]) + audio.flush()


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(
    st.sampled_from([LINEAR_8K, MULAW_8K, ALAW_8K]),
    st.booleans(),
    st.sampled_from([b"", b"LIST\x04\x00\x00\x00INFO"]),
    st.sampled_from([None, 0, 0xFFFFFFFF]),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_however_it_is_cut_the_samples_are_the_same(
    line: AudioFormat, header: bool, extra: bytes, length: int | None, sizes: list[int]
) -> None:
    data = wire = g711.encode(SOUND, line.encoding)
    if header:
        wire = wav(data, line)
        at = wire.index(b"data")
        known = struct.pack("<I", len(data) if length is None else length)
        wire = wire[:at] + extra + b"data" + known + data
    assert played(cut(wire, sizes), line) == g711.decode(data, line.encoding)


def test_chunks_after_the_samples_do_not_play() -> None:
    title = b"LIST" + struct.pack("<I", 400) + bytes(400)
    assert played([wav(SOUND, LINEAR_8K) + title]) == SOUND
    assert played([wav(SOUND, LINEAR_8K), title]) == SOUND


def test_each_piece_may_have_a_header_of_its_own() -> None:
    assert played([wav(SOUND, LINEAR_8K), wav(SOUND, LINEAR_8K)]) == SOUND + SOUND


def test_the_header_is_believed_before_the_request() -> None:
    data = g711.encode(SOUND, Encoding.MULAW)
    assert played([wav(data, MULAW_8K)]) == g711.decode(data, Encoding.MULAW)


@pytest.mark.parametrize("line", [MULAW_8K, ALAW_8K, LINEAR_8K], ids=str)
def test_silence_is_audio_and_no_message(line: AudioFormat) -> None:
    for silence in (line.silence * 20, b"\x55" * 3200, b"\x7f" * 3200):
        assert len(played([silence], line)) == len(silence) * 2 // line.sample_bytes


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "quota"}',
        b"Service Unavailable",
        "<html>Fehler: überlastet</html>".encode(),
        ("Try again " + "x" * 500 + "é and so on").encode(),
    ],
    ids=["json", "text", "html", "cut in a letter"],
)
def test_a_message_for_people_never_plays(body: bytes) -> None:
    for pieces in ([body], cut(body, [3, 5])):
        with pytest.raises(SpeechError) as raised:
            played(pieces, MULAW_8K)
        assert raised.value.code == "speech.bad_audio"


@pytest.mark.parametrize(
    "body",
    [
        wav(SOUND, LINEAR_8K)[:30],
        b"RIFF\x00\x00\x00\x00WAVEdata\x04\x00\x00\x00abcd",
        wav(SOUND, LINEAR_8K).replace(b"\x01\x00\x01\x00\x40", b"\x01\x00\x02\x00\x40", 1),
        wav(SOUND, LINEAR_8K).replace(b"\x01\x00\x01\x00\x40", b"\x55\x00\x01\x00\x40", 1),
        b"RIFF\x00\x00\x00\x00WAVE" + b"junk\x00\x00\x00\x00" * (MAX_HEADER_BYTES // 8 + 1),
    ],
    ids=["half a header", "no format", "stereo", "mp3", "endless"],
)
def test_a_header_that_cannot_be_followed_is_an_error(body: bytes) -> None:
    with pytest.raises(SpeechError) as raised:
        played([body])
    assert raised.value.code == "speech.bad_audio"


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_nothing_else_than_a_speech_error_comes_out(pieces: list[bytes]) -> None:
    with contextlib.suppress(SpeechError):
        assert len(played(pieces)) % 2 == 0
