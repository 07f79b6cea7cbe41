"""`voice-gateway talk`: the agent in the terminal, text only."""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path
from typing import Annotated

import typer

from gateway import bidi, config, demo
from gateway.agent.app import App, read_app
from gateway.cli.output import progress, with_quiet_logs
from gateway.cli.talk_input import HELP, Lines, Quit, Said, parse_line
from gateway.cli.talk_session import TalkSession
from gateway.cli.talk_view import View
from gateway.config import Settings
from gateway.errors import ConfigError, ScenarioError
from gateway.logs import set_up
from gateway.runtime.embedded import EmbeddedRuntime

CHANNEL = "talk"
"""The dialect by which tools may be restricted here (`tools.channels`)."""
SESSION = "projects/local/locations/local/apps/local/sessions/"


def talk(
    app: Annotated[
        Path | None,
        typer.Option("--app", help="Folder or zip of an exported agent app; default: the demo."),
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings file (YAML).")
    ] = None,
    flags: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as tools.fakes=true; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line for all that happens.")
    ] = False,
) -> None:
    """Talk with the agent in the terminal, text only.

    voice-gateway talk

    voice-gateway talk --app my_app --set tools.fakes=true

    printf 'What is my balance?\\n/dtmf 12#\\n' | voice-gateway talk --json

    A line is what the caller says. /dtmf 12# presses keys, /event NAME sends an event,
    /set name=value sets a variable, /quit leaves. Exit code 0: the talk came to its end; 2: bad
    input, or the agent could not be run.
    """
    overrides = {"app": str(app)} if app is not None else {}
    settings = config.load(config_file, flags or (), overrides)
    if settings.runtime.url or settings.runtime.google.app:
        raise ConfigError(
            "config.value",
            "talk runs the app itself, and these settings name a runtime elsewhere",
            where="runtime.url" if settings.runtime.url else "runtime.google.app",
            hint="Leave it out for talk, or call the gateway with: voice-gateway call",
        )
    settings = with_quiet_logs(settings)
    set_up(settings.log)
    path = settings.app or demo.APP_PATH
    asyncio.run(_talk(path, read_app(path), settings, View(as_json)))


async def _talk(path: Path, app: App, settings: Settings, view: View) -> None:
    # The report of each turn is what tells of tool calls.
    told = settings.runtime.model_copy(update={"diagnostics": True, "processes": 1})
    progress(f"starting {app.display_name} …")
    runtime = EmbeddedRuntime(settings.model_copy(update={"runtime": told}), path)
    try:
        await runtime.start()
        link = await runtime.connect(CHANNEL)
        session = TalkSession(link, SESSION + bidi.session_part(uuid.uuid4().hex), view, settings)
        try:
            await session.open()
            await _lines(session, app, settings, view)
        finally:
            await session.aclose()
    finally:
        await runtime.aclose()


async def _lines(session: TalkSession, app: App, settings: Settings, view: View) -> None:
    """One line after the other, until the session or the input ends."""
    lines = Lines(sys.stdin.fileno())
    if view.interactive:
        progress(HELP)
    number = 0
    while not session.ended:
        view.prompt()
        line = await session.unless_ended(lines.next())
        if line is None:
            await session.settle()
            return
        number += 1
        try:
            given = parse_line(line, app, settings.call.dtmf_finish_digit, f"line {number}")
        except ScenarioError as error:
            if not view.interactive:
                raise
            progress(error.lines())
            continue
        if isinstance(given, Quit):
            return
        if isinstance(given, Said):
            await session.say(given)
