"""Forks of app code hold none of the connections of the process that they come from.

A copy of a socket keeps it open: a session would go on hearing nothing after its process has
ended, for as long as the fork lives.
"""

from __future__ import annotations

import contextlib
import os
import socket
from functools import partial
from pathlib import Path


def let_go_in_forks(path: Path, control: int) -> None:
    """Have every fork drop its copies of the sockets at `path` and of the descriptor `control`."""
    os.register_at_fork(after_in_child=partial(_let_go, str(path), control))


def _let_go(path: str, control: int) -> None:
    # Replaced and not closed: Python's own objects still know the numbers.
    nothing = os.open(os.devnull, os.O_RDWR)
    with contextlib.suppress(OSError):
        os.dup2(nothing, control, inheritable=False)
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if _name_of(int(name)) == path:
                    os.dup2(nothing, int(name), inheritable=False)
    os.close(nothing)


def _name_of(descriptor: int) -> object:
    """The address that a socket is bound to. Raises OSError where it is no socket."""
    own = socket.socket(fileno=os.dup(descriptor))
    with own:
        return own.getsockname()
