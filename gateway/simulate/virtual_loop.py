"""An asyncio loop whose clock jumps: when nothing is ready, it is at once the next timer's time.

No sockets, no signals, no threads: what a simulation may not depend on does not exist here. The
order of callbacks depends on nothing but the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack, cast

from gateway.errors import GatewayError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_CALLBACKS_AT_ONCE = 1_000_000
"""Callbacks without any time passing, after which something spins."""


class SimulationError(GatewayError):
    """A simulated call that cannot go on: a fault of the program, not of the scenario."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs coroutines in virtual time, which begins at `start_s`."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._sequence = 0
        self._running = False
        self._stopping = False
        self._closed = False
        self._failure: BaseException | None = None

    # ---- the clock and the queue

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Run at this very moment, after what is already waiting."""
        self._check_open()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """The same: threads of a simulation run only while the loop waits for them."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run after `delay` virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run at the virtual time `when`; equal times keep their order."""
        self._check_open()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by TimerHandle.cancel; a cancelled timer is dropped when its turn comes."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """A task of this loop."""
        self._check_open()
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run `func` here and now: a thread would bring real time into the run."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    # ---- running

    def run_forever(self) -> None:
        """Run until `stop`. Raises SimulationError when nothing can ever happen any more."""
        self._check_open()
        if self._running:
            raise RuntimeError("this loop is running already")
        previous = events._get_running_loop()
        self._running = True
        self._stopping = False
        # A nested run is legitimate: a simulation may be started from inside a test's own loop.
        events._set_running_loop(self)
        try:
            self._run()
        finally:
            self._running = False
            events._set_running_loop(previous)

    def _run(self) -> None:
        at_once = 0
        while not self._stopping:
            if not self._ready:
                self._jump()
                at_once = 0
            handle = self._ready.popleft()
            at_once += 1
            if at_once > MAX_CALLBACKS_AT_ONCE:
                raise SimulationError(
                    "simulate.spinning", f"no time passes at {self._now:.3f} s: something spins"
                )
            if not handle.cancelled():
                handle._run()
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure

    def _jump(self) -> None:
        """Go to the next timer and make everything due then ready."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise SimulationError(
                "simulate.deadlock",
                f"at {self._now:.3f} s everybody waits and nothing is scheduled",
                where=self._waiting(),
            )
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def _waiting(self) -> str:
        names = sorted(task.get_name() for task in asyncio.all_tasks(self))
        return f"tasks: {', '.join(names)}" if names else "no task is left"

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until `future` is done; its result."""
        self._check_open()
        awaitable = cast(Awaitable[T], future)
        task = asyncio.ensure_future(awaitable, loop=self)

        def stop(_: asyncio.Future[T]) -> None:
            self.stop()

        task.add_done_callback(stop)
        try:
            self.run_forever()
        finally:
            # After a failure the task still lives; its end must not stop a later run.
            task.remove_done_callback(stop)
            if task.done() and not task.cancelled():
                task.exception()
        return task.result()

    def stop(self) -> None:
        """End `run_forever` after the callback at hand."""
        self._stopping = True

    def cancel_all(self) -> None:
        """Cancel what still runs and let it end; the last thing before `close`."""
        tasks = asyncio.all_tasks(self)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        self.run_until_complete(self._all_ended(tasks))

    @staticmethod
    async def _all_ended(tasks: set[asyncio.Task[Any]]) -> None:
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Drop everything that waits."""
        if self._running:
            raise RuntimeError("cannot close a running loop")
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the virtual loop is closed")

    # ---- what asyncio asks of a loop

    def is_running(self) -> bool:
        """Whether `run_forever` runs."""
        return self._running

    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def get_debug(self) -> bool:
        """Debug mode is off."""
        return False

    def set_debug(self, enabled: bool) -> None:
        """Debug mode stays off."""

    async def shutdown_asyncgens(self) -> None:
        """Asynchronous generators end with their tasks."""

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that nobody handles ends the run."""
        error = context.get("exception")
        if self._failure is None:
            message = str(context.get("message"))
            self._failure = (
                error
                if isinstance(error, BaseException)
                else SimulationError("simulate.unhandled", message)
            )

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """See `default_exception_handler`."""
        self.default_exception_handler(context)
