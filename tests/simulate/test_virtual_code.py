"""App code sleeps in virtual time, one thread at a time, and cannot hold a simulation up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from gateway.agent.runner import AppCodeExit, DeadlineExceeded
from gateway.simulate.virtual_code import EPOCH_S, VirtualCodeRunner, virtual_clock
from gateway.simulate.virtual_loop import VirtualLoop

T = TypeVar("T")
Run = Callable[[Callable[[], Awaitable[T]]], T]


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    with virtual_clock():
        yield loop
        loop.cancel_all()
    loop.close()


def test_a_sleep_costs_virtual_time_only(loop: VirtualLoop) -> None:
    def tool() -> str:
        time.sleep(50)
        time.sleep(10)
        return "done"

    async def script() -> tuple[str, float]:
        return await VirtualCodeRunner().run(tool, 100.0), loop.time()

    begun = time.monotonic()
    assert loop.run_until_complete(script()) == ("done", 60.0)
    assert time.monotonic() - begun < 10


def test_app_code_meets_virtual_clocks_and_everybody_else_the_real_ones(loop: VirtualLoop) -> None:
    def tool() -> tuple[float, float, float]:
        before = time.perf_counter()
        time.sleep(5)
        return time.time(), time.monotonic(), time.perf_counter() - before

    async def script() -> tuple[float, float, float]:
        await asyncio.sleep(10)
        return await VirtualCodeRunner().run(tool, 100.0)

    assert loop.run_until_complete(script()) == (EPOCH_S + 15, 15.0, 5.0)
    assert abs(time.time() - EPOCH_S) > 60, "outside of app code the clock is the real one"


def test_the_clock_is_put_back(loop: VirtualLoop) -> None:
    inside = time.sleep
    with virtual_clock():
        assert time.sleep is not inside
    assert time.sleep is inside


def test_two_sleepers_take_turns_the_same_way_each_time() -> None:
    def once() -> list[str]:
        loop = VirtualLoop()
        log: list[str] = []

        def tool(name: str, pause: float) -> None:
            for _ in range(3):
                time.sleep(pause)
                log.append(f"{name}@{time.monotonic():g}")

        async def script() -> None:
            runner = VirtualCodeRunner()
            await asyncio.gather(
                runner.run(lambda: tool("a", 1.0), 60), runner.run(lambda: tool("b", 1.5), 60)
            )

        with virtual_clock():
            loop.run_until_complete(script())
        loop.close()
        return log

    assert once() == ["a@1", "b@1.5", "a@2", "b@3", "a@3", "b@4.5"]
    assert once() == once()


def test_a_deadline_counts_virtual_seconds_and_ends_the_code(loop: VirtualLoop) -> None:
    ended = threading.Event()

    def tool() -> None:
        try:
            time.sleep(100)
        finally:
            ended.set()

    async def script() -> float:
        with pytest.raises(DeadlineExceeded, match="3 s"):
            await VirtualCodeRunner().run(tool, 3.0)
        return loop.time()

    assert loop.run_until_complete(script()) == 3.0
    assert ended.is_set()


def test_an_endless_loop_is_a_deadline_too(loop: VirtualLoop) -> None:
    ended = threading.Event()

    def tool() -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    async def script() -> float:
        with pytest.raises(DeadlineExceeded):
            await VirtualCodeRunner(real_limit_s=0.2).run(tool, 30.0)
        return loop.time()

    assert loop.run_until_complete(script()) == 30.0
    assert ended.wait(5)


def test_what_it_raises_comes_out_but_never_an_exit(loop: VirtualLoop) -> None:
    async def script(fn: Callable[[], object]) -> None:
        await VirtualCodeRunner().run(fn, 1.0)

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(script(lambda: 1 // 0))
    with pytest.raises(AppCodeExit, match="SystemExit"):
        loop.run_until_complete(script(leave))


def test_a_cancelled_caller_leaves_the_code_running(loop: VirtualLoop) -> None:
    done: list[float] = []

    def tool() -> None:
        time.sleep(5)
        done.append(time.monotonic())

    async def script() -> None:
        task = asyncio.create_task(VirtualCodeRunner().run(tool, 60.0))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(10)

    loop.run_until_complete(script())
    assert done == [5.0]


def test_a_negative_sleep_is_an_error_as_ever(loop: VirtualLoop) -> None:
    async def script() -> None:
        await VirtualCodeRunner().run(lambda: time.sleep(-1), 1.0)

    with pytest.raises(ValueError, match="non-negative"):
        loop.run_until_complete(script())
