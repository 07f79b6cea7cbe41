"""Where blocking work runs: in a bounded thread pool, or on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

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

    def __call__(self, fn: Callable[[], T], /) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, fn)

    async def aclose(self) -> None:
        """Drop what waits, let what runs end, and join the threads."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)


async def run_inline(fn: Callable[[], T], /) -> T:
    """Run `fn` in the caller's own step: the same order in every run of a simulation."""
    return fn()
