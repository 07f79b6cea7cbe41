"""Starts, watches and replaces the processes that run agent apps.

App code never runs in the media process. Each runtime process serves many sessions on a unix
socket of its own; one that dies loses its sessions (their calls hear the fallback) and is
replaced, and what it has started ends with it; one that hangs (app code that holds the
interpreter) is killed; one that retires takes no new session and is ended when its last one is
over.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import structlog

from gateway.config import Settings
from gateway.errors import AppError, ConfigError, GatewayError, RuntimeFailure
from gateway.runtime.child import Child
from gateway.runtime.link import RuntimeLink, WebsocketLink
from gateway.runtime.pulse import Sample, hangs, sample
from gateway.runtime.strays import MARK, end_strays
from gateway.speech.aside import Aside

log = structlog.get_logger("gateway.runtime")

START_S = 30.0
STOP_S = 3.0
RETRY_S = 0.05
OPEN_S = 3.0
"""Longest wait for one process to take a session; then it is looked anew for one that does."""
QUIET_S = 1.0
"""Length of the waits for a sign of life that are counted; one comes in each. They are counted,
and not the time, since this process may have been suspended itself."""
SLOW_TIMES = 3
"""So many times the usual patience is had with a process that the machine does not let run."""
RESTART_PAUSE_S = (0.1, 0.5, 1.0, 2.0, 5.0)
LINE_LIMIT = 1 << 16
KEPT_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    # Where tools' Google credentials are looked for.
    "CLOUDSDK_CONFIG",
    "GCE_METADATA_HOST",
    "GCE_METADATA_IP",
    "GOOGLE_CLOUD_QUOTA_PROJECT",
    "NO_GCE_CHECK",
)
"""What a runtime process inherits: no secret of the gateway is among it."""


@dataclass(eq=False, slots=True)
class _Process:
    process: Child
    socket: str
    sessions: int = 0
    retiring: bool = False
    quiet: int = 0
    """Waits in a row without a sign of life."""
    links: set[_CountedLink] = field(default_factory=set)
    watcher: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self.process.returncode is None


class _CountedLink:
    """A link that gives its place in the process back when it closes."""

    def __init__(self, link: WebsocketLink, owner: EmbeddedRuntime, process: _Process) -> None:
        self._link = link
        self._owner = owner
        self._process: _Process | None = process
        process.links.add(self)

    async def send(self, message: Mapping[str, Any]) -> None:
        await self._link.send(message)

    async def receive(self) -> dict[str, Any] | None:
        return await self._link.receive()

    def abort(self) -> None:
        """The process is gone: whoever waits is told so at once."""
        self._link.abort()

    async def aclose(self) -> None:
        process, self._process = self._process, None
        try:
            await self._link.aclose()
        finally:
            if process is not None:
                process.links.discard(self)
                self._owner._release(process)


class EmbeddedRuntime:
    """The pool of runtime processes of one gateway."""

    def __init__(self, settings: Settings, app: Path) -> None:
        self._settings = settings
        self._app = app
        self._folder = tempfile.mkdtemp(prefix="voice-gateway-")
        self._processes: list[_Process] = []
        self._tasks: list[asyncio.Task[Any]] = []
        """What starts processes."""
        self._changed = asyncio.Condition()
        self._aside = Aside("runtime-proc")
        self._closing = False
        self._started = 0

    @property
    def ready(self) -> bool:
        """Whether a process takes new sessions."""
        return any(p.alive and not p.retiring for p in self._processes)

    @property
    def pids(self) -> list[int]:
        """Process ids, for tests and metrics."""
        return [p.process.pid for p in self._processes if p.alive]

    async def start(self) -> None:
        """Start all processes; returns when they serve.

        Raises RuntimeFailure, or what a process says of an app or settings that it cannot use.
        """
        self._tasks = [
            asyncio.create_task(self._launch(), name="runtime-launch")
            for _ in range(self._settings.runtime.processes)
        ]
        try:
            first = await asyncio.gather(*self._tasks, return_exceptions=True)
            failures = [item for item in first if isinstance(item, BaseException)]
            if self._closing:
                raise RuntimeFailure("runtime.unavailable", "the runtime was closed at its start")
            if failures:
                raise failures[0]
        except BaseException:
            await self.aclose()
            raise
        self._tasks = [asyncio.create_task(self._keep(), name="runtime-keeper")]

    async def connect(self, channel: str = "") -> RuntimeLink:
        """A link to the process with the fewest sessions; waits for a replacement if need be.

        `channel`: the dialect by which the caller came.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.runtime.start_timeout_s
        while True:
            process = await self._choose(deadline)
            process.sessions += 1
            try:
                link = await WebsocketLink.open(
                    f"unix://{process.socket}",
                    min(OPEN_S, max(0.1, deadline - loop.time())),
                    channel,
                )
            except RuntimeFailure:
                self._release(process)
                if loop.time() >= deadline:
                    raise
                # It may have died a moment ago, before its end was noticed here.
                await self._wait_for_change(RETRY_S)
                continue
            except BaseException:
                self._release(process)
                raise
            return _CountedLink(link, self, process)

    async def _choose(self, deadline: float) -> _Process:
        loop = asyncio.get_running_loop()
        while True:
            usable = [p for p in self._processes if p.alive and not p.retiring]
            if usable:
                # One that is silent may hang.
                return min(usable, key=lambda p: (p.quiet > 0, p.sessions))
            left_s = deadline - loop.time()
            if left_s <= 0 or self._closing:
                raise RuntimeFailure("runtime.unavailable", "no runtime process is up")
            await self._wait_for_change(left_s)

    async def _wait_for_change(self, limit_s: float) -> None:
        async with self._changed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._changed.wait()

    def _release(self, process: _Process) -> None:
        process.sessions -= 1
        if process.retiring and process.sessions <= 0 and process.alive:
            process.process.terminate()

    async def _launch(self) -> _Process:
        self._started += 1
        socket = os.path.join(self._folder, f"runtime-{self._started}.sock")
        environment = {k: v for k, v in os.environ.items() if k in KEPT_ENVIRONMENT}
        environment[MARK] = socket
        words = (
            *(sys.executable, "-m", "gateway.agent.serve"),
            *("--socket", socket, "--app", str(self._app)),
        )
        child = await Child.start(words, environment, LINE_LIMIT)
        process = _Process(child, socket)
        child.stdin.write(self._told())
        child.stdin.close()
        try:
            async with asyncio.timeout(START_S):
                await self._until_ready(process)
        except TimeoutError:
            await self._stop(process)
            raise RuntimeFailure(
                "runtime.start", f"the runtime process was not ready in {START_S:.0f} s"
            ) from None
        except BaseException:
            # Also where the pool closes meanwhile: nobody else knows of this process yet.
            await self._stop(process)
            raise
        self._processes.append(process)
        process.watcher = asyncio.create_task(self._watch(process), name=f"runtime:{child.pid}")
        async with self._changed:
            self._changed.notify_all()
        log.info("runtime.ready", pid=child.pid)
        return process

    def _told(self) -> bytes:
        """The settings that a process needs, its secrets among them."""
        settings = self._settings
        return orjson.dumps(
            {
                "runtime": settings.runtime.model_dump(mode="json"),
                "model": settings.model.for_runtime(),
                "call": settings.call.model_dump(mode="json"),
                "tools": settings.tools.for_runtime(),
                "log": settings.log.model_dump(mode="json"),
            }
        )

    async def _until_ready(self, process: _Process) -> None:
        while True:
            event = await self._event(process)
            if event is None:
                code = await process.process.wait()
                raise RuntimeFailure(
                    "runtime.start",
                    f"the runtime process ended at its start (exit code {code})",
                    hint="its own message stands above on standard error",
                )
            if event.get("event") == "ready":
                return
            if event.get("event") == "failed":
                await process.process.wait()
                raise _as_told(event)

    async def _event(self, process: _Process) -> dict[str, Any] | None:
        try:
            line = await process.process.stdout.readline()
        except ValueError:
            # A line longer than the limit cannot be ours.
            return {}
        if not line:
            return None
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            return {}
        return value if isinstance(value, dict) else {}

    async def _watch(self, process: _Process) -> None:
        """From the time that a process serves to its end."""
        child = process.process
        listening = asyncio.create_task(self._listen(process), name=f"runtime-listen:{child.pid}")
        try:
            code = await child.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        if not self._closing:
            log.warning("runtime.ended", pid=child.pid, exit_code=code)
        # A fork of it would hold the sockets, and so the calls, for as long as it lives.
        for link in tuple(process.links):
            link.abort()
        await self._end_strays(process)
        async with self._changed:
            self._changed.notify_all()

    async def _listen(self, process: _Process) -> None:
        """Take what a process says; kill it when it hangs."""
        patience = math.ceil(self._settings.runtime.hang_timeout_s / QUIET_S)
        first: Sample | None = None
        while True:
            try:
                async with asyncio.timeout(QUIET_S):
                    event = await self._event(process)
            except TimeoutError:
                process.quiet += 1
                if process.quiet == 1:
                    first = await self._sample(process)
                elif process.quiet >= patience:
                    last = await self._sample(process)
                    if hangs(first, last) or process.quiet >= SLOW_TIMES * patience:
                        break
                continue
            if event is None:
                # It ends, or app code has closed the way by which it speaks.
                await asyncio.sleep(QUIET_S)
                if self._closing:
                    return
                break
            process.quiet = 0
            if event.get("event") == "retiring" and not process.retiring:
                process.retiring = True
                log.warning("runtime.retires", pid=process.process.pid)
                if process.sessions <= 0 and process.alive:
                    process.process.terminate()
                async with self._changed:
                    self._changed.notify_all()
        log.error("runtime.hangs", pid=process.process.pid)
        process.process.kill()

    async def _sample(self, process: _Process) -> Sample | None:
        return await self._aside.run(partial(sample, process.process.pid))

    async def _end_strays(self, process: _Process) -> None:
        await self._aside.run(partial(end_strays, process.process.pid, process.socket))

    async def _keep(self) -> None:
        """Keep as many usable processes as configured."""
        failures = 0
        while not self._closing:
            gone = [p for p in self._processes if p.watcher is not None and p.watcher.done()]
            for process in gone:
                self._processes.remove(process)
                process.process.close()
                with contextlib.suppress(OSError):
                    os.unlink(process.socket)
            usable = sum(1 for p in self._processes if p.alive and not p.retiring)
            if usable >= self._settings.runtime.processes:
                failures = 0
                await self._wait_for_change(1.0)
                continue
            try:
                await self._launch()
            except (GatewayError, OSError) as error:
                log.error("runtime.not_started", error=str(error))
                pause_s = RESTART_PAUSE_S[min(failures, len(RESTART_PAUSE_S) - 1)]
                failures += 1
                await asyncio.sleep(pause_s)

    async def _stop(self, process: _Process) -> None:
        child = process.process
        try:
            child.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await child.wait()
        finally:
            child.kill()
        await child.wait()
        if process.watcher is None:
            await self._end_strays(process)
        else:
            await asyncio.gather(process.watcher, return_exceptions=True)
        child.close()

    async def aclose(self) -> None:
        """End all processes; bounded; may be called twice."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._stop(p) for p in self._processes), return_exceptions=True)
        self._processes.clear()
        self._aside.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _as_told(event: Mapping[str, Any]) -> GatewayError:
    """The error for which a process could not start, as if it had been raised here."""
    code = str(event.get("code") or "runtime.start")
    kind = {"app": AppError, "config": ConfigError}.get(code.partition(".")[0], RuntimeFailure)
    message = str(event.get("message") or "the runtime process could not start")
    return kind(code, message, where=event.get("where"), hint=event.get("hint"))
