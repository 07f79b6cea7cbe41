"""Time jumps when nothing is ready, never passes otherwise, and order depends on nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from gateway.simulate.virtual_loop import SimulationError, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.cancel_all()
    loop.close()


def test_an_hour_passes_at_once_and_exactly(loop: VirtualLoop) -> None:
    async def sleeper() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    begun = time.process_time()
    assert loop.run_until_complete(sleeper()) == 3600.0
    assert time.process_time() - begun < 1.0


def test_no_time_passes_while_anything_is_ready(loop: VirtualLoop) -> None:
    async def worker() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return loop.time()

    assert loop.run_until_complete(worker()) == 0.0


def test_equal_times_keep_the_order_in_which_they_were_asked_for(loop: VirtualLoop) -> None:
    order: list[str] = []

    async def script() -> None:
        for name in "abc":
            loop.call_at(1.0, order.append, name)
        loop.call_later(0.5, order.append, "first")
        cancelled = loop.call_later(0.7, order.append, "never")
        cancelled.cancel()
        await asyncio.sleep(2)

    loop.run_until_complete(script())
    assert order == ["first", "a", "b", "c"]


def test_timeouts_queues_and_gather_work_as_ever(loop: VirtualLoop) -> None:
    async def script() -> list[str]:
        queue: asyncio.Queue[str] = asyncio.Queue(1)
        seen: list[str] = []

        async def producer() -> None:
            for name in "abc":
                await asyncio.sleep(1)
                await queue.put(name)

        async def consumer() -> None:
            while len(seen) < 3:
                name = await queue.get()
                seen.append(f"{name}@{loop.time():g}")

        await asyncio.gather(producer(), consumer())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await queue.get()
        seen.append(f"end@{loop.time():g}")
        return seen

    assert loop.run_until_complete(script()) == ["a@1", "b@2", "c@3", "end@10"]


def test_a_deadlock_is_told_with_the_tasks_that_wait(loop: VirtualLoop) -> None:
    async def script() -> None:
        waiting = asyncio.create_task(asyncio.Event().wait(), name="forgotten")
        await asyncio.sleep(1)
        await waiting

    with pytest.raises(SimulationError, match=r"simulate\.deadlock.*at 1\.000 s") as caught:
        loop.run_until_complete(script())
    assert "forgotten" in str(caught.value.where)


def test_what_spins_without_time_passing_is_told(
    loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.simulate.virtual_loop.MAX_CALLBACKS_AT_ONCE", 1000)

    def again() -> None:
        loop.call_soon(again)

    async def script() -> None:
        again()
        await asyncio.sleep(1)

    with pytest.raises(SimulationError, match=r"simulate\.spinning"):
        loop.run_until_complete(script())
    loop._ready.clear()


def test_an_error_that_nobody_handles_ends_the_run(loop: VirtualLoop) -> None:
    async def script() -> None:
        loop.call_later(1, lambda: 1 / 0)
        await asyncio.sleep(5)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(script())
    assert loop.time() == 1.0


def test_cancel_all_lets_tasks_clean_up(loop: VirtualLoop) -> None:
    cleaned: list[float] = []

    async def worker() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(1)
            cleaned.append(loop.time())

    async def script() -> None:
        loop.create_task(worker())
        await asyncio.sleep(1)

    loop.run_until_complete(script())
    loop.cancel_all()
    assert cleaned == [2.0]
    assert not asyncio.all_tasks(loop)


def test_threads_have_no_place_so_executors_run_here(loop: VirtualLoop) -> None:
    async def script() -> int:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(lambda: 42)

    assert loop.run_until_complete(script()) == 42


def test_a_closed_loop_takes_nothing_more() -> None:
    loop = VirtualLoop()
    loop.close()
    assert loop.is_closed()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)


def test_it_runs_inside_another_running_loop(loop: VirtualLoop) -> None:
    async def outer(run: Callable[[], Awaitable[float]]) -> tuple[float, bool]:
        here = asyncio.get_running_loop()
        result = loop.run_until_complete(run())
        return result, asyncio.get_running_loop() is here

    async def inner() -> float:
        await asyncio.sleep(7)
        return loop.time()

    assert asyncio.run(outer(inner)) == (7.0, True)
