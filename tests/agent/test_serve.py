"""The runtime as a real process: its socket, its words to the supervisor, its bad days."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed

from tests.agent.talk import APPS, parse_with_protos

WAIT_S = 20.0
ALIVE = {"event": "alive"}


class Runtime:
    """A runtime process and what it says."""

    def __init__(self, process: asyncio.subprocess.Process, socket: Path) -> None:
        self.process = process
        self.socket = socket

    async def event(self) -> dict[str, Any]:
        """The next line on its standard output that is no sign of life; each is JSON of ours."""
        assert self.process.stdout is not None
        event: dict[str, Any] = ALIVE
        async with asyncio.timeout(WAIT_S):
            while event == ALIVE:
                event = json.loads(await self.process.stdout.readline())
        return event

    async def exit_code(self) -> int:
        async with asyncio.timeout(WAIT_S):
            return await self.process.wait()

    async def logs(self) -> list[dict[str, Any]]:
        """All log lines of ours; the process must have ended."""
        assert self.process.stderr is not None
        lines = (await self.process.stderr.read()).splitlines()
        return [json.loads(line) for line in lines if b'"event"' in line]

    @asynccontextmanager
    async def session(self, name: str, **headers: str) -> AsyncIterator[Session]:
        async with unix_connect(
            str(self.socket),
            "ws://runtime/",
            compression=None,
            additional_headers={key.replace("_", "-"): value for key, value in headers.items()},
        ) as connection:
            session = Session(connection)
            path = f"projects/p/locations/l/apps/a/sessions/{name}"
            await connection.send(json.dumps({"config": {"session": path}}))
            yield session


class Session:
    """The client's side of one session over a real socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def ask(self, text: str) -> None:
        await self.connection.send(json.dumps({"realtimeInput": {"text": text}}))

    async def turn(self) -> list[str]:
        texts = []
        async with asyncio.timeout(WAIT_S):
            while True:
                message = json.loads(await self.connection.recv())
                parse_with_protos(message)
                output = message["sessionOutput"]
                if output.get("turnCompleted"):
                    return texts
                texts.append(output.get("text"))

    async def say(self, text: str) -> list[str]:
        await self.ask(text)
        return await self.turn()


@asynccontextmanager
async def _runtime(
    tmp_path: Path, app: Path = APPS / "misbehaving", **settings: Any
) -> AsyncIterator[Runtime]:
    socket = tmp_path / "runtime.sock"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "gateway.agent.serve", "--socket", str(socket), "--app", str(app)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "VOICE_GATEWAY_X": "secret"},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(settings).encode())
    process.stdin.close()
    try:
        yield Runtime(process, socket)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        # The transports of the pipes close in callbacks of the loop.
        await asyncio.sleep(0)


async def test_a_looping_callback_ends_at_its_deadline_while_others_are_answered(
    tmp_path: Path,
) -> None:
    async with _runtime(tmp_path, runtime={"callback_timeout_s": 1.0}) as runtime:
        assert await runtime.event() == {"event": "ready"}
        async with runtime.session("bad-session") as bad, runtime.session("good-one") as good:
            await bad.ask("loop")
            waiting = asyncio.ensure_future(bad.turn())
            assert await good.say("hello") == ["Still here."]
            assert not waiting.done()
            assert await waiting == ["Still here."]
            # What app code prints is bounded, and never reaches the supervisor.
            assert await bad.say("shout") == ["Still here."]
            assert await bad.say("hello") == ["Still here."]
        runtime.process.send_signal(signal.SIGTERM)
        assert await runtime.exit_code() == 0
        assert not runtime.socket.exists()
        assert runtime.process.stdout is not None
        rest = (await runtime.process.stdout.read()).splitlines()
        assert all(json.loads(line) == ALIVE for line in rest)
        logs = [line for line in await runtime.logs() if line["event"] == "app.output_withheld"]
        assert logs
        assert {line["session"] for line in logs} == {"bad-session"}


