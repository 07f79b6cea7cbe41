"""`voice-gateway serve`: a live gateway until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from gateway import config
from gateway.cli.banner import banner
from gateway.config import Settings
from gateway.logs import set_up
from gateway.server.app import check_port
from gateway.server.compose import running

SWITCH_INTERVAL_S = 1e-4
"""Short, so that a Python thread cannot hold the media loop up for long."""


def serve(
    app: Annotated[
        Path | None,
        typer.Option("--app", help="Folder or zip of an exported agent app; default: the demo."),
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings file (YAML).")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to bind; default 127.0.0.1.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to bind; default 8080.")] = None,
    flags: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as call.lead_ms=60; may be repeated."),
    ] = None,
) -> None:
    """Serve calls.

    voice-gateway serve

    voice-gateway serve --app my_app.zip --port 9000

    voice-gateway serve --config config/production.yaml --set server.max_calls=100
    """
    overrides: dict[str, Any] = {}
    if app is not None:
        overrides["app"] = str(app)
    server = {k: v for k, v in (("host", host), ("port", port)) if v is not None}
    if server:
        overrides["server"] = server
    settings = config.load(config_file, flags or (), overrides)
    set_up(settings.log)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    up = asyncio.Event()
    work = asyncio.create_task(_until(settings, up, stop), name="serve")
    stopped = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not up.is_set():
            # Asked to stop while the engines still load: there is no call to be polite to.
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
    finally:
        stopped.cancel()


async def _until(settings: Settings, up: asyncio.Event, stop: asyncio.Event) -> None:
    await check_port(settings)
    print("voice-gateway: starting speech engines and agent runtime …", file=sys.stderr)
    async with running(settings) as gateway:
        up.set()
        print(banner(settings, gateway.url), flush=True)
        await stop.wait()
        print("voice-gateway: ending calls …", file=sys.stderr)
    print("voice-gateway: bye", file=sys.stderr)
