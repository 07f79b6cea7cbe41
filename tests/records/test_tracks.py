"""Both sides as sound: aligned to the sample, silent where nothing was, muted where asked."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.errors import RecordError
from gateway.records.tracks import BLOCK_S, agent_track, caller_track, read_call, write_wav
from tests.records.makers import RATE, SpoolFile, header, tone, wav

Sound = NDArray[np.int16]


def stereo(
    spool: SpoolFile, folder: Path, mute: tuple[list[tuple[float, float]], ...] = ([], [])
) -> tuple[int, Sound, Sound]:
    file = spool.file()
    call = read_call(file)
    left = caller_track(file, call, folder / "l")
    right = agent_track(file, call, folder / "r")
    write_wav(folder / "out.wav", left, right, call.end_s, (mute[0], mute[1]))
    rate, samples = wav(folder / "out.wav")
    return rate, samples[:, 0], samples[:, 1]


def spoken(*at: float) -> SpoolFile:
    spool = SpoolFile()
    for t in at:
        spool.caller(t, tone(1000))
    return spool


def test_each_side_has_its_channel_and_the_call_its_length(tmp_path: Path) -> None:
    spool = spoken(1.0, 1.02).agent(0.5, tone(2000, 0.1)).end(2.0)
    rate, left, right = stereo(spool, tmp_path)
    assert (rate, len(left)) == (RATE, 2 * RATE)
    assert np.flatnonzero(left).tolist() == list(range(8000, 8320))
    assert np.flatnonzero(right).tolist() == list(range(4000, 4800))
    assert set(left) == {0, 1000}
    assert set(right) == {0, 2000}


def test_what_was_cut_is_not_heard_in_it(tmp_path: Path) -> None:
    spool = SpoolFile().agent(0.0, tone(2000)).agent(0.02, tone(2000)).agent(0.04, tone(2000))
    spool.unheard(0.025).agent(0.1, tone(3000)).end(1.0)
    _, _, right = stereo(spool, tmp_path)
    assert np.flatnonzero(right == 2000).tolist() == list(range(200))
    assert np.flatnonzero(right == 3000).tolist() == list(range(800, 960))


def test_nothing_sounds_after_the_end(tmp_path: Path) -> None:
    spool = spoken(0.99).agent(0.98, tone(2000)).agent(1.0, tone(2000)).end(1.0)
    _, left, right = stereo(spool, tmp_path)
    assert len(left) == RATE
    assert np.count_nonzero(left) == 80
    assert np.count_nonzero(right) == 160


def test_a_call_without_an_end_goes_as_far_as_anything_was_heard(tmp_path: Path) -> None:
    spool = spoken(0.98, 1.0).agent(1.0, tone(2000)).agent(1.02, tone(2000))
    _, left, right = stereo(spool, tmp_path)
    assert len(left) == 8320
    assert np.count_nonzero(left) == np.count_nonzero(right) == 320


@pytest.mark.parametrize("encoding", [Encoding.MULAW, Encoding.ALAW])
def test_audio_of_the_line_is_decoded(tmp_path: Path, encoding: Encoding) -> None:
    head = header(in_format=[encoding.value, RATE])
    spool = SpoolFile(head).caller(0.0, g711.encode(tone(1000), encoding)).end(1.0)
    _, left, _ = stereo(spool, tmp_path)
    assert np.count_nonzero(left) == 160
    assert abs(int(left[0]) - 1000) < 40


def test_sides_of_two_rates_share_the_higher_one_and_stay_aligned(tmp_path: Path) -> None:
    at_16k = header(out_format=["LINEAR16", 2 * RATE])
    seconds = 2 * BLOCK_S + 1
    wave = np.zeros(seconds * RATE, "<i2")
    wave[RATE * BLOCK_S :: RATE] = 20000
    spool = SpoolFile(at_16k).caller(seconds - 0.02, wave.tobytes())
    right = np.zeros(seconds * 2 * RATE, "<i2")
    right[RATE * 2 * BLOCK_S :: RATE * 2] = 20000
    spool.agent(0.0, right.tobytes()).end(float(seconds))
    rate, left, agent = stereo(spool, tmp_path)
    assert (rate, len(left), len(agent)) == (16000, seconds * 16000, seconds * 16000)
    loud = np.flatnonzero(left > 8000)
    assert set(np.round(loud / 16000, 3)) == {float(s) for s in range(BLOCK_S, seconds)}
    assert np.flatnonzero(agent).tolist() == [s * 16000 for s in range(BLOCK_S, seconds)]


def test_muted_stretches_are_silent_on_their_side_only(tmp_path: Path) -> None:
    seconds = BLOCK_S + 2
    spool = SpoolFile().caller(seconds - 0.02, tone(1000, seconds))
    spool.agent(0.0, tone(2000, seconds)).end(float(seconds))
    mute = ([(BLOCK_S - 0.5, BLOCK_S + 0.5)], [(0.0, 0.25)])
    _, left, right = stereo(spool, tmp_path, mute)
    silent = slice(round((BLOCK_S - 0.5) * RATE), round((BLOCK_S + 0.5) * RATE))
    assert not left[silent].any()
    assert not right[:2000].any()
    assert (left[: silent.start - 100] == 1000).all()
    assert (left[silent.stop + 100 :] == 1000).all()
    assert (right[2100:] == 2000).all()
    assert np.abs(np.diff(left)).max() < 60, "a mute must not click"


def test_a_file_without_its_beginning_is_refused() -> None:
    for data in (b"", b"garbage that is no entry", SpoolFile().data[:20]):
        with pytest.raises(RecordError) as caught:
            read_call(io.BytesIO(data))
        assert caught.value.code == "records.spool"
