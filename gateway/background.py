"""How the helpers of the media process step back: app code and speech yield to frames."""

from __future__ import annotations

import contextlib
import os

NICENESS = 10


def yield_to_media() -> None:
    """Make this process give way to the media process wherever both want the same core.

    Beside the nice value this lowers the process's own scheduling group (a session of its own is
    one on Linux, and nice values count only inside of it) and lets it never preempt.
    """
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:
        group.write(str(NICENESS))
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
