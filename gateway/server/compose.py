"""Puts a live gateway together: app, speech, assets, runtime, calls, sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from gateway import demo
from gateway.agent.app import App, read_app
from gateway.assets import AudioAssets, ThreadRunner
from gateway.bidi import session_part
from gateway.channels.base import Channel
from gateway.config import Settings
from gateway.errors import AssetError, ConfigError
from gateway.notices import Notices
from gateway.platforms.known_calls import KnownCalls
from gateway.platforms.terms import rest_controls, terms_of
from gateway.records import build as build_records
from gateway.runtime import google_names
from gateway.runtime.client import Connect, RuntimeClient
from gateway.runtime.embedded import EmbeddedRuntime
from gateway.runtime.google import GoogleRuntime, remote_app
from gateway.runtime.link import RuntimeLink, WebsocketLink
from gateway.runtime.profile import call_profile, runtime_audio
from gateway.server.app import Gateway
from gateway.server.auth import check_exposure
from gateway.server.contract import Call, MediaTransport
from gateway.server.credentials import check_credentials
from gateway.server.metrics import Metrics
from gateway.server.observers import CallObservers
from gateway.server.timelines import Timelines
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.speech import build
from gateway.speech.support import unsupported
from gateway.ticker import Ticker

TELEPHONE_HZ = 8000
"""Rate of nearly all calls."""
_ODD = re.compile(r"[^a-zA-Z0-9_-]")

log = structlog.get_logger()


def session_name(app: App, call_id: str, config: Mapping[str, Any]) -> str:
    """The session's resource name: the client's own where it gave one, else made of the call id."""
    given = config.get("session")
    if isinstance(given, str) and given:
        return given
    name = _ODD.sub("-", app.display_name).strip("-") or "app"
    return f"projects/local/locations/local/apps/{name}/sessions/{session_part(call_id)}"


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Gateway]:
    """A gateway that takes calls; on leaving, it drains and holds nothing any more.

    Raises ConfigError, AppError, SpeechError or RuntimeFailure where it cannot start.
    """
    check_exposure(settings)
    check_credentials(settings.platforms)
    loop = asyncio.get_running_loop()
    google = GoogleRuntime(settings) if settings.runtime.google.app else None
    path = settings.app or demo.APP_PATH
    app = _app(settings, path)
    for warning in app.warnings:
        log.warning("app.warning", code=warning.code, where=warning.where, message=warning.message)
    profile = call_profile(app, settings)
    async with AsyncExitStack() as stack:
        threads = ThreadRunner(settings.assets.workers)
        stack.push_async_callback(threads.aclose)
        assets = AudioAssets(settings.assets, app.read_file, threads)
        stack.push_async_callback(assets.aclose)
        if profile.ambience is not None:
            # Made before the first call wants it; a file that cannot be had now may be later.
            with contextlib.suppress(AssetError):
                await assets.ambient_loop(profile.ambience, TELEPHONE_HZ)
        speech = build(settings)
        for lack in unsupported(speech.synthesiser, profile.voices):
            log.warning(lack.code, where=lack.where, message=lack.message, hint=lack.hint)
        stack.push_async_callback(speech.aclose)
        embedded = _embedded(settings, path)
        if embedded is not None:
            stack.push_async_callback(embedded.aclose)
            await asyncio.gather(speech.start(), embedded.start())
        else:
            await speech.start()
        if google is not None:
            stack.push_async_callback(google.aclose)
            await google.start()
        name_session = google.session_name if google is not None else partial(session_name, app)
        controls = rest_controls(settings.platforms)
        for control in controls.values():
            stack.push_async_callback(control.aclose)
        ticker = Ticker(loop)
        stack.callback(ticker.close)
        observers = CallObservers(Metrics(), Timelines())
        records = build_records(app, settings, name_session)
        if records is not None:
            stack.push_async_callback(records.aclose)
            records.start()
            observers.metrics.watch_records(lambda: records.figures)
        notices = None
        if settings.notices.url is not None:
            notices = Notices(settings.notices, name_session, observers.metrics.error)
            stack.push_async_callback(notices.aclose)

        async def open_runtime(
            dialect: str, call_id: str, config: Mapping[str, Any]
        ) -> RuntimeClient:
            if google is not None:
                return await google.open(call_id, config)
            connect = _connect(settings, embedded, dialect)
            client = RuntimeClient(name_session(call_id, config), config, connect)
            await client.open()
            return client

        services = CallServices(
            profile=profile,
            speech=speech,
            assets=assets,
            open_runtime=partial(open_runtime, ""),
            ticker=ticker,
            observer=observers,
            send_buffer_bytes=settings.server.send_buffer_bytes,
            shutdown_message=settings.call.shutdown_message,
            runtime_audio=runtime_audio(settings),
            records=records,
            notices=notices,
            terms=terms_of(settings.platforms, controls),
            known=KnownCalls(settings.server.finished_call_s),
        )

        def make_call(
            channel: Channel,
            transport: MediaTransport,
            *,
            remote: str,
            path: str,
            custom: Mapping[str, Any],
        ) -> Call:
            # The runtime learns by which dialect the caller came: tools may depend on it.
            own = partial(open_runtime, channel.capabilities.dialect)
            return LiveCall(channel, transport, replace(services, open_runtime=own), custom=custom)

        gateway = Gateway(
            settings,
            make_call,
            observers=observers,
            controls=controls,
            accounts=services.accounts,
            ready=lambda: embedded is None or embedded.ready,
            about=f"{app.display_name} ({_source(settings, path)})",
        )
        # What lives from here on is made by calls; the rest need not be searched for garbage.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        await gateway.start()
        stack.push_async_callback(gateway.stop)
        yield gateway


def _app(settings: Settings, path: Path) -> App:
    """The app that answers: its export, or what is known of it without one."""
    google = settings.runtime.google
    if not google.app:
        google_names.check(settings)
        return read_app(path)
    if settings.app is None:
        return remote_app(google)
    app = read_app(path)
    google_names.check_app(google, app)
    return app


def _source(settings: Settings, path: Path) -> str:
    if settings.runtime.google.app:
        return "at Google"
    return "the demo app" if path == demo.APP_PATH else path.name


def _embedded(settings: Settings, path: Path) -> EmbeddedRuntime | None:
    if settings.runtime.google.app:
        return None
    if settings.runtime.url is None and settings.runtime.hears:
        raise ConfigError(
            "config.value",
            "runtime.modality: the embedded runtime neither listens nor speaks",
            where="settings",
            hint="set runtime.url or runtime.google.app as well, or leave runtime.modality out",
        )
    return EmbeddedRuntime(settings, path) if settings.runtime.url is None else None


def _connect(settings: Settings, embedded: EmbeddedRuntime | None, dialect: str) -> Connect:
    if embedded is not None:
        return partial(embedded.connect, dialect)
    url = settings.runtime.url
    assert url is not None

    async def connect() -> RuntimeLink:
        return await WebsocketLink.open(url, settings.runtime.start_timeout_s)

    return connect
