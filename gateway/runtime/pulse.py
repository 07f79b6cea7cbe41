"""Does a process that gives no sign of life hang, or does the machine not let it run?

Everything that a runtime process does needs its interpreter; app code that holds it (in C, or by
stopping the process) silences all its sessions. A process that has had the processor for a while
and still says nothing hangs, and so does one in which nothing even wants to run. One that wants to
and is not let is only slow, as on a machine that is short of processors or memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ENOUGH_S = 1.0
"""Processor time within which a loop that can turn has turned."""
_WANTS_TO_RUN = frozenset("RD")
"""States of a thread that waits for a processor, or for memory or a disk."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`used_s`: processor time so far. `wants`: some thread would run if it were let."""

    used_s: float
    wants: bool


def sample(pid: int) -> Sample | None:
    """How a process does now; None where this system does not say."""
    used_ticks, wants = 0, False
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            # The name in it is in brackets and may hold anything.
            fields = (thread / "stat").read_text(encoding="ascii", errors="replace")
            state, *numbers = fields.rpartition(")")[2].split()
            wants = wants or state in _WANTS_TO_RUN
            used_ticks += int(numbers[10]) + int(numbers[11])
    except (OSError, ValueError, IndexError):
        return None
    return Sample(used_ticks / os.sysconf("SC_CLK_TCK"), wants)


def hangs(first: Sample | None, last: Sample | None) -> bool:
    """Whether a process that was silent from the first sample to the last one had its chance."""
    if first is None or last is None:
        return False
    return last.used_s - first.used_s >= ENOUGH_S or not (first.wants or last.wants)
