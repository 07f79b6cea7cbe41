"""What a process has started ends with it, also outside of its group; others are left alone."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import psutil

from gateway.runtime.child import Child
from gateway.runtime.strays import MARK, end_strays

WAIT_S = 20
WAITING = "print(flush=True); input()"
LEADER = """
import subprocess, sys
for apart in (False, True):
    words = [sys.executable, "-c", "input()"]
    null = subprocess.DEVNULL
    print(subprocess.Popen(words, stdout=null, start_new_session=apart).pid)
"""


async def _python(code: str, mark: str) -> Child:
    return await Child.start((sys.executable, "-c", code), {MARK: mark}, 1 << 16)


async def _until_gone(process: psutil.Process) -> None:
    async with asyncio.timeout(WAIT_S):
        with contextlib.suppress(psutil.NoSuchProcess):
            while process.status() != psutil.STATUS_ZOMBIE:
                await asyncio.sleep(0.01)


async def test_what_a_process_has_started_ends_in_its_group_and_apart() -> None:
    leader, other = await _python(LEADER, "/run/1.sock"), await _python(WAITING, "/run/1.sock.1")
    await other.stdout.readline()
    started = [psutil.Process(int(pid)) for pid in (await leader.stdout.read()).split()]
    assert len(started) == 2
    await leader.wait()
    assert all(process.status() != psutil.STATUS_ZOMBIE for process in started)
    end_strays(leader.pid, "/run/1.sock")
    for process in started:
        await _until_gone(process)
    other.stdin.write(b"\n")
    assert await other.wait() == 0
    leader.close()
    other.close()
