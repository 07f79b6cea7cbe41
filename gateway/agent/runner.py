"""Run app code away from the event loop, with a deadline.

`ThreadRunner` is for live service; a simulation brings its own `CodeRunner` with virtual time.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from gateway.errors import RuntimeFailure

T = TypeVar("T")

MAX_THREADS = 128
"""Calls of app code at the same time; more are refused."""
KILL_EVERY_S = 0.1
KILL_GRACE_S = 2.0
"""How long a thread past its deadline may resist before the process counts as retiring."""


class DeadlineExceeded(RuntimeFailure):
    """App code took longer than it may."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__("runtime.deadline", f"app code took longer than {deadline_s:g} s")
        self.deadline_s = deadline_s


class CodeRunner(Protocol):
    """Runs app code without blocking the event loop."""

    async def run(self, fn: Callable[[], T], deadline_s: float) -> T:
        """The result of `fn()`. Raises what it raises, or DeadlineExceeded."""
        ...


class Killed(BaseException):
    """Raised inside app code whose deadline has passed; not for app code to catch."""


class _Job(Generic[T]):
    """One call of app code in a thread of its own."""

    def __init__(self, fn: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[T] = loop.create_future()
        # A job whose caller is gone may still fail; that is then nobody's concern.
        self.future.add_done_callback(lambda f: None if f.cancelled() else f.exception())
        self._fn = fn
        self._loop = loop
        self._lock = threading.Lock()
        self._returned = False
        self.thread = threading.Thread(target=self._main, name="app-code", daemon=True)

    def _main(self) -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            try:
                result = self._fn()
            except BaseException as raised:
                error = raised
            with self._lock:
                self._returned = True
        except Killed as late:
            # The kill arrived between the end of the app code and the mark that it has ended.
            self._returned = True
            error = error or late
        del self._fn  # What it holds must not outlive the call.
        try:
            self._loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:
            return  # The loop was closed meanwhile: nobody waits.

    def _deliver(self, result: T | None, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)  # type: ignore[arg-type]
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:
            # SystemExit and its like must not reach the event loop.
            self.future.set_exception(AppCodeExit(error))

    def kill(self) -> bool:
        """Raise Killed in the thread. True when the app code has already ended."""
        with self._lock:
            if self._returned or not self.thread.is_alive():
                return True
            ident = self.thread.ident
            if ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(Killed)
                )
        return False


class AppCodeExit(RuntimeFailure):
    """App code tried to leave (SystemExit, KeyboardInterrupt and the like)."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("runtime.app_exit", f"app code raised {type(error).__name__}")


class ThreadRunner:
    """App code in threads, one a call. A thread that cannot be ended makes the runner retire.

    `on_retire` is called once, on the event loop, when that happens.
    """

    def __init__(
        self,
        on_retire: Callable[[], None] | None = None,
        kill_grace_s: float = KILL_GRACE_S,
        max_threads: int = MAX_THREADS,
    ) -> None:
        self.retiring = False
        self._on_retire = on_retire
        self._kill_grace_s = kill_grace_s
        self._max_threads = max_threads
        self._jobs: set[_Job[object]] = set()

    async def run(self, fn: Callable[[], T], deadline_s: float) -> T:
        """The result of `fn()` from a thread. Raises what it raises, or DeadlineExceeded.

        A caller that is cancelled leaves the code running until its end or its deadline.
        """
        if len(self._jobs) >= self._max_threads:
            raise RuntimeFailure("runtime.busy", "too many calls of app code at the same time")
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(fn, loop)
        self._jobs.add(job)  # type: ignore[arg-type]
        timer = loop.call_later(deadline_s, self._expire, job, deadline_s)

        def ended(_future: asyncio.Future[T]) -> None:
            timer.cancel()
            self._jobs.discard(job)

        job.future.add_done_callback(ended)
        try:
            job.thread.start()
        except RuntimeError:
            # App code has taken all threads that the process may have.
            job.future.cancel()
            raise RuntimeFailure("runtime.busy", "no thread is left for app code") from None
        return await asyncio.shield(job.future)

    def _expire(self, job: _Job[T], deadline_s: float) -> None:
        if not job.future.done():
            job.future.set_exception(DeadlineExceeded(deadline_s))
            self._kill(job, asyncio.get_running_loop().time() + self._kill_grace_s)

    def _kill(self, job: _Job[T], until: float) -> None:
        loop = asyncio.get_running_loop()
        if job.kill():
            return
        if loop.time() < until:
            loop.call_later(KILL_EVERY_S, self._kill, job, until)
        elif not self.retiring:
            self.retiring = True
            if self._on_retire is not None:
                self._on_retire()

    async def aclose(self) -> None:
        """End what still runs, as far as it can be ended."""
        for job in tuple(self._jobs):
            job.kill()
            if not job.future.done():
                job.future.cancel()
