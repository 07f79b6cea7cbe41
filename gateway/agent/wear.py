"""Has app code left so much behind that the process should be replaced?

Memory, descriptors and threads that a call of app code does not give back count against every
later session of the process, up to the point where none works any more.
"""

from __future__ import annotations

import math
import os
import resource
import threading
from pathlib import Path

from gateway.agent.runner import MAX_THREADS

SHARE = 0.75
"""How much of a limit may be taken."""
TIMES = 3
"""Checks in a row that must agree: what is given back within seconds is no wear."""
MAX_LIVE_THREADS = 2 * MAX_THREADS


class Wear:
    """Judges this process; ask `worn` about once a second."""

    def __init__(self, memory_mb: int) -> None:
        try:
            self._bound_bytes = _size_bytes() + SHARE * (memory_mb << 20)
        except FileNotFoundError:
            self._bound_bytes = math.inf
        self._seen = 0

    def worn(self) -> str:
        """What there is too much of, for some time already; empty: nothing."""
        reason = self._now()
        self._seen = self._seen + 1 if reason else 0
        return reason if self._seen >= TIMES else ""

    def _now(self) -> str:
        if threading.active_count() > MAX_LIVE_THREADS:
            return "threads"
        try:
            opened = len(os.listdir("/proc/self/fd"))
            size_bytes = _size_bytes()
        except FileNotFoundError:
            # A system without /proc: its memory is not limited either.
            return ""
        except OSError:
            # Looking takes a descriptor itself.
            return "descriptors"
        if opened > SHARE * resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
            return "descriptors"
        return "memory" if size_bytes > self._bound_bytes else ""


def _size_bytes() -> int:
    """Address space of this process, which is what its memory limit is about."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
