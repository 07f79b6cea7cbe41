"""A child process whose start does not hold the event loop up, and which never outlives us.

uvloop starts processes by a fork in the loop's own thread. The fork copies the page tables of all
that the media process holds, its speech models too: tens of milliseconds in which no call gets a
frame. Here a thread starts the child, by vfork, which copies nothing, and waits for its end.

A child that calls `gateway.background.end_with_parent` is ended by the system as soon as this
process is gone, however that came about. The system goes by the thread that started it: this one
lives for as long as the child does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.background import PARENT_PID

GIVEN_UP_S = 1.0
"""Longest wait for the end of a child that was given up while it started."""


class Child:
    """A running child: we write to its `stdin` and read its `stdout`; its standard error is ours.

    Make one by `start`.
    """

    def __init__(self, run: _Run, popen: subprocess.Popen[bytes], limit: int) -> None:
        self.pid = popen.pid
        self.stdin: asyncio.StreamWriter
        self.stdout = asyncio.StreamReader(limit)
        self._run = run
        self._popen = popen
        self._transports: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(cls, words: Sequence[str], environment: Mapping[str, str], limit: int) -> Child:
        """Start `words` in a session of its own. A start that is cancelled leaves no process.

        `limit`: the longest line of output, in bytes. Raises OSError.
        """
        run = _Run(words, {**environment, PARENT_PID: str(os.getpid())})
        child: Child | None = None
        try:
            child = cls(run, await asyncio.shield(run.started), limit)
            await child._connect()
        except BaseException:
            run.give_up()
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GIVEN_UP_S):
                        await asyncio.shield(run.ended)
            finally:
                (run if child is None else child).close()
            raise
        return child

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        popen = self._popen
        output, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.stdout), popen.stdout
        )
        self._transports.append(output)
        transport, protocol = await loop.connect_write_pipe(
            # It has what a writer waits by; nothing is ever read from this side.
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
            popen.stdin,
        )
        self._transports.append(transport)
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    @property
    def returncode(self) -> int | None:
        """The exit code; negative: minus the signal; None while it runs."""
        return self._run.ended.result() if self._run.ended.done() else None

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        return await asyncio.shield(self._run.ended)

    def terminate(self) -> None:
        """Ask it to end; nothing where it has ended."""
        self._popen.terminate()

    def kill(self) -> None:
        """End it; nothing where it has ended."""
        self._popen.kill()

    def close(self) -> None:
        """Let go of its input and output."""
        if len(self._transports) < 2:
            self._run.close()
        for transport in self._transports:
            transport.close()


class _Run:
    """A child's life in a thread of its own, from its start to its end, as the loop is told."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[subprocess.Popen[bytes]] = self._loop.create_future()
        # Where nobody waits for the start any more, its failure is nobody's concern.
        self.started.add_done_callback(lambda f: f.exception())
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._lock = threading.Lock()
        self._popen: subprocess.Popen[bytes] | None = None
        self._unwanted = False
        thread = threading.Thread(
            target=self._live, args=(words, environment), name="child", daemon=True
        )
        thread.start()

    def give_up(self) -> None:
        """End the child, also where it is still being made."""
        with self._lock:
            self._unwanted = True
            if self._popen is not None:
                self._popen.kill()

    def close(self) -> None:
        """Let go of pipes that no transport has taken over."""
        if self._popen is not None:
            for pipe in (self._popen.stdin, self._popen.stdout):
                assert pipe is not None
                pipe.close()

    def _live(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        try:
            popen = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._tell(self.started.set_exception, error)
            self._tell(self.ended.set_result, -1)
            return
        with self._lock:
            self._popen = popen
            if self._unwanted:
                popen.kill()
                self.close()
        self._tell(self.started.set_result, popen)
        self._tell(self.ended.set_result, popen.wait())

    def _tell(self, function: Callable[[Any], None], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, value)
        except RuntimeError:
            return  # The loop is closed: nobody waits.
