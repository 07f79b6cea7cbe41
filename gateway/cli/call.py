"""`voice-gateway call`: one scenario over the real wire, in real time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from gateway import config
from gateway.cli.output import finish, progress, show
from gateway.logs import set_up
from gateway.simulate.platforms.access import Access
from gateway.simulate.report import check_folder, write_report
from gateway.simulate.scenario import read_scenario
from gateway.simulate.wire import call as call_over_wire


def call(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server: http://host:port.")],
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).")],
    channel: Annotated[
        str | None, typer.Option("--channel", help="Any dialect; default: the scenario's.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for wav, timeline, report and result."),
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="VOICE_GATEWAY_TOKEN",
            help="Bearer token of the server.",
            show_envvar=True,
        ),
    ] = "",
    secret: Annotated[
        str,
        typer.Option(
            "--secret",
            "--twilio-auth-token",
            envvar=["VOICE_GATEWAY_PLATFORM_SECRET", "TWILIO_AUTH_TOKEN"],
            help="What the platform proves itself with: auth token, signing key or password.",
            show_envvar=True,
        ),
    ] = "",
    key: Annotated[
        str,
        typer.Option("--key", help="Who the platform says it is: user, API key or application."),
    ] = "",
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings file (YAML).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Make one real call to a running server and judge it.

    voice-gateway call http://127.0.0.1:8080 greeting.yaml

    voice-gateway call http://127.0.0.1:8080 greeting.yaml --channel twilio --out out

    The server's timeline is followed, so the server must share it (it does on a loopback bind).
    `as:` in a scenario has no effect here: the server's recogniser hears the speech itself.
    Exit code 0: all expectations hold; 1: one fails; 2: bad input or no connection.
    """
    read = read_scenario(scenario)
    access = Access(url, token, secret, key)
    settings = config.load(config_file)
    set_up(settings.log)
    if out is not None:
        check_folder(out)
    progress(f"calling {url} with {read.name} …")
    result = asyncio.run(call_over_wire(access, read, channel, settings))
    if out is not None:
        write_report(result, out)
        progress(f"report: {out / 'report.html'}")
    if not as_json:
        show(result)
    finish([result], as_json, several=False)
