"""Voice activity without a model, for when none is installed: an energy gate for each call."""

from __future__ import annotations

from gateway.audio.formats import Pcm
from gateway.audio.vad import EnergyGate
from gateway.speech.base import VAD_RATE_HZ, VAD_WINDOW_SAMPLES, OnWindow

_WINDOW_BYTES = 2 * VAD_WINDOW_SAMPLES
_WINDOW_S = VAD_WINDOW_SAMPLES / VAD_RATE_HZ


class EnergyStream:
    """One call's gate; judges inside `feed`, a few microseconds a window."""

    def __init__(self, on_window: OnWindow) -> None:
        self._on_window: OnWindow | None = on_window
        self._gate = EnergyGate()
        self._pending = bytearray()
        self._windows = 0

    def feed(self, pcm_8k: Pcm) -> None:
        """Judge at once; reports before it returns."""
        if self._on_window is None:
            return
        self._pending += pcm_8k
        while self._on_window is not None and len(self._pending) >= _WINDOW_BYTES:
            window = bytes(self._pending[:_WINDOW_BYTES])
            del self._pending[:_WINDOW_BYTES]
            self._windows += 1
            self._on_window(self._gate.probability(window), self._windows * _WINDOW_S)

    def close(self) -> None:
        """Report nothing more."""
        self._on_window = None


class EnergyActivity:
    """The energy gate, live and simulated alike."""

    name = "energy"

    def open(self, on_window: OnWindow) -> EnergyStream:
        """A new stream."""
        return EnergyStream(on_window)
