"""A silent process hangs where it had its chance, and is slow where the machine gave it none."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.runtime.pulse import Sample, hangs, sample


@pytest.mark.parametrize(
    ("first", "last", "hung"),
    [
        (Sample(1.0, wants=True), Sample(2.1, wants=True), True),
        (Sample(1.0, wants=True), Sample(1.2, wants=True), False),
        (Sample(1.0, wants=False), Sample(1.0, wants=False), True),
        (Sample(1.0, wants=False), Sample(1.2, wants=True), False),
        (Sample(1.0, wants=True), Sample(1.2, wants=False), False),
        (None, Sample(9.0, wants=False), False),
        (Sample(1.0, wants=False), None, False),
    ],
)
def test_it_hangs_where_it_ran_or_does_not_want_to(
    first: Sample | None, last: Sample | None, hung: bool
) -> None:
    assert hangs(first, last) is hung


@contextmanager
def _python(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


async def _until(pid: int, wanted: bool) -> Sample:
    async with asyncio.timeout(20):
        while (found := sample(pid)) is None or found.wants is not wanted:
            await asyncio.sleep(0.01)
    return found


async def test_a_busy_process_wants_to_run_and_a_stopped_one_does_not() -> None:
    with _python("print(flush=True)\nwhile True: pass") as pid:
        await _until(pid, wanted=True)
        os.kill(pid, signal.SIGSTOP)
        await _until(pid, wanted=False)


async def test_a_process_that_holds_its_interpreter_asleep_does_not_want_to_run() -> None:
    with _python("import ctypes; print(flush=True); ctypes.PyDLL(None).sleep(60)") as pid:
        found = await _until(pid, wanted=False)
        assert found.used_s > 0


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    with _python("print(flush=True)") as pid:
        pass
    assert sample(pid) is None
