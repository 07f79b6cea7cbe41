"""What live resampling costs a 20 ms frame."""

from __future__ import annotations

import time

from gateway.audio.resample import Resampler

FRAMES = 2000
PAIRS = [(8000, 16000), (16000, 8000), (24000, 8000), (48000, 8000), (8000, 24000)]


def main() -> None:
    """Print µs of CPU a frame for each pair of rates."""
    for in_hz, out_hz in PAIRS:
        resampler = Resampler(in_hz, out_hz)
        frame = bytes(in_hz // 50 * 2)
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            for _ in range(FRAMES):
                resampler.process(frame)
            best = min(best, (time.process_time() - begun) / FRAMES * 1e6)
        print(f"{in_hz:>6} → {out_hz:<6} {best:6.1f} µs a frame")
