"""The command line: `voice-gateway COMMAND`. Exit codes: 0 good, 1 verdict failed, 2 bad input."""

from __future__ import annotations

import sys

import typer

from gateway import __version__
from gateway.cli import app as app_commands
from gateway.cli import call, load, serve, simulate
from gateway.errors import GatewayError

BAD_INPUT = 2

app = typer.Typer(
    name="voice-gateway",
    help="""A voice for agent applications on telephone platforms.

    voice-gateway serve                              a live agent on http://127.0.0.1:8080

    voice-gateway simulate scenario.yaml --out out   a whole call, in virtual time, with a report

    voice-gateway call http://127.0.0.1:8080 scenario.yaml --channel twilio

    voice-gateway app init my_app                    an agent app to start from
    """,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("simulate")(simulate.simulate)
app.command("call")(call.call)
app.command("load")(load.load)
app.add_typer(app_commands.commands)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"voice-gateway {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Options of every command."""


def main() -> None:
    """Run the command line; expected failures are two lines on standard error."""
    try:
        app()
    except GatewayError as error:
        print(error.lines(), file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(130)
