"""App code in virtual time: a tool's `time.sleep(5)` costs five simulated seconds and none of ours.

Each call of app code runs in a thread of its own with a strict hand-off: the loop stands still
while the code runs, and the code stands still while it "sleeps". So at any moment only one of all
threads moves, and a run repeats exactly.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from gateway.agent.runner import AppCodeExit, DeadlineExceeded, Killed

T = TypeVar("T")

REAL_LIMIT_S = 20.0
"""Real seconds that app code may compute without sleeping or returning."""
EPOCH_S = 1_767_225_600.0
"""What `time.time()` says when virtual time is 0: 2026-01-01T00:00:00Z."""
_JOIN_S = 2.0

_here = threading.local()


class _Code:
    """One call of app code in its thread. `fn` and its outcome cross by plain attributes."""

    def __init__(self, fn: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self._fn = fn
        self._loop = loop
        self._go = threading.Event()
        self._paused = threading.Event()
        self._abandoned = False
        self.sleep_s: float | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = False
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._main,), name="virtual-app-code", daemon=True
        )

    def _main(self) -> None:
        _here.code = self
        try:
            self.result = self._fn()
        except BaseException as error:
            self.error = error
        self.finished = True
        self._paused.set()

    def resume(self, real_limit_s: float) -> bool:
        """Let the code run to its next sleep or its end; False if it does not come there."""
        self.sleep_s = None
        self._paused.clear()
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._go.set()
        return self._paused.wait(real_limit_s)

    def now(self) -> float:
        """The loop's virtual time."""
        return self._loop.time()

    def sleep(self, seconds: float) -> None:
        """In the code's thread: hand over to the loop for so many virtual seconds."""
        self.sleep_s = seconds
        self._go.clear()
        self._paused.set()
        self._go.wait()
        if self._abandoned:
            raise Killed

    def abandon(self) -> None:
        """End the code: out of its sleep, or (endless loops) between two of its lines."""
        self._abandoned = True
        if self._thread.ident is None or self.finished:
            return
        if self.sleep_s is not None:
            self._go.set()
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(Killed)
            )
        self._thread.join(_JOIN_S)

    def join(self) -> None:
        """Wait for the ended thread."""
        self._thread.join(_JOIN_S)


class VirtualCodeRunner:
    """Runs app code for a simulation; deadlines count virtual seconds."""

    def __init__(self, real_limit_s: float = REAL_LIMIT_S) -> None:
        self._real_limit_s = real_limit_s

    async def run(self, fn: Callable[[], T], deadline_s: float) -> T:
        """The result of `fn()`. Raises what it raises, or DeadlineExceeded.

        A caller that is cancelled leaves the code running until its end or its deadline.
        """
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(
            self._drive(fn, deadline_s), name="app-code"
        )
        # One whose caller is gone may still fail; that is then nobody's concern.
        task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
        return await asyncio.shield(task)

    async def _drive(self, fn: Callable[[], T], deadline_s: float) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + deadline_s
        code = _Code(fn, loop)
        try:
            while True:
                if not code.resume(self._real_limit_s):
                    # It computes for ever: to the call that is a deadline like any other.
                    await asyncio.sleep(max(0.0, deadline - loop.time()))
                    raise DeadlineExceeded(deadline_s)
                if code.finished:
                    break
                until = loop.time() + max(0.0, code.sleep_s or 0.0)
                await asyncio.sleep(max(0.0, min(until, deadline) - loop.time()))
                if until > deadline:
                    raise DeadlineExceeded(deadline_s)
        except BaseException:
            code.abandon()
            raise
        code.join()
        error = code.error
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise error
        if error is not None:
            raise AppCodeExit(error)
        result: T = code.result
        return result


@contextmanager
def virtual_clock() -> Iterator[None]:
    """While open, app code of a VirtualCodeRunner meets virtual time in the `time` module.

    Other threads meet the real one. `datetime.now()` stays real: it asks the system itself.
    """
    real: dict[str, Callable[..., Any]] = {
        name: getattr(time, name) for name in ("sleep", "time", "monotonic", "perf_counter")
    }

    def sleep(seconds: float) -> None:
        code: _Code | None = getattr(_here, "code", None)
        if code is None:
            real["sleep"](seconds)
        elif seconds < 0:
            raise ValueError("sleep length must be non-negative")
        else:
            code.sleep(seconds)

    def clock(name: str, offset_s: float) -> Callable[[], float]:
        def read() -> float:
            code: _Code | None = getattr(_here, "code", None)
            return float(real[name]()) if code is None else offset_s + code.now()

        return read

    virtual: dict[str, Callable[..., Any]] = {
        "sleep": sleep,
        "time": clock("time", EPOCH_S),
        "monotonic": clock("monotonic", 0.0),
        "perf_counter": clock("perf_counter", 0.0),
    }
    for name, function in virtual.items():
        setattr(time, name, function)
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(time, name, function)
