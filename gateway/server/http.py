"""The HTTP stack: health, figures, webhooks, timelines. It shares the port with the media stack.

Every answer closes its connection; see `gateway.server.front`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

import structlog
from aiohttp import web

from gateway import __version__
from gateway.config import Settings
from gateway.errors import AdmissionError, GatewayError
from gateway.server import answers
from gateway.server.admission import Admission
from gateway.server.auth import Caller, Gate, is_loopback
from gateway.server.head import HeadError
from gateway.server.observers import CallObservers
from gateway.server.routes import NATIVE, Match, Media, Page, match
from gateway.server.twiml import connect_stream

MAX_FORM_FIELDS: Final = 200
TIMELINE_WAIT_S: Final = 10.0
"""How long `?follow=1` waits for a call that has not started yet."""
FOLLOWER_READ_S: Final = 30.0
"""How long a follower of a timeline may leave what it was sent unread."""

_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?", re.ASCII)
_CALL_SID = re.compile(r"[\w-]{1,64}", re.ASCII)

log = structlog.get_logger()

Handler = Callable[[web.Request, Match], Awaitable[web.StreamResponse]]


class HttpPages:
    """The handlers of all pages, and the aiohttp application that serves them."""

    def __init__(
        self,
        settings: Settings,
        gate: Gate,
        admission: Admission,
        observers: CallObservers,
        ready: Callable[[], bool],
        about: str,
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._admission = admission
        self._observers = observers
        self._ready = ready
        self._about = about
        share = settings.server.share_timeline
        self._share_timeline = is_loopback(settings.server.host) if share is None else share
        self._pages: dict[Page, Handler] = {
            Page.ABOUT: self._about_page,
            Page.HEALTH: self._health,
            Page.READY: self._readiness,
            Page.METRICS: self._metrics,
            Page.TWILIO_VOICE: self._twilio_voice,
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
            found = match(request.rel_url.raw_path)
            target = found.route.target
            if isinstance(target, Media):
                raise HeadError(
                    HTTPStatus.UPGRADE_REQUIRED,
                    "http.websocket",
                    "this address is a websocket",
                    hint="connect with ws:// or wss://; GET / shows how",
                )
            if request.method not in found.route.methods:
                refusal = HeadError(
                    HTTPStatus.METHOD_NOT_ALLOWED, "http.method", "this address takes other methods"
                )
                return _answer(refusal, {"Allow": ", ".join(found.route.methods)})
            return await self._pages[target](request, found)
        except (GatewayError, HeadError) as error:
            return _answer(error)
        except (web.HTTPException, asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("http.failed", page=request.rel_url.raw_path[:100])
            return _answer(
                HeadError(
                    HTTPStatus.INTERNAL_SERVER_ERROR, "internal.http", "this request failed here"
                )
            )

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
        media = self._media_origin(request)
        native = NATIVE.format(version="v1", location="us")
        lines = [
            f"voice-gateway {__version__}",
            *([self._about] if self._about else []),
            "",
            "Native websocket (BidiRunSession JSON):",
            f"  {media}{native}",
            "Twilio voice webhook (POST):",
            f"  {self._page_origin(request)}/twilio/voice",
            "Try it from a shell:",
            f"  voice-gateway call {self._page_origin(request)} SCENARIO --channel twilio",
            "Also here: /healthz /readyz /metrics /calls/CALL_ID/timeline?follow=1",
            "",
        ]
        return web.Response(text="\n".join(lines))

    async def _twilio_voice(self, request: web.Request, _found: Match) -> web.Response:
        fields = await self._form(request)
        self._gate.webhook(_caller(request), request.raw_path, fields)
        call_sid = fields.get("CallSid", [""])[0]
        if not _CALL_SID.fullmatch(call_sid):
            raise HeadError(
                HTTPStatus.BAD_REQUEST, "http.form", "the form names no call (field CallSid)"
            )
        try:
            self._admission.check(request.remote or "")
        except AdmissionError as error:
            self._observers.metrics.refused(error.code)
            raise
        token = self._gate.issue("twilio", call_sid)
        parameters = {
            "callSid": call_sid,
            "from": fields.get("From", [""])[0],
            "to": fields.get("To", [""])[0],
        }
        url = f"{self._media_origin(request)}/twilio/media/{token}"
        return web.Response(body=connect_stream(url, parameters), content_type="text/xml")

    async def _form(self, request: web.Request) -> dict[str, list[str]]:
        try:
            async with asyncio.timeout(self._settings.server.head_timeout_s):
                body = await request.read()
        except TimeoutError:
            raise HeadError(
                HTTPStatus.REQUEST_TIMEOUT, "http.slow", "the request body took too long to come"
            ) from None
        except web.HTTPRequestEntityTooLarge:
            raise HeadError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "http.body_too_large",
                f"the body is above {self._settings.server.max_body_bytes} bytes",
            ) from None
        try:
            return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        except ValueError:
            raise HeadError(HTTPStatus.BAD_REQUEST, "http.form", "the body is not a form") from None

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

    def _page_origin(self, request: web.Request) -> str:
        public = self._settings.server.public_origin
        if public is not None:
            return public.rstrip("/")
        host = request.headers.get("Host", "")
        if not _HOST.fullmatch(host):
            host = f"{self._settings.server.host}:{self._settings.server.port}"
        return f"{'https' if self._settings.server.tls_cert else 'http'}://{host}"

    def _media_origin(self, request: web.Request) -> str:
        parts = urlsplit(self._page_origin(request))
        scheme = "wss" if parts.scheme in ("https", "wss") else "ws"
        return f"{scheme}://{parts.netloc}{parts.path}"


def _caller(request: web.Request) -> Caller:
    return Caller(
        address=request.remote or "",
        host=request.headers.get("Host", ""),
        origin=request.headers.get("Origin", ""),
        authorization=request.headers.get("Authorization", ""),
        access_token=request.query.get("access_token", ""),
        signature=request.headers.get("X-Twilio-Signature", ""),
    )


def _answer(error: GatewayError | HeadError, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=answers.status_of(error),
        body=answers.body_of(error),
        content_type="application/json",
        headers={**answers.headers_of(error), **(headers or {})},
    )


async def _close_after(_request: web.Request, response: web.StreamResponse) -> None:
    # The header fields are made before this hook runs, so it is written here by hand as well.
    response.force_close()
    response.headers["Connection"] = "close"
    response.headers["Server"] = "voice-gateway"
