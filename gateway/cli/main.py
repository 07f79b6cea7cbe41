"""The command line: `voice-gateway COMMAND`. Exit codes: 0 good, 1 verdict failed, 2 bad input."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import typer

from gateway import __version__
from gateway.errors import GatewayError

BAD_INPUT: Final = 2
COMMANDS: Final = ("serve", "simulate", "call", "load", "app", "talk")

HELP: Final = """A voice for agent applications on telephone platforms.

    voice-gateway serve                              a live agent on http://127.0.0.1:8080

    voice-gateway simulate scenario.yaml --out out   a whole call, in virtual time, with a report

    voice-gateway call http://127.0.0.1:8080 scenario.yaml --channel twilio

    voice-gateway talk                               the agent in the terminal, text only

    voice-gateway app init my_app                    an agent app to start from
"""


def _version(show: bool) -> None:
    if show:
        typer.echo(f"voice-gateway {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Options of every command."""


def build(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands; each brings libraries that the others need not load."""
    line = typer.Typer(
        name="voice-gateway",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    line.callback(help=as_typed(HELP))(_options)
    for name in commands:
        module = import_module(f"gateway.cli.{name}")
        if name == "app":
            group: typer.Typer = module.commands
            _keep_examples(group)
            line.add_typer(group, help=as_typed(group.info.help or ""))
        else:
            line.command(name)(getattr(module, name))
    _keep_examples(line)
    return line


def _keep_examples(group: typer.Typer) -> None:
    for command in group.registered_commands:
        if command.callback is not None:
            command.help = as_typed(command.callback.__doc__ or "")


def as_typed(text: str) -> str:
    """A help text whose examples stay whole lines: what is broken in two cannot be copied."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    blocks: list[str] = []
    for example, group in itertools.groupby(paragraphs, lambda words: "voice-gateway " in words):
        if example:
            # The mark by which click leaves a paragraph as it is.
            blocks.append("\b\n" + "\n".join(line.strip() for line in group))
        else:
            blocks += group
    return "\n\n".join(blocks)


def main() -> None:
    """Run the command line; expected failures are two lines on standard error."""
    first = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    commands = [first] if first in COMMANDS else () if "--version" in sys.argv else COMMANDS
    try:
        build(commands)()
    except GatewayError as error:
        print(error.lines(), file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(130)
