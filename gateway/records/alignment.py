"""Where pieces of audio lie in a recording, to the sample.

The two sides know their times differently. Frames for the caller have a time at which they are
heard. Audio of the caller only has a time at which it came: it may have been held up on the way,
but it cannot have come before it was spoken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

GAP_S = 0.06
"""A caller's stream that is late by less than this goes on without a gap: that is jitter."""
FRAME_S = 0.02
"""Audio counts as on time where it comes while its last frame would begin."""
LOOK_S = 60.0
"""How far ahead a burst is looked for; more than that is a caller whose clock runs fast."""
SNAP_S = 0.01
"""Frames this close to the end of the one before follow it directly."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece of audio: index of the piece, first sample in the recording, samples that count."""

    index: int
    start: int
    samples: int


def place_stream(came_s: Sequence[float], samples: Sequence[int], rate_hz: int) -> list[Placed]:
    """Place pieces that came at these times (seconds of the recording), `samples` long each.

    Each lies as late as those after it allow: a burst after a stall ends when its last piece
    came. Where nothing was sent for a while there is silence. A clock that runs fast sends more
    than the time holds: a piece is left out now and then, so that the rest keeps its place.
    """
    latest = _latest(came_s, samples, rate_hz)
    gap = round(GAP_S * rate_hz)
    placed: list[Placed] = []
    at: int | None = None
    left_out_s = 0.0
    for index, start in enumerate(latest):
        if at is not None and start < at + gap:
            ahead = at - start
            if ahead >= gap and came_s[index] > left_out_s + LOOK_S and samples[index] <= gap:
                left_out_s = came_s[index]
                continue
            start = at
        start = max(0, start)
        placed.append(Placed(index, start, samples[index]))
        at = start + samples[index]
    return placed


def _latest(came_s: Sequence[float], samples: Sequence[int], rate_hz: int) -> list[int]:
    """The latest sample at which each piece can begin, by its own time and those soon after."""
    count = len(came_s)
    latest = [0] * count
    total = sum(samples)
    # Slack of the pieces ahead, least first: what each allows, less the audio before its end.
    ahead: deque[tuple[int, int]] = deque()
    for index in range(count - 1, -1, -1):
        slack = round((came_s[index] + FRAME_S) * rate_hz) - total
        total -= samples[index]
        while ahead and ahead[-1][0] >= slack:
            ahead.pop()
        ahead.append((slack, index))
        while came_s[ahead[0][1]] > came_s[index] + LOOK_S:
            ahead.popleft()
        latest[index] = ahead[0][0] + total
    return latest


class HeardFrames:
    """Places frames by the time at which they are heard; those that never were fall out."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._snap = max(1, round(SNAP_S * rate_hz))
        self._placed: list[Placed] = []
        self._count = 0

    def add(self, heard_s: float, samples: int) -> None:
        """A frame that is heard from `heard_s` on (seconds of the recording)."""
        start = round(heard_s * self._rate_hz)
        if self._placed:
            last = self._placed[-1]
            end = last.start + last.samples
            if start <= end - samples - self._snap:
                # The platform's clock runs fast: a frame less keeps the rest in its place.
                self._count += 1
                return
            # What comes too soon waits for what is playing.
            if start < end + self._snap:
                start = end
        if start >= 0:
            self._placed.append(Placed(self._count, start, samples))
        self._count += 1

    def unheard(self, since_s: float) -> None:
        """Nothing added so far was heard from `since_s` on."""
        since = max(0, round(since_s * self._rate_hz))
        placed = self._placed
        while placed and placed[-1].start >= since:
            placed.pop()
        if placed and placed[-1].start + placed[-1].samples > since:
            last = placed[-1]
            placed[-1] = Placed(last.index, last.start, since - last.start)

    @property
    def placed(self) -> Sequence[Placed]:
        """All frames that were heard, in order."""
        return self._placed
