"""The HTTP stack: health, figures, webhooks, timelines. It shares the port with the media stack.

Every answer closes its connection; see `gateway.server.front`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from gateway import __version__
from gateway.channels.dialect import Hook, Proof, Request, RestRequest
from gateway.config import Settings
from gateway.errors import AdmissionError, GatewayError, ProtocolError, RestError
from gateway.platforms.rest import RestControl
from gateway.server import answers
from gateway.server.admission import Admission
from gateway.server.auth import Caller, Gate, host_name, public_origin, shares_timelines
from gateway.server.door import MediaDoor
from gateway.server.head import HeadError
from gateway.server.observers import CallObservers
from gateway.server.refusals import Refusals
from gateway.server.routes import Asked, Match, Media, Page, Routes, served, shown

MAX_FORM_FIELDS: Final = 200
TIMELINE_WAIT_S: Final = 10.0
"""How long `?follow=1` waits for a call that has not started yet."""
FOLLOWER_READ_S: Final = 30.0
"""How long a follower of a timeline may leave what it was sent unread."""

log = structlog.get_logger()


class _OwnFaultsOnly(logging.Filter):
    """Drops what aiohttp says of malformed requests: a client's fault, in the client's words."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True where the record may be written."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


LOGGER: Final = logging.getLogger("gateway.http")
"""What the HTTP stack itself logs to."""
LOGGER.addFilter(_OwnFaultsOnly())

Handler = Callable[[web.Request, Match], Awaitable[web.StreamResponse]]


