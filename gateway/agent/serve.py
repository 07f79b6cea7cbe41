"""The runtime as a process: `python -m gateway.agent.serve --socket PATH --app PATH`.

It serves BidiRunSession JSON over websockets on a unix socket. To its supervisor it speaks JSON
lines on standard output: `{"event": "ready"}` once it serves, `{"event": "alive"}` twice a
second from then on (a process that stops saying so is killed), `{"event": "retiring"}` when it
takes no new sessions and will leave after its last, `{"event": "failed", "code", "message",
"where", "hint"}` before it leaves with status 2. Logs are on standard error. What app
code prints becomes a log line, too; what it writes past Python's own streams goes nowhere.

Its settings come as JSON on standard input: keys and secrets among them stand neither in the list
of processes nor in the environment, where app code would find them. It leaves when its parent
process is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import logging
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

import structlog
from pydantic import ValidationError
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from gateway import bidi
from gateway.agent.app.read import read_app
from gateway.agent.build import build_engine
from gateway.agent.conversation import Engine
from gateway.agent.forks import let_go_in_forks
from gateway.agent.runner import ThreadRunner
from gateway.agent.scope import AppOutput, ScopeFilter, show_own_threads
from gateway.agent.session import serve_link
from gateway.agent.store import SessionStore
from gateway.agent.wear import Wear
from gateway.background import end_with_parent, yield_to_media
from gateway.config import LogSettings, Settings
from gateway.errors import GatewayError
from gateway.logs import set_up

log = structlog.get_logger()

BEAT_S = 0.5
WEAR_BEATS = 2
"""Signs of life between two looks at how worn the process is."""
MAX_MESSAGE_BYTES = 16 << 20
STACK_BYTES = 4 << 20
CLOSE_TIMEOUT_S = 2.0
MAX_FAULTS = 20
"""Faults of the event loop that a process logs in its life."""
_M_ARENA_MAX = -8
"""glibc's number for the option that bounds how many arenas malloc opens."""


class WebsocketLink:
    """One websocket as the runtime's link."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; a connection that is gone takes it in silence."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(bidi.dump(message))

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when the connection is gone. Raises ProtocolError."""
        try:
            data = await self._connection.recv()
        except ConnectionClosed:
            return None
        return bidi.parse(data)

    async def aclose(self, code: int = 1000, reason: str = "") -> None:
        """Close the websocket."""
        await self._connection.close(code, reason)


