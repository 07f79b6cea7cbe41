"""The embedded runtime's processes: started, killed, replaced, retired; no secret gets in."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from gateway import config
from gateway.call.events import InputType, RuntimeText, RuntimeTurnCompleted, ToRuntime
from gateway.errors import AppError, RuntimeFailure
from gateway.runtime.client import RuntimeClient
from gateway.runtime.embedded import EmbeddedRuntime

APPS = Path(__file__).parent.parent / "apps"
ANSWER_S = 20


@asynccontextmanager
async def embedded(app: str, *flags: str) -> AsyncIterator[EmbeddedRuntime]:
    """A running pool for one of the small apps."""
    runtime = EmbeddedRuntime(config.load(flags=flags), APPS / app)
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.aclose()


@asynccontextmanager
async def session(runtime: EmbeddedRuntime, name: str) -> AsyncIterator[RuntimeClient]:
    """An opened session."""
    client = RuntimeClient(f"projects/p/locations/l/apps/a/sessions/{name}", {}, runtime.connect)
    await client.open()
    try:
        yield client
    finally:
        await client.aclose()


async def ask(client: RuntimeClient, words: str) -> str:
    """What the agent says to `words`, to the end of its turn."""
    client.send(ToRuntime(InputType.TEXT, text=words))
    said: list[str] = []
    async with asyncio.timeout(ANSWER_S):
        async for output in client.outputs():
            if isinstance(output, RuntimeText):
                said.append(output.text)
            elif isinstance(output, RuntimeTurnCompleted):
                return " ".join(said)
    raise AssertionError("the runtime closed")


async def test_a_killed_process_ends_its_sessions_and_is_replaced() -> None:
    async with embedded("tools") as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "call-0001") as client:
            assert "Pardon" in await ask(client, "anything")
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(RuntimeFailure):
                await ask(client, "still there?")
        async with session(runtime, "call-0002") as client:
            assert "Pardon" in await ask(client, "anything")
        assert runtime.pids != [pid]


async def test_a_process_that_hangs_is_killed_and_replaced() -> None:
    async with embedded("tools", "runtime.hang_timeout_s=2") as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "call-0001") as client:
            assert "Pardon" in await ask(client, "anything")
            # As app code that holds the interpreter for ever: nothing in the process runs on.
            os.kill(pid, signal.SIGSTOP)
            with pytest.raises(RuntimeFailure):
                await ask(client, "still there?")
        async with session(runtime, "call-0002") as client:
            assert "Pardon" in await ask(client, "anything")
        assert pid not in runtime.pids


async def test_two_processes_share_the_sessions() -> None:
    async with embedded("tools", "runtime.processes=2") as runtime:
        assert len(runtime.pids) == 2
        async with session(runtime, "call-0001") as one, session(runtime, "call-0002") as two:
            os.kill(runtime.pids[0], signal.SIGKILL)
            answers = await asyncio.gather(
                ask(one, "hello"), ask(two, "hello"), return_exceptions=True
            )
        lost = [a for a in answers if isinstance(a, RuntimeFailure)]
        assert len(lost) == 1, answers


async def test_code_that_cannot_be_ended_retires_its_process_and_others_go_on() -> None:
    async with embedded("misbehaving", "runtime.callback_timeout_s=0.5") as runtime:
        (pid,) = runtime.pids
        async with session(runtime, "call-0001") as stuck, session(runtime, "call-0002") as other:
            await asyncio.gather(ask(stuck, "be stubborn"), ask(other, "hello"))
            async with asyncio.timeout(ANSWER_S):
                while runtime.pids == [pid]:
                    await asyncio.sleep(0.05)
            async with session(runtime, "call-0003") as third:
                assert "Still here" in await ask(third, "hello")
            assert "Still here" in await ask(other, "hello")
        async with asyncio.timeout(ANSWER_S):
            while pid in runtime.pids:
                await asyncio.sleep(0.05)


async def test_an_app_that_cannot_be_read_is_told_at_the_start(tmp_path: Path) -> None:
    runtime = EmbeddedRuntime(config.load(), tmp_path)
    with pytest.raises(AppError) as caught:
        await runtime.start()
    assert caught.value.code == "app.no_app_file"
    assert caught.value.where == str(tmp_path)
    assert caught.value.hint


async def test_no_process_left_and_no_folder_left() -> None:
    async with embedded("tools") as runtime:
        folder = Path(runtime._folder)
        assert folder.exists()
    assert not folder.exists()
    assert runtime.pids == []


async def test_a_replacement_that_still_starts_ends_with_the_pool() -> None:
    async with embedded("tools") as runtime:
        known = {runtime.pids[0]}
        os.kill(runtime.pids[0], signal.SIGKILL)
        async with asyncio.timeout(ANSWER_S):
            while not (new := {p.pid for p in psutil.Process().children()} - known):
                await asyncio.sleep(0.01)
    assert not any(psutil.pid_exists(pid) for pid in new)


@pytest.mark.parametrize("turns", [1, 3, 10])
@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_a_start_that_is_broken_off_leaves_no_process(how: str, turns: int) -> None:
    runtime = EmbeddedRuntime(config.load(flags=("runtime.processes=2",)), APPS / "tools")
    starting = asyncio.create_task(runtime.start())
    for _ in range(turns):
        await asyncio.sleep(0)
    if how == "cancelled":
        starting.cancel()
    await runtime.aclose()
    with pytest.raises((asyncio.CancelledError, RuntimeFailure)):
        await starting
    assert psutil.Process().children() == []


async def test_the_environment_of_app_code_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_GATEWAY_AUTH__TOKENS", '["hunter2"]')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/secret.json")
    flags = ("model.api_key=hunter3", "tools.secrets={KEY: hunter4}")
    async with embedded("tools", *flags) as runtime:
        (pid,) = runtime.pids
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"hunter" not in environment
    assert b"/secret.json" not in environment
