"""Every kind of file becomes the same mono clip; broken ones play what is sound in them."""

import io
import math
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio import g711
from gateway.audio.files import Clip, decode, without_rate
from gateway.audio.formats import Encoding
from gateway.errors import AssetError

RATE_HZ = 8000
WAVE = np.rint(12000 * np.sin(2 * math.pi * 440 * np.arange(4000) / RATE_HZ)).astype("<i2")
PCM = WAVE.tobytes()


def chunk(name: bytes, body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return name + struct.pack("<I", size) + body + b"\0" * (len(body) & 1)


def fmt(
    tag: int, bits: int, channels: int = 1, rate_hz: int = RATE_HZ, extra: bytes = b""
) -> bytes:
    block = channels * ((bits + 7) // 8)
    head = struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * block, block, bits)
    return chunk(b"fmt ", head + extra)


def riff(*chunks: bytes, kind: bytes = b"RIFF") -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return kind + struct.pack("<I", len(body)) + body


def extensible(tag: int) -> bytes:
    tail = bytes.fromhex("000000001000800000aa00389b71")
    return struct.pack("<HHI", 22, 16, 4) + struct.pack("<H", tag) + tail


def samples(clip: Clip) -> np.ndarray:
    return np.frombuffer(clip.pcm, "<i2").astype(int)


def code_of(data: bytes, name: str, **limits: float) -> str:
    with pytest.raises(AssetError) as caught:
        decode(data, name, **limits)
    assert caught.value.where == name
    return caught.value.code


WIDE = WAVE.astype(np.int64)
BY_24 = b"".join((int(value) << 8).to_bytes(3, "little", signed=True) for value in WIDE)
ENCODED = {
    "8 bit": (fmt(1, 8), ((WIDE >> 8) + 128).astype(np.uint8).tobytes(), 256),
    "16 bit": (fmt(1, 16), PCM, 0),
    "24 bit": (fmt(1, 24), BY_24, 0),
    "32 bit": (fmt(1, 32), (WIDE << 16).astype("<i4").tobytes(), 0),
    "float 32": (fmt(3, 32), (WIDE / 32768).astype("<f4").tobytes(), 0),
    "float 64": (fmt(3, 64), (WIDE / 32768).astype("<f8").tobytes(), 0),
    "A-law": (fmt(6, 8), g711.encode(PCM, Encoding.ALAW), 512),
    "mu-law": (fmt(7, 8), g711.encode(PCM, Encoding.MULAW), 512),
    "extensible PCM": (fmt(0xFFFE, 16, extra=extensible(1)), PCM, 0),
    "extensible mu-law": (
        fmt(0xFFFE, 8, extra=extensible(7)),
        g711.encode(PCM, Encoding.MULAW),
        512,
    ),
}


@pytest.mark.parametrize("kind", ENCODED)
def test_each_wav_encoding_gives_the_samples_back(kind):
    header, body, error = ENCODED[kind]
    clip = decode(riff(header, chunk(b"data", body)), "greeting.wav")
    assert clip.rate_hz == RATE_HZ
    assert clip.seconds == 0.5
    assert np.abs(samples(clip) - WAVE).max() <= error


@pytest.mark.parametrize(
    ("container", "subtype", "error"),
    [
        ("WAV", "PCM_16", 0),
        ("WAV", "PCM_24", 0),
        ("WAV", "FLOAT", 0),
        ("WAV", "ULAW", 512),
        ("WAV", "ALAW", 512),
        ("WAV", "IMA_ADPCM", None),
        ("WAV", "GSM610", None),
        ("WAVEX", "PCM_16", 0),
        ("RF64", "PCM_16", 0),
        ("AU", "PCM_16", 0),
        ("AU", "ULAW", 512),
        ("AU", "ALAW", 512),
        ("AU", "FLOAT", 0),
        ("AIFF", "PCM_16", 0),
        ("FLAC", "PCM_16", 0),
        ("FLAC", "PCM_24", 0),
        ("OGG", "VORBIS", None),
    ],
)
def test_what_other_programs_write_is_read(container, subtype, error):
    file = io.BytesIO()
    soundfile.write(file, WAVE / 32768, RATE_HZ, format=container, subtype=subtype)
    clip = decode(file.getvalue(), "made.audio")
    assert clip.rate_hz == RATE_HZ
    assert len(samples(clip)) >= len(WAVE)
    got = samples(clip)[: len(WAVE)]
    if error is None:  # lossy codecs keep the shape
        assert np.corrcoef(got, WAVE)[0, 1] > 0.97
    else:
        assert np.abs(got - WAVE).max() <= error


def test_an_mp3_is_read_too():
    file = io.BytesIO()
    soundfile.write(file, WAVE, RATE_HZ, format="MP3")
    clip = decode(file.getvalue(), "hold.mp3")
    assert clip.rate_hz == RATE_HZ
    assert samples(clip).max() == pytest.approx(12000, rel=0.1)


@pytest.mark.parametrize(
    ("name", "encoding", "rate_hz"),
    [
        ("hold.ulaw", Encoding.MULAW, 8000),
        ("hold.mulaw", Encoding.MULAW, 8000),
        ("HOLD.UL", Encoding.MULAW, 8000),
        ("hold.alaw", Encoding.ALAW, 8000),
        ("gs://bucket/a/hold.al", Encoding.ALAW, 8000),
        ("hold.raw", Encoding.LINEAR16, 8000),
        ("hold.pcm", Encoding.LINEAR16, 8000),
        ("hold.l16", Encoding.LINEAR16, 8000),
        ("hold_16000.raw", Encoding.LINEAR16, 16000),
        ("hold-24000.pcm", Encoding.LINEAR16, 24000),
        ("take_2024.raw", Encoding.LINEAR16, 8000),
        ("hold.raw;rate=16000", Encoding.LINEAR16, 16000),
        ("https://example.com/hold.raw?a=1&rate=24000&b=2", Encoding.LINEAR16, 24000),
        ("https://example.com/hold.ulaw?signature=x.y", Encoding.MULAW, 8000),
    ],
)
def test_a_headerless_file_is_known_by_its_name(name, encoding, rate_hz):
    data = g711.encode(PCM, encoding)
    assert decode(data, name) == Clip(g711.decode(data, encoding), rate_hz)


def test_only_the_rate_for_the_decoder_is_taken_off_a_name():
    assert without_rate("a/b.raw;rate=16000") == "a/b.raw"
    assert without_rate("a/b;rate.raw") == "a/b;rate.raw"
    assert without_rate("https://x/b.raw?rate=16000") == "https://x/b.raw?rate=16000"


def test_the_first_bytes_win_over_the_name():
    wav = riff(fmt(1, 16), chunk(b"data", PCM))
    assert decode(wav, "hold.ulaw").pcm == PCM


def test_channels_are_averaged():
    stereo = np.stack([WAVE, np.zeros_like(WAVE)], axis=1).tobytes()
    clip = decode(riff(fmt(1, 16, channels=2), chunk(b"data", stereo)), "stereo.wav")
    assert np.abs(samples(clip) - WAVE / 2).max() <= 0.5


def test_opposite_channels_of_float_cannot_overflow():
    both = np.array([[3.4e38, np.nan], [-np.inf, 0.5]], "<f4").tobytes()
    clip = decode(riff(fmt(3, 32, channels=2), chunk(b"data", both)), "wild.wav")
    assert samples(clip).tolist() == [16384, -8192]


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFFFFF, len(PCM) + 100])
def test_a_length_that_a_stream_never_knew_means_all_that_follows(length):
    wav = riff(fmt(1, 16), chunk(b"data", PCM, length))
    assert decode(wav, "stream.wav").pcm == PCM


