"""A pool of speech workers: jobs in a bounded queue, lost workers replaced.

Policy. A job is refused when the queue is full (speech.busy), fails when it has waited and run for
longer than its time (speech.timeout) or when the second worker dies over it (speech.worker_lost);
after the first it is given to the next one, so that no caller's sentence is lost with a process. A
worker that is at one job for longer than that time is killed. A replacement that does not start is
tried again, ever more slowly; jobs wait meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from dataclasses import dataclass

import msgspec
import structlog

from gateway.errors import SpeechError
from gateway.runtime.child import Child
from gateway.speech.engines import EnginePlan
from gateway.speech.jobs import (
    LENGTH_BYTES,
    Answer,
    Failed,
    Job,
    Ready,
    body_length,
    pack,
    read_answer,
)

START_TIMEOUT_S = 60.0
"""Time for a worker to load its engines; about one second on an idle machine."""
READ_AHEAD_BYTES = 1 << 16
_FIRST_RETRY_S = 0.25
_LAST_RETRY_S = 10.0

_log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class _Waiting:
    job: Job
    answer: asyncio.Future[Answer]
    cost_a_worker: bool = False


def _environment() -> dict[str, str]:
    # Workers need no settings, and so no secrets.
    return {k: v for k, v in os.environ.items() if not k.startswith("VOICE_GATEWAY_")}


class Worker:
    """One worker process, seen from the gateway."""

    def __init__(self, process: Child) -> None:
        self._process = process

    @classmethod
    async def spawn(cls, plan: EnginePlan) -> Worker:
        """Start a process and wait until it is ready. Raises SpeechError."""
        plan_text = msgspec.json.encode(plan).decode()
        words = (sys.executable, "-m", "gateway.speech.worker", plan_text)
        worker = cls(await Child.start(words, _environment(), READ_AHEAD_BYTES))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                answer = await worker._read()
        except TimeoutError:
            await worker.kill()
            raise SpeechError("speech.load", "a speech worker does not get ready") from None
        except BaseException:
            await worker.kill()
            raise
        if isinstance(answer, Ready):
            return worker
        await worker.kill()
        raise (
            answer.error()
            if isinstance(answer, Failed)
            else SpeechError("speech.load", "a speech worker starts with a wrong message")
        )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    async def ended(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    async def ask(self, job: Job) -> Answer:
        """Have a job done. Raises SpeechError (worker_lost)."""
        try:
            self._process.stdin.write(pack(job))
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise _lost() from None
        return await self._read()

    async def _read(self) -> Answer:
        try:
            length = body_length(await self._process.stdout.readexactly(LENGTH_BYTES))
            return read_answer(await self._process.stdout.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise _lost() from None

    async def kill(self) -> None:
        """End the process now (it holds nothing worth saving) and let go of its pipes."""
        self._process.kill()
        await self._process.wait()
        self._process.close()


def _lost() -> SpeechError:
    return SpeechError("speech.worker_lost", "the speech worker died over this job")


class WorkerPool:
    """Workers that share one queue; one job each at a time."""

    def __init__(
        self, plan: EnginePlan, *, processes: int, queue_size: int, timeout_s: float
    ) -> None:
        self._plan = plan
        self._processes = processes
        self._queue_size = queue_size
        self._timeout_s = timeout_s
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Condition()
        self._workers: set[Worker] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are up."""
        return sorted(worker.pid for worker in self._workers)

    @property
    def waiting(self) -> int:
        """Jobs that no worker has taken yet."""
        return len(self._waiting)

    async def start(self) -> None:
        """Start all workers and wait until they are ready. Raises SpeechError."""
        spawned = await asyncio.gather(
            *(Worker.spawn(self._plan) for _ in range(self._processes)), return_exceptions=True
        )
        workers = [worker for worker in spawned if isinstance(worker, Worker)]
        failures = [failure for failure in spawned if isinstance(failure, BaseException)]
        if failures:
            await asyncio.gather(*(worker.kill() for worker in workers))
            raise failures[0]
        self._workers.update(workers)
        self._tasks = [
            asyncio.create_task(self._keep(worker), name="speech-worker") for worker in workers
        ]

    async def run(self, job: Job) -> Answer:
        """The answer to a job; a Failed one is raised. Raises SpeechError as the module says."""
        if self._closed:
            raise SpeechError("speech.closed", "the speech workers have ended")
        if len(self._waiting) >= self._queue_size:
            raise SpeechError(
                "speech.busy",
                f"{self._queue_size} speech jobs are waiting already",
                hint="more speech.processes or fewer calls (server.max_calls)",
            )
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(self._timeout_s):
                async with self._wake:
                    self._wake.notify()
                answer = await waiting.answer
        except TimeoutError:
            raise _timeout(self._timeout_s) from None
        finally:
            # Cancelled or timed out before a worker took it: nobody needs it any more.
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiting)
        if isinstance(answer, Failed):
            raise answer.error()
        return answer

    async def aclose(self) -> None:
        """End all workers; jobs under way fail with speech.closed."""
        self._closed = True
        for waiting in self._waiting:
            _fail(waiting, SpeechError("speech.closed", "the speech workers have ended"))
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await asyncio.gather(*(worker.kill() for worker in self._workers))
        self._workers.clear()

    async def _keep(self, worker: Worker) -> None:
        """Feed one worker, and its replacements, for as long as the pool is open."""
        while True:
            watch = asyncio.create_task(self._tell_of_end(worker), name="speech-watch")
            try:
                await self._feed(worker)
            except SpeechError as error:
                _log.warning("speech.worker_lost", pid=worker.pid, code=error.code)
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            await worker.kill()
            self._workers.discard(worker)
            worker = await self._replace()
            self._workers.add(worker)

    async def _tell_of_end(self, worker: Worker) -> None:
        """Wake the one that feeds this worker: no caller should wait for its replacement."""
        await worker.ended()
        async with self._wake:
            self._wake.notify_all()

    async def _replace(self) -> Worker:
        retry_s = _FIRST_RETRY_S
        while True:
            try:
                return await Worker.spawn(self._plan)
            except (SpeechError, OSError) as error:
                _log.error("speech.worker_start", reason=str(error), retry_s=retry_s)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _LAST_RETRY_S)

    async def _feed(self, worker: Worker) -> None:
        """Give jobs to a worker until it fails; the job it failed over gets one more chance."""
        while True:
            async with self._wake:
                await self._wake.wait_for(lambda: bool(self._waiting) or worker.dead)
                if worker.dead:
                    self._wake.notify()
                    raise SpeechError("speech.worker_lost", "the speech worker died while idle")
                waiting = self._waiting.popleft()
            if waiting.answer.done():
                continue
            try:
                async with asyncio.timeout(self._timeout_s):
                    answer = await worker.ask(waiting.job)
            except TimeoutError:
                error = _timeout(self._timeout_s)
                _fail(waiting, error)
                raise error from None
            except SpeechError as error:
                if waiting.cost_a_worker:
                    _fail(waiting, error)
                else:
                    waiting.cost_a_worker = True
                    self._waiting.appendleft(waiting)
                    async with self._wake:
                        self._wake.notify()
                raise
            except asyncio.CancelledError:
                _fail(waiting, SpeechError("speech.closed", "the speech workers have ended"))
                raise
            if not waiting.answer.done():
                waiting.answer.set_result(answer)


def _timeout(timeout_s: float) -> SpeechError:
    return SpeechError(
        "speech.timeout",
        f"no speech engine answered within {timeout_s:g} s",
        hint="more speech.processes, or a larger speech.timeout_s",
    )


def _fail(waiting: _Waiting, error: SpeechError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
