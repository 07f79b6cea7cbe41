"""The gateway as a server: one port, its sockets, and an end that is polite and bounded."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from typing import Final

import structlog
from aiohttp import web

from gateway.channels.base import EndReason
from gateway.config import ServerSettings, Settings
from gateway.errors import ConfigError
from gateway.platforms.rest import RestControl
from gateway.platforms.terms import Accounts
from gateway.server.admission import Admission
from gateway.server.auth import Gate, check_exposure
from gateway.server.contract import MakeCall
from gateway.server.door import MediaDoor
from gateway.server.front import FrontDoor
from gateway.server.http import LOGGER, HttpPages
from gateway.server.media import CLOSE_WAIT_S, MediaSocket
from gateway.server.metrics import Metrics
from gateway.server.observers import CallObservers
from gateway.server.refusals import Refusals
from gateway.server.routes import Routes
from gateway.server.timelines import Timelines
from gateway.server.tokens import MediaTokens

WATCH_S: Final = 0.25
"""How often all sockets' deadlines are judged."""
CALL_END_S: Final = 30.0
"""Longest wait for a call to let go after its socket is gone."""
LET_GO_S: Final = 5.0
"""Longest wait for aborted calls to let go while the server stops."""
HTTP_STOP_S: Final = 1.0

log = structlog.get_logger()


async def check_port(settings: Settings) -> None:
    """Raise ConfigError where the port is taken, before anything expensive is started."""
    server = settings.server
    loop = asyncio.get_running_loop()
    try:
        probe = await loop.create_server(
            asyncio.Protocol, server.host, server.port, start_serving=False
        )
    except OSError as error:
        raise _taken(server, error) from None
    probe.close()
    await probe.wait_closed()


def _taken(server: ServerSettings, error: OSError) -> ConfigError:
    return ConfigError(
        "config.port",
        f"cannot listen on {server.host}:{server.port}: {error.strerror or error}",
        where="server.port",
        hint="another program may use this port; choose one with --port",
    )


