"""Where blocking work runs: in a bounded thread pool, or on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Runner(Protocol):
    """Runs a blocking function and gives its result, or raises what it raised."""

    def __call__(self, fn: Callable[[], T], /) -> Awaitable[T]:
        """Run `fn` once."""
        ...


class ThreadRunner:
    """Runs blocking work in `workers` threads; the callers' own bound limits the queue."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="assets")
        self._running: set[Future[Any]] = set()

    def __call__(self, fn: Callable[[], T], /) -> Awaitable[T]:
        job = self._pool.submit(fn)
        self._running.add(job)
        job.add_done_callback(self._running.discard)
        return asyncio.wrap_future(job)

    async def aclose(self) -> None:
        """Drop what waits, let what runs end, and join the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        # Callers may have left, but their work still holds a thread.
        running = [asyncio.wrap_future(job) for job in tuple(self._running)]
        await asyncio.gather(*running, return_exceptions=True)
        self._pool.shutdown(wait=True)


async def run_inline(fn: Callable[[], T], /) -> T:
    """Run `fn` in the caller's own step: the same order in every run of a simulation."""
    return fn()
