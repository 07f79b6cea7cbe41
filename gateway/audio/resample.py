"""Sample rate conversion: a polyphase filter with carried state, for streams and whole clips.

The filter is a Kaiser-windowed sinc of linear phase. It passes 85 % of the lower rate's band and
stops at its end, so a conversion to or from 8 kHz is flat to 3.4 kHz, lets no alias through and
delays by less than 4 ms. 20 ms in give 20 ms out, always.

Coefficients are whole numbers and sums stay below 2**53, so float64 arithmetic is exact: the
order in which a BLAS adds, the size of the chunks and the machine do not change one bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm

MIN_RATE_HZ = 1000
MAX_RATE_HZ = 384_000

_PASS = 0.85
"""End of the pass band as a share of the lower rate's Nyquist frequency."""
_STOP_DB = 72.0
_SCALE_BITS = 20
_GROUP = 16
"""Outputs made by one matrix: wide enough to pay for the call, few enough to waste little."""
_SLICE = 1 << 15
"""Input samples worked on at a time; bounds the memory of a long clip."""

_Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring outputs of a period: their window's first input and its filter matrix."""

    first: int
    start: int
    matrix: _Samples  # (window, outputs)


@dataclass(frozen=True, slots=True)
class _Bank:
    """The filter for one pair of rates. A period is the shortest stretch that repeats."""

    up: int
    down: int
    taps: int
    delay: int  # output samples
    period_in: int
    period_out: int
    groups: tuple[_Group, ...]


def _phases(up: int, down: int, rate_in_hz: int, rate_out_hz: int) -> tuple[NDArray[np.int64], int]:
    """Whole-number taps, shape (up, taps), oldest input first; and the delay in outputs."""
    nyquist_hz = min(rate_in_hz, rate_out_hz) / 2
    transition_hz = (1 - _PASS) * nyquist_hz
    half_s = (_STOP_DB - 7.95) / (14.36 * transition_hz) / 2
    beta = 0.1102 * (_STOP_DB - 8.7)
    cutoff = (1 + _PASS) * nyquist_hz / rate_in_hz  # in units of the input's Nyquist frequency
    half = half_s * rate_in_hz
    delay = math.ceil(half_s * rate_out_hz)
    taps = math.ceil(half + delay * down / up) + 1
    phase = np.arange(up)[:, None]
    at = (phase - delay * down) / up + (taps - 1) - np.arange(taps)[None, :]
    inside = np.clip(1 - (at / half) ** 2, 0, None)
    shape = np.sinc(cutoff * at) * np.i0(beta * np.sqrt(inside)) * (np.abs(at) <= half)
    shape /= shape.sum(axis=1, keepdims=True)
    whole = np.rint(shape * (1 << _SCALE_BITS)).astype(np.int64)
    # Every phase lets DC through at exactly one: phases that differ would sing at the input rate.
    peak = np.abs(whole).argmax(axis=1)
    whole[np.arange(up), peak] += (1 << _SCALE_BITS) - whole.sum(axis=1)
    return whole, delay


@lru_cache(maxsize=64)
def _bank(rate_in_hz: int, rate_out_hz: int) -> _Bank:
    common = math.gcd(rate_in_hz, rate_out_hz)
    up, down = rate_out_hz // common, rate_in_hz // common
    phases, delay = _phases(up, down, rate_in_hz, rate_out_hz)
    taps = phases.shape[1]
    repeat = -(-_GROUP // up)
    period_out = up * repeat
    groups: list[_Group] = []
    for first in range(0, period_out, _GROUP if up > _GROUP else period_out):
        count = min(_GROUP if up > _GROUP else period_out, period_out - first)
        start = first * down // up
        end = (first + count - 1) * down // up
        matrix = np.zeros((end - start + taps, count))
        for column in range(count):
            position = (first + column) * down
            row = position // up - start
            matrix[row : row + taps, column] = phases[position % up]
        groups.append(_Group(first, start, matrix))
    return _Bank(up, down, taps, delay, down * repeat, period_out, tuple(groups))


class Resampler:
    """Converts one stream from `in_hz` to `out_hz`; the chunk sizes do not change the result."""

    def __init__(self, in_hz: int, out_hz: int) -> None:
        for rate_hz in (in_hz, out_hz):
            if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
                raise ValueError(f"no sane sample rate: {rate_hz} Hz")
        self.in_hz = in_hz
        self.out_hz = out_hz
        self._half = b""
        self._bank = None if in_hz == out_hz else _bank(in_hz, out_hz)
        self._reset()

    @property
    def delay_samples(self) -> int:
        """How late the output is, in output samples."""
        return self._bank.delay if self._bank else 0

    def process(self, pcm: Pcm) -> Pcm:
        """All output that the input so far determines; `pcm` may end in half a sample."""
        if self._half:
            pcm = self._half + pcm
            self._half = b""
        if len(pcm) & 1:
            self._half = pcm[-1:]
            pcm = pcm[:-1]
        bank = self._bank
        if bank is None:
            return pcm
        if not pcm:
            return b""
        samples = np.frombuffer(pcm, "<i2")
        if len(samples) <= _SLICE:
            return self._step(bank, samples)
        return b"".join(
            self._step(bank, samples[at : at + _SLICE]) for at in range(0, len(samples), _SLICE)
        )

    def flush(self) -> Pcm:
        """The last `delay_samples` of output. The next `process` starts a new stream."""
        self._half = b""
        bank = self._bank
        if bank is None:
            return b""
        tail = self._step(bank, np.zeros(-(-bank.delay * bank.down // bank.up), "<i2"))
        self._reset()
        return tail[: 2 * bank.delay]

    def _reset(self) -> None:
        # The buffer starts with the inputs that the first output of the current period looks at.
        self._kept = np.zeros(self._bank.taps - 1 if self._bank else 0)
        self._given = 0

    def _step(self, bank: _Bank, samples: NDArray[np.int16]) -> Pcm:
        kept = len(self._kept)
        arrived = kept + len(samples) - (bank.taps - 1)
        ready = -(-arrived * bank.up // bank.down)
        rows = -(-ready // bank.period_out)
        # Outputs beyond `ready` are computed on zeros and not given out.
        inputs = np.empty(max(rows * bank.period_in, arrived) + bank.taps - 1)
        inputs[:kept] = self._kept
        inputs[kept : kept + len(samples)] = samples
        inputs[kept + len(samples) :] = 0.0
        outputs = np.empty((rows, bank.period_out))
        for group in bank.groups:
            window, count = group.matrix.shape
            view: _Samples = np.ndarray(
                (rows, window), np.float64, inputs, group.start * 8, (bank.period_in * 8, 8)
            )
            np.matmul(view, group.matrix, out=outputs[:, group.first : group.first + count])
        flat = outputs.reshape(-1)[self._given : ready]
        flat *= 2.0**-_SCALE_BITS
        np.rint(flat, flat)
        np.minimum(flat, 32767.0, out=flat)
        np.maximum(flat, -32768.0, out=flat)
        whole = arrived // bank.period_in
        self._kept = inputs[whole * bank.period_in : kept + len(samples)].copy()
        self._given = ready - whole * bank.period_out
        return flat.astype("<i2").tobytes()


def resample_clip(pcm: Pcm, in_hz: int, out_hz: int) -> Pcm:
    """A whole clip at another rate: no delay, and as long as the input, rounded up to a sample."""
    resampler = Resampler(in_hz, out_hz)
    body = resampler.process(pcm)
    skip = 2 * resampler.delay_samples
    return (body + resampler.flush())[skip : skip + len(body)]