class Gateway:
    """Serves calls that `make_call` makes. `start` once, `stop` once.

    `observers` is what every call's services should be given as their observer; `controls` are
    the platforms' REST interfaces, for webhooks that take a call by them. `ready` says whether
    the process can take calls beyond what the server knows itself; `about` is a line for the
    page at `/`.
    """

    def __init__(
        self,
        settings: Settings,
        make_call: MakeCall,
        *,
        observers: CallObservers | None = None,
        controls: Mapping[str, RestControl] | None = None,
        accounts: Accounts | None = None,
        ready: Callable[[], bool] = lambda: True,
        about: str = "",
    ) -> None:
        self._settings = settings
        server = settings.server
        self.observers = observers or CallObservers(Metrics(), Timelines())
        self._admission = Admission(
            server.max_calls, server.max_calls_per_source, server.retry_after_s
        )
        metrics = self.observers.metrics
        metrics.watch(lambda: self._admission.active, lambda: self._admission.draining)
        secret = settings.auth.media_secret
        gate = Gate(
            settings,
            MediaTokens(
                secret.get_secret_value().encode() if secret else None,
                settings.auth.media_token_s,
            ),
        )
        routes = Routes(settings.platforms)
        refusals = Refusals(metrics)
        self._door = MediaDoor(
            settings,
            routes,
            gate,
            self._admission,
            metrics,
            refusals,
            make_call,
            self,
            accounts or Accounts(),
        )
        pages = HttpPages(
            settings,
            routes,
            gate,
            self._admission,
            self._door,
            self.observers,
            refusals,
            controls or {},
            ready,
            about,
        )
        self._runner = web.AppRunner(
            pages.application(),
            access_log=None,
            logger=LOGGER,
            handle_signals=False,
            handler_cancellation=True,
            lingering_time=HTTP_STOP_S,
            shutdown_timeout=HTTP_STOP_S,
            max_line_size=server.max_head_bytes,
            max_field_size=server.max_head_bytes,
        )
        self._front: FrontDoor | None = None
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._sockets: set[MediaSocket] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._endings: set[asyncio.Task[None]] = set()

    # ---- life

    async def start(self) -> None:
        """Bind and serve. Raises ConfigError where the settings forbid it or the port is taken."""
        check_exposure(self._settings)
        context = self._tls()
        server = self._settings.server
        await self._runner.setup()
        http = self._runner.server
        assert http is not None
        self._front = FrontDoor(server, self._door, http)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._front,
                server.host,
                server.port,
                ssl=context,
                ssl_handshake_timeout=server.head_timeout_s if context else None,
                ssl_shutdown_timeout=CLOSE_WAIT_S if context else None,
                backlog=1024,
            )
        except OSError as error:
            await self._runner.cleanup()
            raise _taken(server, error) from None
        self._watch = loop.create_task(self._watch_sockets(), name="media-watch")
        log.info("server.listening", host=server.host, port=self.port, tls=context is not None)

    async def stop(self) -> None:
        """Take no more calls, let running ones go on for `drain_s`, say goodbye, close.

        Takes at most `drain_s` + `shutdown_s` and a few seconds of teardown.
        """
        if self._server is None:
            return
        self._admission.drain()
        log.info("server.draining", calls=self._admission.active)
        await self._wait_idle(self._settings.server.drain_s)
        for socket in list(self._sockets):
            self._say_goodbye(socket)
        await self._wait_idle(self._settings.server.shutdown_s)
        self._server.close()
        for socket in list(self._sockets):
            self._end_now(socket)
        await self._wait_idle(CLOSE_WAIT_S)
        for socket in list(self._sockets):
            socket.abort()
        await self._wait_idle(LET_GO_S)
        if self._front is not None:
            self._front.close()
        await self._runner.cleanup()
        left = list(self._endings)
        if self._watch is not None:
            left.append(self._watch)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WAIT_S):
                await self._server.wait_closed()
        self._server = None
        log.info("server.stopped")

    # ---- what it is

    @property
    def port(self) -> int:
        """The port it listens on (of use where the settings said 0)."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """`http://host:port`, as this machine reaches it."""
        server = self._settings.server
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(
            server.host, f"[{server.host}]" if ":" in server.host else server.host
        )
        return f"{'https' if server.tls_cert else 'http'}://{host}:{self.port}"

    @property
    def active(self) -> int:
        """Calls that hold a line."""
        return self._admission.active

    # ---- its sockets

    def _tls(self) -> ssl.SSLContext | None:
        server = self._settings.server
        if server.tls_cert is None or server.tls_key is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Without this a client could agree on HTTP/2, which is not spoken here.
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(server.tls_cert, server.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                "config.tls", f"cannot read certificate and key: {error}", where="server.tls_cert"
            ) from None
        return context

    def joined(self, socket: MediaSocket) -> None:
        """A socket was upgraded."""
        self._sockets.add(socket)
        self._idle.clear()

    def gone(self, socket: MediaSocket) -> None:
        """A socket is closed; its call may still have to let go."""
        task = asyncio.get_running_loop().create_task(self._end(socket), name="media-end")
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _end(self, socket: MediaSocket) -> None:
        """Hold the slot until the call holds nothing any more."""
        try:
            if socket.call is not None:
                resume_s = socket.admitted.channel.capabilities.resume_s
                async with asyncio.timeout(CALL_END_S + resume_s):
                    await socket.call.wait_ended()
        except TimeoutError:
            log.error("call.stuck", call_id=socket.call.call_id if socket.call else "")
        finally:
            socket.admitted.slot.release()
            self._sockets.discard(socket)
            if not self._sockets:
                self._idle.set()

    @staticmethod
    def _end_now(socket: MediaSocket) -> None:
        call = socket.call
        if call is not None:
            try:
                socket.run(lambda: call.end(EndReason.SHUTDOWN))
            except Exception:
                log.exception("call.end_failed", call_id=call.call_id)
        socket.close(1001, "the server closes")

    def _say_goodbye(self, socket: MediaSocket) -> None:
        call = socket.call
        if call is None or not call.started:
            socket.close(1001, "the server closes")
            return
        try:
            socket.run(call.shutdown)
        except Exception:
            log.exception("call.shutdown_failed", call_id=call.call_id)
            self._end_now(socket)

    async def _wait_idle(self, limit_s: float) -> None:
        """Wait until no call is left, but at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._idle.wait()

    async def _watch_sockets(self) -> None:
        loop = asyncio.get_running_loop()
        metrics = self.observers.metrics
        while True:
            due = loop.time() + WATCH_S
            await asyncio.sleep(WATCH_S)
            now = loop.time()
            metrics.loop_lag(now - due)
            for socket in list(self._sockets):
                try:
                    socket.check(now)
                except Exception:
                    log.exception("media.check_failed")
                    socket.abort()
