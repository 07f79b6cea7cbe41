"""Whose app code runs in this thread, until when, and where its words go.

App code's `print` and `logging` become log lines of the logger `app`, each with the
session's id; a call of app code may write a bounded number of them. They may hold the caller's
words, so that only their number is logged unless a setting says otherwise.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from gateway.agent.platform import CallbackContext
from gateway.logs import OWN

T = TypeVar("T")

MAX_LINES = 200
MAX_LINE_CHARS = 2000

app_log = logging.getLogger("app")
log = structlog.get_logger()


@dataclass(slots=True)
class Scope:
    """One call of app code. `deadline` is a time of `time.monotonic()` in its thread."""

    session_id: str
    context: CallbackContext | None
    deadline: float
    show: bool = False
    """True: write the lines themselves."""
    lines_left: int = MAX_LINES

    @property
    def lines(self) -> int:
        """How many lines came so far; the bound where there were more."""
        return min(MAX_LINES, MAX_LINES - self.lines_left)


_local = threading.local()
_own_threads = {"shown": False}


def show_own_threads(show: bool) -> None:
    """Whether threads that app code has started itself may write into this process's log."""
    _own_threads["shown"] = show


def _is_withheld() -> bool:
    """True in a thread of app code's own, whose words may be the caller's."""
    ours = threading.current_thread() is threading.main_thread()
    return not ours and not _own_threads["shown"]


def current() -> Scope | None:
    """The scope of the app code that runs in this thread; None outside app code."""
    return getattr(_local, "scope", None)


@contextmanager
def _entered(scope: Scope) -> Iterator[None]:
    outer = current()
    _local.scope = scope
    try:
        yield
    finally:
        _local.scope = outer


def scoped(
    fn: Callable[[], T],
    session_id: str,
    context: CallbackContext | None,
    deadline_s: float,
    *,
    show: bool = False,
) -> Callable[[], T]:
    """`fn` to be called in a worker thread, with its scope set there."""

    def call() -> T:
        scope = Scope(session_id, context, time.monotonic() + deadline_s, show)
        try:
            with _entered(scope):
                return fn()
        finally:
            if scope.lines and not show:
                log.info(
                    "app.output_withheld",
                    session=session_id,
                    lines=scope.lines,
                    more=scope.lines == MAX_LINES,
                )

    return call


@contextmanager
def nested(context: CallbackContext) -> Iterator[None]:
    """App code that calls app code: the inner one's context, the outer one's deadline."""
    outer = current()
    deadline = outer.deadline if outer else time.monotonic()
    lines = outer.lines_left if outer else MAX_LINES
    show = outer.show if outer else False
    inner = Scope(outer.session_id if outer else "", context, deadline, show, lines)
    try:
        with _entered(inner):
            yield
    finally:
        if outer is not None:
            outer.lines_left = inner.lines_left


class ScopeFilter(logging.Filter):
    """Give each record the session's id; drop what app code may not write."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True where the record may be written."""
        if record.name == OWN:
            return True
        scope = current()
        if scope is None:
            return record.name == app_log.name or not _is_withheld()
        record.session = scope.session_id
        scope.lines_left -= 1
        if not scope.show:
            return False
        if scope.lines_left == 0:
            record.msg, record.args = "further output of this call is not logged", ()
        return scope.lines_left >= 0


class AppOutput(io.TextIOBase):
    """A text stream for app code: lines become log records; it cannot be closed."""

    def __init__(self) -> None:
        super().__init__()
        self._pending = threading.local()

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Take text; each full line is logged."""
        pending: str = getattr(self._pending, "text", "") + text
        *lines, rest = pending.split("\n")
        for line in lines:
            _log_line(line)
        while len(rest) > MAX_LINE_CHARS:
            _log_line(rest)
            rest = ""
        self._pending.text = rest
        return len(text)

    def close(self) -> None:
        """Stay open: app code must not take the stream from other sessions."""


def _log_line(line: str) -> None:
    scope = current()
    if not line.strip():
        return
    if scope is not None and not scope.show:
        scope.lines_left -= 1
    elif not _is_withheld() if scope is None else scope.lines_left > 0:
        app_log.info("%s", line[:MAX_LINE_CHARS])


def app_print(
    *values: object,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any = None,
    flush: bool = False,
) -> None:
    """`print` of app code: to the log unless a file is given."""
    if file is not None:
        print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    text = (" " if sep is None else sep).join(str(value) for value in values)
    for line in text.split("\n"):
        _log_line(line)