def test_chunks_after_the_samples_never_play():
    wav = riff(fmt(1, 16), chunk(b"data", PCM), chunk(b"LIST", b"\x7f" * 999), chunk(b"C2PA", b"x"))
    assert decode(wav, "titled.wav").pcm == PCM


def test_chunks_before_the_samples_do_not_play_either():
    wav = riff(
        chunk(b"JUNK", b"\x7f" * 33), fmt(1, 16), chunk(b"LIST", b"abc"), chunk(b"data", PCM)
    )
    assert decode(wav, "broadcast.wav").pcm == PCM


def test_an_odd_data_length_is_cut_to_whole_samples_and_what_follows_does_not_play():
    wav = riff(fmt(1, 16), chunk(b"data", PCM + b"\x55"), chunk(b"LIST", b"\x7f" * 40))
    assert decode(wav, "odd.wav").pcm == PCM


def test_samples_before_their_format_are_read():
    assert decode(riff(chunk(b"data", PCM), fmt(1, 16)), "turned.wav").pcm == PCM


def test_a_64_bit_file_takes_its_length_from_ds64():
    sizes = struct.pack("<QQQI", 0, len(PCM), len(PCM) // 2, 0)
    wav = riff(
        chunk(b"ds64", sizes),
        fmt(1, 16),
        chunk(b"data", PCM, 0xFFFFFFFF),
        chunk(b"LIST", b"\x7f" * 40),
        kind=b"RF64",
    )
    assert decode(wav, "long.wav").pcm == PCM


@pytest.mark.parametrize("kept", [1.0, 0.5, 0.1])
def test_a_truncated_wav_plays_what_is_there(kept):
    size = 44 + int(len(PCM) * kept)
    wav = riff(fmt(1, 16), chunk(b"data", PCM))[:size]
    assert decode(wav, "cut.wav").pcm == PCM[: (size - 44) // 2 * 2]


@pytest.mark.parametrize("container", ["FLAC", "OGG", "AU", "AIFF"])
def test_other_truncated_files_play_a_part_or_say_why_not(container):
    long = np.tile(WAVE, 40)
    file = io.BytesIO()
    soundfile.write(file, long, RATE_HZ, format=container)
    data = file.getvalue()
    clip = decode(data[: len(data) * 3 // 4], "cut.file")
    assert 0 < len(samples(clip)) <= len(long)


def test_a_wav_that_ends_before_its_samples_is_truncated():
    assert code_of(riff(fmt(1, 16))[:30], "head.wav") == "asset.truncated"
    assert code_of(riff(fmt(1, 16)), "head.wav") == "asset.truncated"
    assert code_of(riff(chunk(b"data", PCM)), "formless.wav") == "asset.truncated"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        riff(fmt(1, 16), chunk(b"data", b"")),
        riff(fmt(1, 16), chunk(b"data", b""), chunk(b"LIST", b"abcd")),
        riff(fmt(1, 16), chunk(b"data", b"\x01")),
    ],
)
def test_a_file_without_samples_is_empty(data):
    assert code_of(data, "empty.wav") == "asset.empty"


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": {"code": 403, "message": "denied"}}',
        b"<!DOCTYPE html><html><body>Not Found</body></html>",
        b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
        b"\xef\xbb\xbf  [1, 2]",
        "<html>nicht verfügbar</html>".encode(),
        b"Not Found\n",
    ],
)
@pytest.mark.parametrize("name", ["hold.ulaw", "hold.raw", "hold.wav", "hold"])
def test_an_error_page_is_never_played(body, name):
    assert code_of(body, name) == "asset.format"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (PCM, "hold.wav"),
        (PCM, "hold"),
        (PCM, "raw"),
        (riff(fmt(1, 16, channels=0), chunk(b"data", PCM)), "none.wav"),
        (riff(fmt(1, 16, channels=400), chunk(b"data", PCM)), "many.wav"),
        (riff(fmt(1, 16, rate_hz=0), chunk(b"data", PCM)), "still.wav"),
        (riff(fmt(1, 16, rate_hz=4_000_000), chunk(b"data", PCM)), "fast.wav"),
        (riff(fmt(0x1234, 16), chunk(b"data", PCM)), "odd.wav"),
        (b"fLaC" + bytes(100), "broken.flac"),
        (b"OggS" + bytes(100), "broken.ogg"),
        (PCM, "hold.raw;rate=5"),
    ],
)
def test_what_cannot_be_audio_is_refused(data, name):
    assert code_of(data, name) == "asset.format"


