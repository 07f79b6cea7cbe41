"""Child processes: what they are told, what they say, how they end, and that none is left."""

from __future__ import annotations

import asyncio
import sys

import psutil
import pytest

from gateway.runtime.child import Child

LIMIT = 1 << 16
ECHO = "import sys; print(len(sys.stdin.buffer.read()), flush=True)"


async def _python(code: str, **environment: str) -> Child:
    return await Child.start((sys.executable, "-c", code), environment, LIMIT)


async def test_it_reads_what_it_is_told_and_its_end_is_known() -> None:
    child = await _python(ECHO)
    # More than a pipe holds at once.
    child.stdin.write(b"x" * (1 << 20))
    child.stdin.close()
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
    child = await _python("raise SystemExit(3)")
    child.stdin.write(b"x" * (1 << 20))
    child.stdin.close()
    assert await child.wait() == 3
    child.close()


async def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        await Child.start(("/no/such/program",), {}, LIMIT)


@pytest.mark.parametrize("turns", range(4))
async def test_a_start_that_is_given_up_leaves_no_process(turns: int) -> None:
    before = set(psutil.Process().children())
    task = asyncio.create_task(_python("import time; time.sleep(600)"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(psutil.Process().children()) == before


async def test_one_that_is_given_up_twice_ends_nevertheless() -> None:
    before = set(psutil.Process().children())
    task = asyncio.create_task(_python("import time; time.sleep(600)"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while set(psutil.Process().children()) != before:
            await asyncio.sleep(0.01)


STARTER = """
import asyncio, sys
from gateway.runtime.child import Child
BUSY = "from gateway.background import *; end_with_parent(); print(flush=True)\\nwhile 1: pass"
async def main():
    child = await Child.start((sys.executable, "-c", BUSY), {}, 1 << 16)
    await child.stdout.readline()
    print(child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""


async def test_it_ends_with_the_process_that_started_it_whatever_it_does() -> None:
    starter = await _python(STARTER)
    busy = psutil.Process(int(await starter.stdout.readline()))
    starter.kill()
    await starter.wait()
    starter.close()
    async with asyncio.timeout(10):
        while busy.is_running():
            await asyncio.sleep(0.01)


async def test_one_whose_starter_has_gone_meanwhile_does_not_begin() -> None:
    child = await _python(
        "import os; os.environ['PARENT_PID'] = '1'\n"
        "from gateway.background import end_with_parent\n"
        "end_with_parent(); print('begins')"
    )
    assert await child.stdout.read() == b""
    assert await child.wait() == 1
    child.close()
