"""The helpers of the media process: they step back for its frames, and end with it.

App code and speech run in processes beside it, started by `gateway.runtime.child`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

NICENESS = 10
PARENT_PID = "PARENT_PID"
"""Environment variable by which a helper knows the process that started it."""
_PR_SET_PDEATHSIG = 1
"""Linux's number of the wish to get a signal when the parent ends."""


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


def end_with_parent() -> None:
    """Have the system kill this process when the one that started it is gone, whatever it does.

    Only where it says who it is (`PARENT_PID`), and where the system is Linux.
    """
    parent = os.environ.pop(PARENT_PID, "")
    if not parent:
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if str(os.getppid()) != parent:
        # It went before the wish was made.
        os._exit(1)
