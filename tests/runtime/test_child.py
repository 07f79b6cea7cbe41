"""Child processes: what they are told, what they say, how they end, and that none is left."""

from __future__ import annotations

import asyncio
import sys

import psutil
import pytest

from gateway.runtime.child import Child

LIMIT = 1 << 16
ECHO = "import sys; print(len(sys.stdin.buffer.read()), flush=True)"


async def _python(code: str, told: bytes = b"", **environment: str) -> Child:
    return await Child.start((sys.executable, "-c", code), told, environment, LIMIT)


async def test_it_reads_what_it_is_told_and_its_end_is_known() -> None:
    # More than a pipe holds at once.
    child = await _python(ECHO, b"x" * (1 << 20))
    assert await child.stdout.readline() == b"1048576\n"
    assert await child.stdout.readline() == b""
    assert await child.wait() == 0
    assert child.returncode == 0
    # What has ended can be asked to end.
    child.terminate()
    child.kill()
    child.close()


async def test_it_has_its_own_environment_and_session() -> None:
    child = await _python("import os; print(os.environ['A'], os.getsid(0))", A="b")
    assert (await child.stdout.readline()).decode().split() == ["b", str(child.pid)]
    await child.wait()
    child.close()


async def test_it_can_be_ended() -> None:
    child = await _python("while True: pass")
    assert child.returncode is None
    child.kill()
    assert await child.wait() == -9
    child.close()


async def test_one_that_does_not_read_is_no_error() -> None:
    child = await _python("raise SystemExit(3)", b"x" * (1 << 20))
    assert await child.wait() == 3
    child.close()


async def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        await Child.start(("/no/such/program",), b"", {}, LIMIT)


async def test_a_start_that_is_given_up_leaves_no_process() -> None:
    before = set(psutil.Process().children())
    task = asyncio.create_task(_python("import time; time.sleep(600)"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(psutil.Process().children()) == before