class Process:
    """The serving process: its socket, its sessions, its way to the end."""

    def __init__(self, socket: Path, app: Path, settings: Settings, control: TextIO) -> None:
        self._socket = socket
        self._app = app
        self._settings = settings
        self._control = control
        self._stop = asyncio.Event()
        self._serving = False
        self._retiring = False
        self._links = 0
        self._store = SessionStore()

    def tell(self, event: str, **fields: Any) -> None:
        """One line to the supervisor; one that has gone is not an error."""
        _tell(self._control, event, **fields)

    async def run(self) -> int:
        """Serve until a signal, or until the last session of a retiring process has ended."""
        runner = ThreadRunner(on_retire=lambda: self._retire("app code cannot be ended"))
        try:
            engine = build_engine(read_app(self._app), self._settings, runner)
        except GatewayError as error:
            self.tell(
                "failed",
                code=error.code,
                message=error.message,
                where=error.where,
                hint=error.hint,
            )
            return 2
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self._stop.set)
        running.set_exception_handler(_Faults().tell)
        watch = asyncio.create_task(self._watch_parent())
        self._socket.unlink(missing_ok=True)

        async def serve(connection: ServerConnection) -> None:
            await self._serve(connection, engine)

        async with unix_serve(
            serve,
            str(self._socket),
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
        ) as server:
            self.tell("ready")
            self._serving = True
            await self._stop.wait()
            server.close(code=1001, reason="the runtime is going away")
        await self._store.aclose()
        await engine.model.aclose()
        await runner.aclose()
        watch.cancel()
        self._socket.unlink(missing_ok=True)
        return 0

    async def _serve(self, connection: ServerConnection, engine: Engine) -> None:
        if self._retiring:
            await connection.close(1013, "generic::unavailable: the runtime is retiring")
            return
        self._links += 1
        request = connection.request
        channel = request.headers.get(bidi.CHANNEL_HEADER, "") if request is not None else ""
        try:
            await serve_link(
                WebsocketLink(connection),
                engine.app,
                engine.settings,
                engine.runner,
                self._store,
                engine,
                channel,
            )
        except Exception:
            log.exception("agent.connection_failed")
            await connection.close(1011, "generic::internal: the runtime failed")
        finally:
            self._links -= 1
            self._leave_when_idle()

    def _retire(self, reason: str) -> None:
        if self._retiring:
            return
        log.warning("agent.retires", reason=reason)
        self._retiring = True
        self.tell("retiring")
        self._leave_when_idle()

    def _leave_when_idle(self) -> None:
        if self._retiring and not self._links:
            self._stop.set()

    async def _watch_parent(self) -> None:
        """Tell the supervisor that this loop turns; leave when it is gone, whatever the cause.

        A process that app code has worn out retires.
        """
        parent = os.getppid()
        wear = Wear(self._settings.runtime.memory_mb)
        beats = 0
        while os.getppid() == parent and not self._stop.is_set():
            if self._serving:
                self.tell("alive")
                beats += 1
                if beats % WEAR_BEATS == 0 and (worn := wear.worn()):
                    self._retire(f"app code holds on to too much: {worn}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._stop.wait()
        self._stop.set()


class _Faults:
    """Faults that the event loop meets by itself: without descriptors, thousands a second."""

    def __init__(self) -> None:
        self._left = MAX_FAULTS

    def tell(self, loop: asyncio.AbstractEventLoop, fault: dict[str, Any]) -> None:
        """Log a fault, as long as there were not too many."""
        self._left -= 1
        if self._left > 0:
            loop.default_exception_handler(fault)
        elif self._left == 0:
            log.error("agent.more_faults")


def _tell(control: TextIO, event: str, **fields: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        control.write(json.dumps({"event": event, **fields}) + "\n")
        control.flush()


def _separate_output() -> tuple[TextIO, TextIO]:
    """Keep standard output for the supervisor and standard error for logs.

    What app code prints becomes log lines; what bypasses that (os.write, child processes, C) could
    be anything, and any amount of it: it goes nowhere. Returns the way to the supervisor, and the
    stream of the logs.
    """
    control = os.fdopen(os.dup(1), "w", encoding="utf-8")
    logs = os.fdopen(os.dup(2), "w", encoding="utf-8", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stdout = sys.stderr = AppOutput()
    return control, logs


def _set_up_logs(settings: LogSettings, stream: TextIO) -> None:
    set_up(settings, stream, runs_app=True).addFilter(ScopeFilter())
    logging.getLogger("websockets").setLevel(logging.WARNING)
    show_own_threads(settings.app_output)


def _limit_memory(memory_mb: int) -> None:
    """Bound the address space to what the process has now and `memory_mb` more."""
    with contextlib.suppress(OSError, AttributeError):
        # Each malloc arena reserves address space that would count against the bound.
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
    threading.stack_size(STACK_BYTES)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    limit = pages * resource.getpagesize() + (memory_mb << 20)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main(arguments: list[str] | None = None) -> int:
    """Command line of the runtime process."""
    parser = argparse.ArgumentParser(prog="python -m gateway.agent.serve", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="unix socket to listen on")
    parser.add_argument("--app", type=Path, required=True, help="folder or zip of the app")
    options = parser.parse_args(arguments)
    end_with_parent()
    control, logs = _separate_output()
    let_go_in_forks(options.socket, control.fileno())
    _set_up_logs(LogSettings(), logs)
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    for name in [name for name in os.environ if name.startswith("VOICE_GATEWAY_")]:
        del os.environ[name]
    os.umask(0o077)
    # The media process shares the machine, and its frames cannot wait.
    yield_to_media()
    try:
        settings = Settings.model_validate_json(given or "{}")
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        _tell(control, "failed", code="config.value", message=problem["msg"], where=where)
        return 2
    _set_up_logs(settings.log, logs)
    _limit_memory(settings.runtime.memory_mb)

    async def run() -> int:
        process = Process(options.socket, options.app, settings, control)
        return await process.run()

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
