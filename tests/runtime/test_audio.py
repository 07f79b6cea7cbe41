"""Audio to and from a runtime that listens and speaks itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.audio.tones import sine
from gateway.call.events import RuntimeAudio
from gateway.runtime.audio import AudioBridge, AudioTerms

LINEAR_16K = AudioFormat(Encoding.LINEAR16, 16000)
FRAME = MULAW_8K.frame_bytes


def bridge(wanted: AudioFormat | None = None, chunk_ms: int = 60) -> AudioBridge:
    made = AudioBridge(MULAW_8K, MULAW_8K, AudioTerms(wanted, chunk_ms))
    made.open()
    return made


def said(made: AudioBridge, data: bytes) -> tuple[bytes, bytes]:
    """What becomes of a message of the runtime's audio: samples, and bytes for the line."""
    taken = made.take(RuntimeAudio(data, 1), 0.0)
    assert isinstance(taken, RuntimeAudio)
    return taken.pcm, taken.wire


def speak(made: AudioBridge, seconds: float, start: float = 0.0) -> list[bytes]:
    """A caller's frames, each 20 ms, and the ticks between them."""
    chunks: list[bytes] = []
    for n in range(round(seconds * 50)):
        now = start + n * 0.02
        made.hear(bytes([n % 120 + 1]) * FRAME, now)
        chunks += made.chunks(now)
    return chunks


@pytest.mark.parametrize("chunk_ms", [40, 60, 100, 120])
def test_the_callers_bytes_go_up_untouched_in_chunks(chunk_ms: int) -> None:
    chunks = speak(bridge(chunk_ms=chunk_ms), 3.0)
    assert {len(c) for c in chunks} == {chunk_ms * 8}
    sent = b"".join(chunks)
    assert sent == b"".join(bytes([n % 120 + 1]) * FRAME for n in range(150))[: len(sent)]
    assert len(sent) > 150 * FRAME - chunk_ms * 8


def test_where_the_caller_is_silent_on_the_wire_silence_is_sent() -> None:
    made = bridge()
    speak(made, 1.0)
    filler = [c for n in range(100) for c in made.chunks(1.0 + n * 0.02)]
    assert b"".join(filler)[2 * FRAME :].strip(b"\xff") == b""
    assert sum(map(len, filler)) / 8000 == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("wanted", "silence"),
    [(MULAW_8K, b"\xff"), (ALAW_8K, b"\xd5"), (LINEAR_16K, b"\x00")],
)
def test_silence_is_that_of_the_sessions_encoding(wanted: AudioFormat, silence: bytes) -> None:
    made = bridge(wanted)
    sent = b"".join(c for n in range(50) for c in made.chunks(n * 0.02))
    assert sent.strip(silence) == b""
    assert len(sent) > wanted.frame_bytes * 20


def test_silence_flows_from_the_start_where_no_audio_ever_comes() -> None:
    made = bridge()
    sent = b"".join(c for n in range(50) for c in made.chunks(n * 0.02))
    assert len(sent) / 8000 == pytest.approx(1.0, abs=0.3)
    assert set(sent) == {0xFF}


def test_a_caller_silent_for_minutes_leaves_no_hole() -> None:
    made = bridge()
    speak(made, 1.0)
    times = [n * 0.02 for n in range(50, 50 + 120 * 50) for _ in made.chunks(n * 0.02)]
    assert times[-1] - times[0] == pytest.approx(120.0, abs=0.5)
    assert max(b - a for a, b in itertools.pairwise(times)) < 1.0


def test_short_gaps_are_the_networks_and_not_filled() -> None:
    made = bridge()
    speak(made, 1.0)
    assert made.chunks(1.15) == []


def test_audio_before_the_runtime_is_open_waits_for_it_up_to_ten_seconds() -> None:
    made = AudioBridge(MULAW_8K, MULAW_8K, AudioTerms())
    for n in range(700):
        made.hear(bytes([n % 120 + 1]) * FRAME, n * 0.02)
        assert made.chunks(n * 0.02) == []
    made.open()
    kept = b"".join(made.chunks(14.0))
    assert len(kept) / 8000 == pytest.approx(10.0, abs=0.07)
    assert kept[:FRAME] == bytes([200 % 120 + 1]) * FRAME


def test_the_runtimes_bytes_come_down_untouched_where_the_formats_agree() -> None:
    data = bytes(range(256))
    pcm, wire = said(bridge(), data)
    assert wire == data
    assert pcm == g711.decode(data, Encoding.MULAW)


def test_other_formats_are_decoded_and_at_need_resampled() -> None:
    made = bridge(LINEAR_16K)
    tone = sine(400, 1000, 16000)
    pcm, wire = said(made, tone)
    assert wire == b""
    assert len(pcm) / 16000 == pytest.approx(1.0, abs=0.01)
    at = np.frombuffer(pcm, "<i2").astype(float)
    assert np.abs(np.fft.rfft(at)).argmax() / (len(at) / 8000) == pytest.approx(400, abs=2)


def test_decoding_alone_loses_nothing() -> None:
    made = bridge(AudioFormat(Encoding.LINEAR16, 8000), 40)
    data = bytes(n for n in range(256) if n != 0x7F)
    pcm, _ = said(made, g711.decode(data, Encoding.MULAW))
    assert g711.encode(pcm, Encoding.MULAW) == data
    made.hear(data * 2, 0.0)
    (chunk,) = made.chunks(0.0)
    assert chunk == g711.decode(data * 2, Encoding.MULAW)[: len(chunk)]


def test_half_a_sample_waits_for_its_other_half() -> None:
    made = bridge(AudioFormat(Encoding.LINEAR16, 8000))
    assert said(made, b"\x01\x40\x02")[0] + said(made, b"\x40")[0] == b"\x01\x40\x02\x40"


def test_the_configuration_names_the_lines_own_formats() -> None:
    made = AudioBridge(ALAW_8K, MULAW_8K, AudioTerms(), "high")
    assert made.config == {
        "inputAudioConfig": {
            "audioEncoding": "ALAW",
            "sampleRateHertz": 8000,
            "noiseSuppressionLevel": "high",
        },
        "outputAudioConfig": {"audioEncoding": "MULAW", "sampleRateHertz": 8000},
    }
    assert AudioBridge(None, None, AudioTerms(LINEAR_16K)).config == {}
    wanted = bridge(LINEAR_16K).config["inputAudioConfig"]
    assert wanted == {"audioEncoding": "LINEAR16", "sampleRateHertz": 16000}