async def test_a_process_with_code_that_cannot_be_ended_retires_and_leaves(tmp_path: Path) -> None:
    async with _runtime(tmp_path, runtime={"callback_timeout_s": 0.2}) as runtime:
        await runtime.event()
        async with runtime.session("stubborn-one") as session, runtime.session("other") as other:
            assert await session.say("stubborn") == ["Still here."]
            assert await runtime.event() == {"event": "retiring"}
            # Its sessions go on; new ones are refused.
            assert await other.say("hello") == ["Still here."]
            with pytest.raises(ConnectionClosed) as closed:
                async with runtime.session("late-one") as late:
                    await late.say("hello")
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013
        assert await runtime.exit_code() == 0


@pytest.mark.parametrize("how", ["kill", "exit"])
async def test_a_dying_process_closes_its_connections(tmp_path: Path, how: str) -> None:
    async with _runtime(tmp_path) as runtime:
        await runtime.event()
        async with runtime.session("some-session") as session:
            if how == "kill":
                runtime.process.kill()
            else:
                await session.ask("die")
            with pytest.raises(ConnectionClosed):
                await session.turn()
        assert await runtime.exit_code() == (-9 if how == "kill" else 9)


async def test_bad_frames_close_with_a_reason_and_never_a_traceback(tmp_path: Path) -> None:
    async with _runtime(tmp_path) as runtime:
        await runtime.event()
        for frame in ("{", "[]", b"\xff\x00", json.dumps({"realtimeInput": {"text": "x"}}), "null"):
            async with unix_connect(str(runtime.socket), "ws://runtime/") as connection:
                await connection.send(frame)
                with pytest.raises(ConnectionClosed) as closed:
                    await connection.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1007
            assert closed.value.rcvd.reason.startswith("generic::invalid_argument: ")
        runtime.process.terminate()
        assert await runtime.exit_code() == 0
        assert await runtime.logs() == []


async def test_sessions_are_told_when_the_process_leaves(tmp_path: Path) -> None:
    async with _runtime(tmp_path) as runtime:
        await runtime.event()
        async with runtime.session("some-session") as session:
            await session.say("hello")
            runtime.process.terminate()
            with pytest.raises(ConnectionClosed) as closed:
                await session.turn()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
        assert await runtime.exit_code() == 0


async def test_an_app_that_cannot_run_is_told_to_the_supervisor(tmp_path: Path) -> None:
    async with _runtime(tmp_path, app=tmp_path / "nothing") as runtime:
        event = await runtime.event()
        assert (event["event"], event["code"]) == ("failed", "app.missing")
        assert await runtime.exit_code() == 2


async def test_wrong_settings_are_told_to_the_supervisor(tmp_path: Path) -> None:
    async with _runtime(tmp_path, runtime={"max_steps": 0}) as runtime:
        event = await runtime.event()
        assert (event["code"], event["where"]) == ("config.value", "runtime.max_steps")
        assert await runtime.exit_code() == 2


async def test_app_code_cannot_take_more_memory_than_allowed(tmp_path: Path) -> None:
    async with _runtime(tmp_path, runtime={"memory_mb": 256}) as runtime:
        await runtime.event()
        async with runtime.session("hungry-one") as session:
            assert await session.say("eat") == ["Still here."]
            assert await session.say("hello") == ["Still here."]
        runtime.process.terminate()
        await runtime.exit_code()
        (line,) = [line for line in await runtime.logs() if "error" in line]
        assert (line["event"], line["error"]) == ("callback.raised", "MemoryError")


async def test_the_gateway_says_by_which_dialect_a_caller_came(tmp_path: Path) -> None:
    tools = {"levels": {"add": "self"}, "channels": {"ces": "self"}}
    async with _runtime(tmp_path, app=APPS / "tools", tools=tools) as runtime:
        await runtime.event()
        async with runtime.session("own-one", x_voice_gateway_channel="ces") as session:
            assert await session.say("add 2 and 3") == ["Let me see.", "It is 5, Bob."]
        async with runtime.session("any-one", x_voice_gateway_channel="twilio") as session:
            assert await session.say("add 2 and 3") == ["Let me see.", "It is , Ann."]