@pytest.mark.parametrize("container", ["WAV", "FLAC", "OGG"])
def test_a_file_longer_than_allowed_is_refused(container):
    file = io.BytesIO()
    soundfile.write(file, np.zeros(RATE_HZ * 3, "<i2"), RATE_HZ, format=container)
    assert code_of(file.getvalue(), "long.x", max_seconds=2.9) == "asset.too_long"
    assert decode(file.getvalue(), "long.x", max_seconds=3.0).seconds == 3.0


def test_a_headerless_file_longer_than_allowed_is_refused():
    assert code_of(bytes(8001), "long.ulaw", max_seconds=1.0) == "asset.too_long"
    assert decode(bytes(8000), "long.ulaw", max_seconds=1.0).seconds == 1.0


@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.builds(lambda body: b"RIFF\0\0\0\0WAVE" + body, st.binary(max_size=200)),
        st.builds(
            lambda head, body: riff(chunk(b"fmt ", head), chunk(b"data", body)),
            st.binary(max_size=40),
            st.binary(max_size=80),
        ),
        st.builds(
            lambda start, body: start + body,
            st.sampled_from([b"fLaC", b".snd", b"OggS"]),
            st.binary(max_size=200),
        ),
    ),
    name=st.sampled_from(["a.wav", "a.ulaw", "a.raw", "a", "a.mp3", "a.raw;rate=48000"]),
)
def test_any_bytes_give_a_clip_or_an_asset_error(data, name):
    try:
        clip = decode(data, name)
    except AssetError as error:
        outcome = error.code
    else:
        outcome = "clip" if clip.pcm and len(clip.pcm) % 2 == 0 else "half a clip"
    assert outcome in {"clip", "asset.empty", "asset.format", "asset.truncated", "asset.too_long"}
