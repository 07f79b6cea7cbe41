"""Jobs of the worker pool are bounded, and a lost worker costs one job only."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import uvloop

from gateway.errors import SpeechError
from gateway.speech.engines import EnginePlan
from gateway.speech.jobs import Answer, Job, JudgeTurn, Recognise, Speech, Synthesise, Verdict
from gateway.speech.pool import WorkerPool
from tests.speech.conftest import VOICE

SMALL = EnginePlan(tts="nanotts", stt="none", vad="energy", turn="silence")
"""Loads in a moment; the pool is what is tested here."""
HELLO = Synthesise("Hello.", VOICE, "en-US", 8000)


@asynccontextmanager
async def running(
    *, processes: int = 1, queue_size: int = 8, timeout_s: float = 20.0
) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(SMALL, processes=processes, queue_size=queue_size, timeout_s=timeout_s)
    await pool.start()
    try:
        yield pool
    finally:
        await pool.aclose()
        assert psutil.Process().children() == []


async def taken(pool: WorkerPool, job: Job = HELLO) -> asyncio.Task[Answer]:
    """A job that a worker has taken from the queue."""
    task = asyncio.create_task(pool.run(job))
    for _ in range(100):
        await asyncio.sleep(0)
        if not pool.waiting:
            return task
    raise AssertionError("no worker takes the job")


async def test_each_kind_of_job_is_answered() -> None:
    async with running() as pool:
        speech = await pool.run(HELLO)
        assert isinstance(speech, Speech)
        assert len(speech.pcm) > 4000
        assert await pool.run(JudgeTurn(speech.pcm, 8000)) == Verdict(complete=False)
        words = await pool.run(Recognise(speech.pcm, 8000, "en-US"))
        assert words.text == ""  # type: ignore[union-attr]


async def test_an_engine_error_reaches_the_caller_and_the_worker_lives_on() -> None:
    async with running() as pool:
        pids = pool.pids
        with pytest.raises(SpeechError) as raised:
            await pool.run(Synthesise("", VOICE, "en-US", 8000))
        assert raised.value.code == "speech.empty"
        assert isinstance(await pool.run(HELLO), Speech)
        assert pool.pids == pids


async def test_a_killed_worker_is_replaced_and_its_job_is_done_by_the_next_one() -> None:
    async with running() as pool:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGSTOP)
        job = await taken(pool)
        next_job = asyncio.create_task(pool.run(HELLO))
        os.kill(pid, signal.SIGKILL)
        assert isinstance(await job, Speech)
        assert isinstance(await next_job, Speech)
        assert pool.pids != [pid]
        assert len(pool.pids) == 1


async def test_a_worker_that_dies_idle_is_replaced_before_anybody_needs_it() -> None:
    async with running() as pool:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            while pool.pids in ([pid], []):
                await asyncio.sleep(0.01)
        assert isinstance(await pool.run(HELLO), Speech)


async def test_a_job_that_costs_two_workers_fails() -> None:
    async with running() as pool:
        killed = set(pool.pids)
        os.kill(pool.pids[0], signal.SIGSTOP)
        job = await taken(pool)
        os.kill(pool.pids[0], signal.SIGKILL)
        while not job.done():
            # A new worker takes the job at once; it is stopped long before it can be done.
            for pid in set(pool.pids) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            await asyncio.sleep(0)
        with pytest.raises(SpeechError) as raised:
            await job
        assert raised.value.code == "speech.worker_lost"
        assert len(killed) == 2


async def test_a_worker_that_hangs_is_killed_at_the_deadline() -> None:
    async with running(timeout_s=1.0) as pool:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGSTOP)
        job = await taken(pool)
        with pytest.raises(SpeechError) as raised:
            await job
        assert raised.value.code == "speech.timeout"
        async with asyncio.timeout(30):
            answer: Answer | None = None
            codes = []
            while answer is None:
                try:
                    answer = await pool.run(HELLO)
                except SpeechError as error:
                    codes.append(error.code)
        assert isinstance(answer, Speech)
        assert set(codes) <= {"speech.timeout"}, "at worst the new one is still loading"
        assert not psutil.pid_exists(pid)


async def test_a_full_queue_refuses_and_what_waits_is_served() -> None:
    async with running(queue_size=2) as pool:
        os.kill(pool.pids[0], signal.SIGSTOP)
        first = await taken(pool)
        waiting = [asyncio.create_task(pool.run(HELLO)) for _ in range(2)]
        await asyncio.sleep(0)
        assert pool.waiting == 2
        with pytest.raises(SpeechError) as raised:
            await pool.run(HELLO)
        assert raised.value.code == "speech.busy"
        os.kill(pool.pids[0], signal.SIGCONT)
        assert all(isinstance(answer, Speech) for answer in await asyncio.gather(first, *waiting))


async def test_a_cancelled_job_leaves_the_queue() -> None:
    async with running() as pool:
        os.kill(pool.pids[0], signal.SIGSTOP)
        first = await taken(pool)
        second = asyncio.create_task(pool.run(HELLO))
        await asyncio.sleep(0)
        assert pool.waiting == 1
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert pool.waiting == 0
        first.cancel()
        os.kill(pool.pids[0], signal.SIGCONT)
        assert isinstance(await pool.run(HELLO), Speech), "the answer to `first` went nowhere"


async def test_closing_fails_all_jobs_and_ends_all_workers() -> None:
    async with running(processes=2) as pool:
        assert len(pool.pids) == 2
        for pid in pool.pids:
            os.kill(pid, signal.SIGSTOP)
        jobs = [asyncio.create_task(pool.run(HELLO)) for _ in range(5)]
        await asyncio.sleep(0)
        await pool.aclose()
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert {error.code for error in results if isinstance(error, SpeechError)} == {
            "speech.closed"
        }
        assert len(results) == 5
        with pytest.raises(SpeechError) as raised:
            await pool.run(HELLO)
        assert raised.value.code == "speech.closed"


async def test_engines_that_do_not_load_fail_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "py_nanotts.py").write_text("raise ImportError('wrong processor')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = WorkerPool(SMALL, processes=2, queue_size=1, timeout_s=1)
    with pytest.raises(SpeechError) as raised:
        await pool.start()
    assert raised.value.code == "speech.load"
    assert "wrong processor" in raised.value.message
    await pool.aclose()
    assert psutil.Process().children() == []


async def test_workers_see_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_GATEWAY_AUTH__MEDIA_SECRET", "hush")
    async with running() as pool:
        environment = psutil.Process(pool.pids[0]).environ()
        assert "PATH" in environment
        assert not any(name.startswith("VOICE_GATEWAY_") for name in environment)


def test_the_pool_runs_on_uvloop_as_well() -> None:
    async def one_job() -> None:
        async with running() as pool:
            assert isinstance(await pool.run(HELLO), Speech)

    uvloop.run(one_job())
