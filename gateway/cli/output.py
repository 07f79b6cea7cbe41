"""What the calling commands print: verdicts for people on standard output, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import typer

from gateway.config import Settings
from gateway.simulate.result import RunResult

FAILED = 1


def progress(words: str) -> None:
    """One line for who waits."""
    print(words, file=sys.stderr, flush=True)


def show(result: RunResult) -> None:
    """The verdicts of one call."""
    log = result.log
    typer.echo(
        f"{log.scenario.name} on {log.channel}: {log.seconds:.1f} s, ended {log.ended or 'unknown'}"
    )
    for verdict in result.verdicts:
        typer.echo(f"  {verdict}")


def show_json(value: object) -> None:
    """One JSON document."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def finish(results: Sequence[RunResult], as_json: bool, several: bool) -> None:
    """Print what was not printed yet and leave with the exit code of the verdicts."""
    if as_json:
        documents = [result.to_json() for result in results]
        show_json(documents if several else documents[0])
    elif several:
        good = sum(1 for result in results if result.ok)
        typer.echo(f"{good} of {len(results)} scenarios hold")
    if not all(result.ok for result in results):
        raise typer.Exit(FAILED)


def folder_for(out: Path, result: RunResult, several: bool) -> Path:
    """Where a call's report goes: `out` itself, or one folder a scenario."""
    return out / result.log.scenario.name if several else out


def with_quiet_logs(settings: Settings) -> Settings:
    """The settings with warnings and errors alone in the log, where they do not say otherwise.

    Notes of the runtime's life would stand among the lines that the command is there for.
    """
    if "level" in settings.log.model_fields_set:
        return settings
    return settings.model_copy(update={"log": settings.log.model_copy(update={"level": "warning"})})
