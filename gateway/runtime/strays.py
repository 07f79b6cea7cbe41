"""Processes that app code has started and that outlive their runtime process.

Each runtime process leads a process group, which ends with it. What has left the group is known by
a mark in its environment, which forks and what they start inherit.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

MARK = "AGENT_PROCESS"
"""Environment variable of a runtime process; its value is of that one process alone."""
ROUNDS = 10
"""Searches in a row that may find some: what is ended may have started another just before."""


def end_strays(leader: int, mark: str) -> None:
    """End what is left of the group of `leader`, which has ended, and whatever bears `mark`.

    Reads all of /proc: milliseconds, so call it in a thread.
    """
    # The group's number stays taken while any of it lives.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for _ in range(ROUNDS):
        found = _marked(f"{MARK}={mark}".encode())
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _marked(entry: bytes) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            # One that is not ours, has ended or is ending cannot be read.
            with contextlib.suppress(OSError):
                if entry in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found
