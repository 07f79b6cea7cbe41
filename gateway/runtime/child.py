"""A child process whose start does not hold the event loop up.

uvloop starts processes by a fork in the loop's own thread. The fork copies the page tables of all
that the media process holds, its speech models too: tens of milliseconds in which no call gets a
frame. Here a thread starts the child, by vfork, which copies nothing, and waits for its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Child:
    """A running child. Its standard output is `stdout`; its standard error is ours."""

    def __init__(
        self, popen: subprocess.Popen[bytes], ended: asyncio.Future[int], limit: int
    ) -> None:
        self.pid = popen.pid
        self.stdout = asyncio.StreamReader(limit)
        self._popen = popen
        self._ended = ended
        self._pipe: asyncio.ReadTransport | None = None

    @classmethod
    async def start(
        cls, words: Sequence[str], told: bytes, environment: Mapping[str, str], limit: int
    ) -> Child:
        """Start `words` in a session of its own, with `told` as its whole standard input.

        `limit`: the longest line of output, in bytes. Raises OSError.
        """
        loop = asyncio.get_running_loop()
        started: asyncio.Future[subprocess.Popen[bytes]] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()

        def run() -> None:
            try:
                popen = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                _tell(loop, started.set_exception, error)
                return
            _tell(loop, started.set_result, popen)
            assert popen.stdin is not None
            # One that has ended already says so by its exit code.
            with contextlib.suppress(BrokenPipeError), popen.stdin as stdin:
                stdin.write(told)
            _tell(loop, ended.set_result, popen.wait())

        threading.Thread(target=run, name="runtime-child", daemon=True).start()
        try:
            popen = await asyncio.shield(started)
        except asyncio.CancelledError:
            # It is on its way, and nobody else would end it.
            with contextlib.suppress(OSError):
                await cls(await started, ended, limit)._drop()
            raise
        child = cls(popen, ended, limit)
        try:
            child._pipe, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(child.stdout), popen.stdout
            )
        except BaseException:
            await child._drop()
            raise
        return child

    async def _drop(self) -> None:
        self.kill()
        await self.wait()
        assert self._popen.stdout is not None
        self._popen.stdout.close()

    @property
    def returncode(self) -> int | None:
        """The exit code; negative: minus the signal; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        """Ask it to end; nothing where it has ended."""
        self._popen.terminate()

    def kill(self) -> None:
        """End it; nothing where it has ended."""
        self._popen.kill()

    def close(self) -> None:
        """Let go of its output."""
        if self._pipe is not None:
            self._pipe.close()


def _tell(loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], value: object) -> None:
    try:
        loop.call_soon_threadsafe(function, value)
    except RuntimeError:
        return  # The loop is closed: nobody waits.
