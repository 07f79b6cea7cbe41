"""Makes the caller recordings beside it: `python audio_fixtures/make_fixtures.py`."""

from pathlib import Path

import numpy as np

from gateway.demo.make_audio import RATE_HZ, levelled, speech, write_wav

FOLDER = Path(__file__).resolve().parent

PHRASES = {
    "yes": "Yes please.",
    "no": "No, thank you.",
    "hello": "Hello?",
    "balance": "What is my balance?",
    "power_out": "My power is out.",
    "goodbye": "Goodbye.",
}


def noise(seconds: float, level_dbfs: float) -> np.ndarray:
    """Street-like noise: white noise through a gentle low pass, from a fixed seed."""
    white = np.random.default_rng(11).standard_normal(int(seconds * RATE_HZ))
    soft = np.convolve(white, np.hanning(12), mode="same")
    return levelled(soft, level_dbfs)


def main() -> None:
    """Write every fixture."""
    for name, text in PHRASES.items():
        write_wav(FOLDER / f"{name}.wav", speech(text, seed=23, speed=0.95))
    write_wav(FOLDER / "noise.wav", noise(3.0, -40.0))


if __name__ == "__main__":
    main()