class HttpPages:
    """The handlers of all pages, and the aiohttp application that serves them."""

    def __init__(
        self,
        settings: Settings,
        routes: Routes,
        gate: Gate,
        admission: Admission,
        door: MediaDoor,
        observers: CallObservers,
        refusals: Refusals,
        controls: Mapping[str, RestControl],
        ready: Callable[[], bool],
        about: str,
    ) -> None:
        self._settings = settings
        self._routes = routes
        self._gate = gate
        self._admission = admission
        self._door = door
        self._observers = observers
        self._refusals = refusals
        self._controls = controls
        self._ready = ready
        self._about = about
        self._share_timeline = shares_timelines(settings)
        self._pages: dict[Page, Handler] = {
            Page.ABOUT: self._about_page,
            Page.HEALTH: self._health,
            Page.READY: self._readiness,
            Page.METRICS: self._metrics,
            Page.TIMELINE: self._timeline,
        }

    def application(self) -> web.Application:
        """One catch-all route: the project's own table decides."""
        app = web.Application(client_max_size=self._settings.server.max_body_bytes)
        app.router.add_route("*", "/{tail:.*}", self._dispatch)
        app.on_response_prepare.append(_close_after)
        return app

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except (GatewayError, HeadError) as error:
            self._tell(request, error)
            return _answer(error)
        except (web.HTTPException, asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("http.failed", page=shown(request.rel_url.raw_path))
            return _answer(
                HeadError(
                    HTTPStatus.INTERNAL_SERVER_ERROR, "internal.http", "this request failed here"
                )
            )

    def _tell(self, request: web.Request, error: GatewayError | HeadError) -> None:
        strays = error.code == "http.not_found" and not request.query_string
        if strays and request.method in ("GET", "HEAD"):
            # Browsers and scanners look around so; a platform that asks says something.
            return
        remote = self._gate.proxies.source(_caller(request))
        self._refusals.tell(error, remote, *self._routes.named(request.rel_url.raw_path))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        found = self._routes.match(request.rel_url.raw_path)
        target = found.route.target
        if isinstance(target, Media):
            raise HeadError(
                HTTPStatus.UPGRADE_REQUIRED,
                "http.websocket",
                "this address is a websocket",
                hint="connect with ws:// or wss://; GET / shows how",
            )
        if request.method not in found.route.methods:
            raise HeadError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "http.method",
                "this address takes other methods",
                hint=f"use {' or '.join(found.route.methods)}",
                headers={"Allow": ", ".join(found.route.methods)},
            )
        if isinstance(target, Asked):
            return await self._webhook(request, found, target)
        return await self._pages[target](request, found)

    async def _health(self, _request: web.Request, _found: Match) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _readiness(self, _request: web.Request, _found: Match) -> web.Response:
        if self._admission.draining:
            return web.json_response({"status": "draining"}, status=503)
        if not self._ready():
            return web.json_response({"status": "starting"}, status=503)
        return web.json_response({"status": "ready", "calls": self._admission.active})

    async def _metrics(self, _request: web.Request, _found: Match) -> web.Response:
        return web.Response(
            body=self._observers.metrics.text(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    async def _about_page(self, request: web.Request, _found: Match) -> web.Response:
        served_here = served(self._settings.platforms)
        pages = self._page_origin(request, "")
        media = _websocket(pages)
        lines = [
            f"voice-gateway {__version__}",
            *([self._about] if self._about else []),
            "",
            "Websockets:",
            *(
                f"  {entry.name:<12} {media}{route.pattern}"
                for entry in served_here
                for route in entry.routes
            ),
            "Webhooks:",
            *(
                f"  {entry.name:<12} {'/'.join(hook.methods)} {pages}{hook.pattern}"
                for entry in served_here
                for hook in entry.webhooks
            ),
            "Try it from a shell:",
            f"  voice-gateway call {pages} SCENARIO --channel twilio",
            "Also here: /healthz /readyz /metrics /calls/CALL_ID/timeline?follow=1",
            "",
        ]
        return web.Response(text="\n".join(lines))

    async def _webhook(self, request: web.Request, found: Match, asked: Asked) -> web.Response:
        dialect = asked.dialect
        caller = _caller(request)
        body = await self._body(request)
        origin = public_origin(self._settings, dialect)
        # As they came: signatures cover every character.
        path, _, raw_query = request.raw_path.partition("?")
        told = Request(
            path=path,
            raw_query=raw_query,
            query=_fields(raw_query),
            headers=caller.headers,
            values=found.values,
            form=_fields(body) if "json" not in request.content_type else {},
            body=body,
            method=request.method,
            origin=origin,
        )

        account = dialect.account(told)

        def media_url(call_id: str) -> str:
            token = self._gate.issue(dialect.name, call_id, account)
            path = self._routes.token_path(dialect, token)
            return _websocket(self._page_origin(request, origin)) + path

        settings = dialect.settings(self._settings.platforms)
        try:
            if asked.webhook.proof is Proof.BEARER:
                self._gate.bearer(caller)
            else:
                self._gate.platform(dialect.name, caller, told)
            self._admission.check(self._gate.proxies.source(caller))
            self._door.check_account(dialect, account)
            answer = asked.webhook.answer(Hook(settings, told, media_url))
            if answer.connect is not None:
                source = self._gate.proxies.source(caller)
                await self._door.connect(dialect, answer.connect, told, source)
            if answer.requests:
                await self._ask_platform(dialect.name, answer.requests)
        except ProtocolError as error:
            field = f" ({error.where})" if error.where else ""
            message = f"{error.message}{field}"
            raise HeadError(
                HTTPStatus.BAD_REQUEST, error.code, message, hint=error.hint or ""
            ) from None
        return web.Response(body=answer.body, content_type=answer.content_type)

    async def _ask_platform(self, dialect: str, requests: Sequence[RestRequest]) -> None:
        control = self._controls.get(dialect)
        if control is None:
            raise AdmissionError(
                "admission.no_rest",
                "the call can be taken by REST only, and there are no credentials for it",
                status=502,
                hint=f"set platforms.{dialect}.api_secret",
            )
        try:
            await control.ask(requests)
        except RestError as error:
            raise AdmissionError(
                "admission.platform", error.message, status=502, where=error.where, hint=error.hint
            ) from None

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._settings.server.head_timeout_s):
                return await request.read()
        except TimeoutError:
            raise HeadError(
                HTTPStatus.REQUEST_TIMEOUT, "http.slow", "the request body took too long to come"
            ) from None
        except web.RequestPayloadError:
            raise HeadError(
                HTTPStatus.BAD_REQUEST, "http.body", "the request body is malformed"
            ) from None
        except web.HTTPRequestEntityTooLarge:
            raise HeadError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "http.body_too_large",
                f"the body is above {self._settings.server.max_body_bytes} bytes",
            ) from None

    async def _timeline(self, request: web.Request, found: Match) -> web.StreamResponse:
        if not self._share_timeline:
            raise HeadError(
                HTTPStatus.NOT_FOUND,
                "http.not_shared",
                "this server does not share timelines",
                hint="set server.share_timeline",
            )
        self._gate.bearer(_caller(request))
        timelines = self._observers.timelines
        call_id = found.values["call_id"]
        follow = request.query.get("follow", "") not in ("", "0", "false")
        known = await timelines.wait_known(call_id, TIMELINE_WAIT_S if follow else 0.0)
        if not known:
            raise HeadError(HTTPStatus.NOT_FOUND, "http.no_call", "this call is not known here")
        if not follow:
            lines = timelines.lines(call_id) or []
            return web.Response(body=b"".join(lines), content_type="application/x-ndjson")
        if not timelines.followable:
            raise AdmissionError(
                "admission.followers", "too many timelines are being followed", retry_after_s=5
            )
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        async for chunk in timelines.follow(call_id):
            try:
                async with asyncio.timeout(FOLLOWER_READ_S):
                    await response.write(chunk)
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
                return response
        await response.write_eof()
        return response

    def _page_origin(self, request: web.Request, origin: str) -> str:
        """The public origin (`origin`, else the server's), else what the client has called."""
        public = origin or self._settings.server.public_origin
        if public:
            return public.rstrip("/")
        host = request.headers.get("Host", "")
        if not host_name(host):
            host = f"{self._settings.server.host}:{self._settings.server.port}"
        return f"{'https' if self._settings.server.tls_cert else 'http'}://{host}"


def _websocket(origin: str) -> str:
    parts = urlsplit(origin)
    scheme = "wss" if parts.scheme in ("https", "wss") else "ws"
    return f"{scheme}://{parts.netloc}{parts.path}"


def _fields(text: str | bytes) -> dict[str, list[str]]:
    """Form or query fields with all their values. Raises HeadError (400)."""
    try:
        return parse_qs(
            text if isinstance(text, str) else text.decode(),
            keep_blank_values=True,
            max_num_fields=MAX_FORM_FIELDS,
        )
    except ValueError:
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.form", "these are no form fields") from None


def _caller(request: web.Request) -> Caller:
    return Caller(
        address=request.remote or "",
        host=request.headers.get("Host", ""),
        origin=request.headers.get("Origin", ""),
        authorization=request.headers.get("Authorization", ""),
        access_token=request.query.get("access_token", ""),
        headers={name.lower(): ", ".join(request.headers.getall(name)) for name in request.headers},
    )


def _answer(error: GatewayError | HeadError) -> web.Response:
    return web.Response(
        status=answers.status_of(error),
        body=answers.body_of(error),
        content_type="application/json",
        headers=answers.headers_of(error),
    )


async def _close_after(_request: web.Request, response: web.StreamResponse) -> None:
    # The header fields are made before this hook runs, so it is written here by hand as well.
    response.force_close()
    response.headers["Connection"] = "close"
    response.headers["Server"] = "voice-gateway"
