"""Which stretches of a recording are silenced, because what is said there is masked.

When a word was said is not known, only when its line was. Its place is taken by proportion of the
time in which there is sound, with a margin for error on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gateway.call.transcript import Speaker
from gateway.records.tracks import Span, Track
from gateway.records.transcript import Line, Story

MARGIN_S = 0.3
MARGIN_SHARE = 0.1
"""Margin of a masked stretch: so many seconds, and this share of its line."""
KEY_BEFORE_S = 0.5
KEY_AFTER_S = 0.3
WINDOW_S = 0.02
QUIET = 0.06
"""A window counts as sound from this share of the line's loudest window on."""


def muted(
    story: Story, keys: Iterable[float], caller: Track, agent: Track
) -> tuple[list[Span], list[Span]]:
    """What to silence on the caller's and on the agent's side.

    Besides masked words: tones of keys, and speech that nobody understood and so nobody judged.
    """
    left = [(t - KEY_BEFORE_S, t + KEY_AFTER_S) for t in keys]
    left += [(start - MARGIN_S, end + MARGIN_S) for start, end in story.unclear]
    right: list[Span] = []
    for line in story.lines:
        if line.hidden and not line.typed and not line.keys:
            if line.speaker is Speaker.CALLER:
                left += _spans(line, caller)
            else:
                right += _spans(line, agent)
    return merged(left), merged(right)


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, without overlaps, none before the call."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        start = max(0.0, start)
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def _spans(line: Line, track: Track) -> list[Span]:
    if not line.known:
        return [(line.start, line.end)]
    samples = track.read((line.start, line.end))
    times = _sounding(samples, track.rate_hz, line.start)
    if len(times) < 3:
        return [(line.start, line.end)]
    margin_s = MARGIN_S + MARGIN_SHARE * len(times) * WINDOW_S
    spans: list[Span] = []
    for first, last in line.hidden:
        start = times[min(int(first * len(times)), len(times) - 1)]
        end = times[min(int(last * len(times)), len(times) - 1)] + WINDOW_S
        spans.append((start - margin_s, end + margin_s))
    return spans


def _sounding(samples: NDArray[np.int16], rate_hz: int, start_s: float) -> Sequence[float]:
    """When each window with sound in it begins."""
    size = round(WINDOW_S * rate_hz)
    count = len(samples) // size
    if not count:
        return []
    windows = samples[: count * size].reshape(count, size).astype(np.float32)
    level = np.sqrt(np.mean(windows * windows, axis=1))
    loud = np.nonzero(level >= max(1.0, QUIET * float(level.max())))[0]
    times: list[float] = (start_s + loud * WINDOW_S).tolist()
    return times
