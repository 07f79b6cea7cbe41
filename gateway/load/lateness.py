"""How late the frames of a call arrive, judged from the receiving end alone.

A stretch of audio has a schedule: after a burst of a few frames sent ahead, one frame each 20 ms.
The schedule's origin is fitted to the earliest tenth of the frames after the burst, so what is
measured is the unsteadiness of server and network, never a clock difference.
"""

from __future__ import annotations

from array import array

STALL_S = 0.2
"""A wait so much longer than the audio before it lasts is a stall, and a new schedule starts."""
BURST_S = 0.01
"""Frames that come so soon after a stretch's first one were sent ahead, off the schedule."""


class FrameClock:
    """Collects the arrivals of one call. Times in seconds."""

    def __init__(self) -> None:
        self.late_s = array("d")
        self.stalls_s = array("d")
        self._arrivals: list[tuple[float, float]] = []
        self._position_s = 0.0
        self._last_s = 0.0
        self._stretch = -1

    def arrived(self, now: float, seconds: float, stretch: int) -> None:
        """`seconds` of audio came at `now`; `stretch` tells one stretch of audio from the next."""
        if stretch != self._stretch:
            self.close()
            self._stretch = stretch
        elif self._arrivals and now - self._arrivals[-1][0] > STALL_S + self._last_s:
            self.stalls_s.append(now - self._arrivals[-1][0])
            self.close()
        self._arrivals.append((now, self._position_s))
        self._position_s += seconds
        self._last_s = seconds

    def close(self) -> None:
        """Judge the stretch that has ended."""
        arrivals, self._arrivals = self._arrivals, []
        self._position_s = 0.0
        if not arrivals:
            return
        first = arrivals[0][0]
        steady = [(at, position) for at, position in arrivals if at - first > BURST_S]
        self.late_s.extend(0.0 for _ in range(len(arrivals) - len(steady)))
        if steady:
            offsets = sorted(at - position for at, position in steady)
            # Not the very first: one frame that left early would make all others late.
            origin = offsets[len(offsets) // 10]
            self.late_s.extend(max(0.0, at - position - origin) for at, position in steady)
