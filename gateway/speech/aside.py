"""A thread of its own for work that blocks: long imports, the search for credentials, a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Aside:
    """One thread, started when it is first needed; jobs wait their turn in it."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, or what it raises. A caller that gives up does not stop it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """No more work; what runs goes on to its end, what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
