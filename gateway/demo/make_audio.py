"""Makes the demo's audio: `python -m gateway.demo.make_audio` writes app/audio/ anew.

The greeting is synthesised with a fixed seed and the music is computed note by note, so two runs
on one machine give the same bytes.
"""

from __future__ import annotations

import wave
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from gateway.demo import APP_PATH

Samples = npt.NDArray[np.float64]
"""Mono samples; 1.0 is full scale."""

RATE_HZ = 8000
SPEECH_DBFS = -20.0
MUSIC_DBFS = -26.0
PEAK_DBFS = -3.0

GREETING = "Welcome to Northlight Energy. How can I help you today?"

_HOLD_CHORDS = ((48, 52, 55, 59), (45, 52, 55, 60), (41, 48, 52, 57), (43, 50, 53, 59))
_HOLD_MELODY = (76, 0, 79, 0, 72, 74, 76, 0, 77, 0, 76, 72, 74, 0, 71, 0)
_WAIT_CHORDS = ((50, 57, 62), (47, 54, 62), (43, 50, 59), (45, 52, 61))
_WAIT_MELODY = (78, 74, 69, 74, 78, 71, 79, 74, 71, 76, 73, 69)


@cache
def _voice() -> Any:
    from hibari import Hibari

    return Hibari()


def levelled(samples: Samples, rms_dbfs: float) -> Samples:
    """The samples at `rms_dbfs`, turned down further where a peak would pass PEAK_DBFS."""
    rms = float(np.sqrt(np.mean(samples**2)))
    peak = float(np.abs(samples).max())
    gain = min(10 ** (rms_dbfs / 20) / rms, 10 ** (PEAK_DBFS / 20) / peak)
    return samples * gain


def speech(text: str, *, seed: int = 7, speed: float = 1.0) -> Samples:
    """`text` spoken, at RATE_HZ and SPEECH_DBFS, with a tenth of a second of silence around it."""
    wide = np.asarray(_voice()(text, speed=speed, seed=seed), dtype=np.float64)
    factor = _voice().sample_rate // RATE_HZ
    taps = np.arange(-96, 97)
    low_pass = np.sinc(taps * 2 * 3600 / _voice().sample_rate) * np.kaiser(taps.size, 8.0)
    narrow = np.convolve(wide, low_pass / low_pass.sum(), mode="same")[::factor]
    return np.pad(levelled(narrow, SPEECH_DBFS), RATE_HZ // 10)


def note(midi: int, seconds: float, *, decay_s: float = 0.9) -> Samples:
    """One plucked note: six partials, the higher ones dying sooner, none above 3.4 kHz."""
    time = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    base_hz = 440.0 * 2 ** ((midi - 69) / 12)
    out = np.zeros(time.size)
    for partial in range(1, 7):
        if base_hz * partial < 3400:
            ring = np.exp(-time * partial / decay_s) / partial**1.6
            out += ring * np.sin(2 * np.pi * base_hz * partial * time)
    attack = np.minimum(1.0, time / 0.008)
    release = np.minimum(1.0, (seconds - time) / 0.05)
    return np.asarray(out * attack * release, dtype=np.float64)


def loop(
    chords: Sequence[Sequence[int]], melody: Sequence[int], *, beat_s: float, beats: int
) -> Samples:
    """Arpeggios under a melody, one chord a bar; what rings on at the end wraps to the start."""
    out = np.zeros(round(len(chords) * beats * beat_s * RATE_HZ))

    def add(sound: Samples, at_s: float, gain: float) -> None:
        places = (int(at_s * RATE_HZ) + np.arange(sound.size)) % out.size
        np.add.at(out, places, sound * gain)

    for bar, chord in enumerate(chords):
        start_s = bar * beats * beat_s
        add(note(chord[0], beats * beat_s + 0.8, decay_s=2.5), start_s, 1.0)
        for step in range(beats * 2):
            tone = chord[step % len(chord)] + (12 if step % 3 == 2 else 0)
            add(note(tone + 12, 1.4), start_s + step * beat_s / 2, 0.45)
        for beat in range(beats):
            tone = melody[(bar * beats + beat) % len(melody)]
            if tone:
                add(note(tone, 1.8, decay_s=1.2), start_s + beat * beat_s, 0.6)
    return levelled(out, MUSIC_DBFS)


def hold_music() -> Samples:
    """Sixteen seconds in four-four time, seamless when repeated."""
    return loop(_HOLD_CHORDS * 2, _HOLD_MELODY, beat_s=0.5, beats=4)


def wait_music() -> Samples:
    """Fourteen seconds and more in three-four time, seamless when repeated."""
    return loop(_WAIT_CHORDS * 2, _WAIT_MELODY, beat_s=0.6, beats=3)


def chime() -> Samples:
    """Three rising bells, the sound that closes a call."""
    out = np.zeros(int(1.6 * RATE_HZ))
    for place, midi in enumerate((72, 76, 84)):
        start = int(place * 0.22 * RATE_HZ)
        sound = note(midi, (out.size - start) / RATE_HZ, decay_s=0.7)
        out[start:] += sound
    return levelled(out, MUSIC_DBFS)


def pcm(samples: Samples) -> npt.NDArray[np.int16]:
    """The samples as 16-bit integers."""
    return np.clip(np.round(samples * 32767), -32768, 32767).astype(np.int16)


def write_wav(path: Path, samples: Samples) -> None:
    """A 16-bit mono WAV at RATE_HZ."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(pcm(samples).astype("<i2").tobytes())


def write_alaw(path: Path, samples: Samples) -> None:
    """An A-law mono WAV at RATE_HZ: the second of the encodings that the demo shows."""
    soundfile.write(path, pcm(samples), RATE_HZ, format="WAV", subtype="ALAW")


def main() -> None:
    """Write every file of the app's audio folder."""
    folder = APP_PATH / "audio"
    folder.mkdir(exist_ok=True)
    write_wav(folder / "greeting.wav", speech(GREETING))
    write_wav(folder / "hold_music.wav", hold_music())
    write_alaw(folder / "async_music.wav", wait_music())
    write_wav(folder / "closing.wav", chime())


if __name__ == "__main__":
    main()
