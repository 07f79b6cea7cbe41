"""App code at its worst: the session gets an answer, others go on, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import psutil
import pytest

from gateway.errors import RuntimeFailure
from tests.runtime.test_embedded import ANSWER_S, ask, embedded, session

TROUBLE = ("loop", "raise", "exit", "shout", "megabytes", "close", "slow", "eat", "nonsense")
FLAGS = ("runtime.callback_timeout_s=1", "runtime.memory_mb=512")


async def test_every_trouble_is_answered_while_others_go_on() -> None:
    async with embedded("misbehaving", *FLAGS) as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "other-call") as other:
            for number, trouble in enumerate(TROUBLE):
                async with session(runtime, f"call-{number:04}") as bad:
                    answers = await asyncio.gather(ask(bad, trouble), ask(other, "hello"))
                    assert answers == ["Still here.", "Still here."], trouble
                    assert await ask(bad, "hello") == "Still here."
        assert runtime.pids == [pid]


@pytest.mark.parametrize("what", ["hoard", "threads"])
async def test_a_process_whose_code_gives_nothing_back_is_replaced(what: str) -> None:
    flags = ("runtime.callback_timeout_s=10", "runtime.memory_mb=256")
    async with embedded("misbehaving", *flags) as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "other-call") as other, session(runtime, "call-0001") as bad:
            assert await ask(other, "hello") == "Still here."
            # The caller hears words of the agent or its apology, and never nothing.
            assert await ask(bad, what)
            async with asyncio.timeout(ANSWER_S):
                while runtime.pids == [pid]:
                    await asyncio.sleep(0.05)
            async with session(runtime, "call-0002") as next_one:
                assert await ask(next_one, "hello") == "Still here."
        await _until_gone(pid)


async def test_a_caller_who_meets_a_process_without_descriptors_gets_another_one() -> None:
    flags = ("runtime.callback_timeout_s=10", "runtime.memory_mb=256")
    async with embedded("misbehaving", *flags) as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "call-0001") as bad:
            assert await ask(bad, "descriptors")
            async with session(runtime, "call-0002") as next_one:
                assert await ask(next_one, "hello") == "Still here."
        await _until_gone(pid)


async def test_a_process_that_leaves_is_replaced() -> None:
    async with embedded("misbehaving", *FLAGS) as runtime:
        async with session(runtime, "call-0001") as bad:
            with pytest.raises(Exception, match="runtime"):
                await ask(bad, "die")
        async with session(runtime, "call-0002") as next_one:
            assert await ask(next_one, "hello") == "Still here."


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _connections(pid: int) -> list[str]:
    """Where the sockets lead that a process holds and that have a name."""
    held = psutil.Process(pid).net_connections("unix")
    return [str(connection.laddr) for connection in held if connection.laddr]


async def _until_gone(pid: int) -> None:
    async with asyncio.timeout(ANSWER_S):
        while _alive(pid):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", ["fork", "emigrate"])
@pytest.mark.parametrize("end", ["closed", "killed"])
async def test_what_app_code_forks_goes_with_its_process(how: str, end: str) -> None:
    async with embedded("misbehaving", *FLAGS) as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "call-0001") as bad:
            forked = re.fullmatch(r"Forked (\d+)\.", await ask(bad, how))
            assert forked is not None
            child = int(forked[1])
            assert _alive(child)
            assert _connections(pid)
            # The fork lets go as its first act, which the answer may be ahead of.
            async with asyncio.timeout(ANSWER_S):
                while _connections(child):
                    await asyncio.sleep(0.01)
            assert await ask(bad, "hello") == "Still here."
            if end == "killed":
                os.kill(pid, signal.SIGKILL)
                # Not dead air until some timeout, although the fork is another process.
                with pytest.raises(RuntimeFailure):
                    await ask(bad, "still there?")
                await _until_gone(child)
    await _until_gone(child)


@pytest.mark.parametrize("how", ["freeze", "stop"])
async def test_code_that_silences_its_process_costs_its_calls_a_known_time(how: str) -> None:
    flags = ("runtime.processes=2", "runtime.hang_timeout_s=1", *FLAGS)
    async with (
        embedded("misbehaving", *flags) as runtime,
        session(runtime, "bad-call") as bad,
        session(runtime, "other-call") as other,
    ):
        hanging = asyncio.create_task(ask(bad, how))
        assert await ask(other, "hello") == "Still here."
        with pytest.raises(RuntimeFailure):
            await hanging
        assert await ask(other, "hello") == "Still here."


async def test_what_app_code_writes_past_the_log_goes_nowhere(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with embedded("misbehaving", *FLAGS) as runtime, session(runtime, "call-0001") as bad:
        assert await ask(bad, "flood") == "Still here."
    told = capfd.readouterr()
    assert "flood" not in told.out + told.err
