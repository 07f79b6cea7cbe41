"""App code in threads: results, deadlines, ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.agent.runner import AppCodeExit, DeadlineExceeded, ThreadRunner
from gateway.errors import RuntimeFailure


def _for_ever() -> None:
    while True:
        pass


async def test_results_and_exceptions_come_back() -> None:
    runner = ThreadRunner()
    assert (
        await runner.run(lambda: threading.current_thread() is threading.main_thread(), 5) is False
    )

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await runner.run(fail, 5)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
async def test_app_code_cannot_leave(error: type[BaseException]) -> None:
    def leave() -> None:
        raise error

    with pytest.raises(AppCodeExit):
        await ThreadRunner().run(leave, 5)


async def test_an_endless_loop_ends_at_its_deadline_and_delays_nobody() -> None:
    runner = ThreadRunner()
    stuck = asyncio.ensure_future(runner.run(_for_ever, 0.3))
    assert await runner.run(lambda: 1, 5) == 1
    with pytest.raises(DeadlineExceeded):
        await stuck
    await _no_app_threads()
    assert not runner.retiring


async def test_code_that_cannot_be_ended_makes_the_runner_retire() -> None:
    retired, release = asyncio.Event(), threading.Event()
    runner = ThreadRunner(on_retire=retired.set, kill_grace_s=0.05)

    def wait_in_c() -> None:
        release.wait(30)

    with pytest.raises(DeadlineExceeded):
        await runner.run(wait_in_c, 0.05)
    async with asyncio.timeout(5):
        await retired.wait()
    assert runner.retiring
    release.set()
    await _no_app_threads()


async def test_a_caller_that_goes_leaves_the_code_to_its_deadline() -> None:
    runner = ThreadRunner()
    caller = asyncio.ensure_future(runner.run(_for_ever, 0.2))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await _no_app_threads()


async def test_too_many_calls_are_refused() -> None:
    runner, release = ThreadRunner(max_threads=1), threading.Event()
    first = asyncio.ensure_future(runner.run(lambda: release.wait(10), 10))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeFailure) as caught:
        await runner.run(lambda: 1, 5)
    assert caught.value.code == "runtime.busy"
    release.set()
    assert await first


async def test_closing_ends_what_runs() -> None:
    runner = ThreadRunner()
    running = asyncio.ensure_future(runner.run(_for_ever, 30))
    await asyncio.sleep(0)
    await runner.aclose()
    with pytest.raises(asyncio.CancelledError):
        await running
    await _no_app_threads()


async def _no_app_threads() -> None:
    """Let the loop run until no thread of app code is left."""
    for _ in range(1000):
        if all(thread.name != "app-code" for thread in threading.enumerate()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a thread of app code lives on")
