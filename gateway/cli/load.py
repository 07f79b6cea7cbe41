"""`voice-gateway load`: many calls at once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Annotated

import orjson
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from gateway import config
from gateway.cli.output import FAILED, progress, show_json
from gateway.errors import ScenarioError
from gateway.load import LoadPlan, LoadResult
from gateway.load import load as load_server
from gateway.load.result import Spread, Tally
from gateway.logs import set_up
from gateway.simulate.platforms.access import Access
from gateway.simulate.report import check_folder
from gateway.simulate.scenario import read_scenario

_NUMBER = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m)?$")
_RATE = re.compile(r"^(\d+(?:\.\d+)?)(?:/s)?$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def load(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server: http://host:port.")],
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file (YAML).")],
    calls: Annotated[int, typer.Option("--calls", help="Calls at once.")],
    rate: Annotated[str, typer.Option("--rate", help="New calls a second.")] = "10/s",
    duration: Annotated[
        str | None,
        typer.Option("--duration", help="Keep so many calls up for so long; default: once each."),
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Any dialect; default: the scenario's.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for result.json.")] = None,
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
    """Make many real calls at once and measure how they are served.

    voice-gateway load http://127.0.0.1:8080 greeting.yaml --calls 100 --rate 20/s

    voice-gateway load http://127.0.0.1:8080 greeting.yaml --calls 200 --duration 5m

    Callers here have ears only: a wait for words or events is a wait until the agent is quiet.
    Expectations are not judged. Exit code 0: every call was let in and ended well; 1: not so, or
    the generator was too busy for its figures to count; 2: bad input.
    """
    read = read_scenario(scenario)
    plan = LoadPlan(calls, _rate(rate), _seconds(duration))
    access = Access(url, token, secret, key)
    settings = config.load(config_file)
    set_up(settings.log)
    if out is not None:
        check_folder(out)
    progress(f"loading {url} with {calls} calls of {read.name} …")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(load_server(access, read, plan, channel, settings, _progress))
    if out is not None:
        _write(result, out)
    if as_json:
        show_json(result.to_json())
    else:
        _show(result)
    if not result.ok:
        raise typer.Exit(FAILED)


def _rate(text: str) -> float:
    match = _RATE.match(text)
    if match is None:
        raise ScenarioError("scenario.rate", f"not a rate: {text!r}", hint="--rate 10/s")
    return float(match[1])


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = _NUMBER.match(text)
    if match is None:
        raise ScenarioError("scenario.duration", f"not a duration: {text!r}", hint="--duration 60s")
    return float(match[1]) * _UNITS[match[2] or "s"]


def _progress(tally: Tally) -> None:
    refused, failed = sum(tally.refused.values()), sum(tally.failed.values())
    progress(
        f"active {tally.active}, completed {tally.completed}, refused {refused}, failed {failed}"
    )


def _write(result: LoadResult, out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        document = orjson.dumps(result.to_json(), option=orjson.OPT_INDENT_2)
        (out / "result.json").write_bytes(document + b"\n")
    except OSError as error:
        raise ScenarioError("scenario.out", f"cannot write: {error}", where=str(out)) from None


def _show(result: LoadResult) -> None:
    console = Console()
    console.print(
        f"{result.completed} of {result.started} calls completed, "
        f"{result.most_active} at once, {result.seconds:.1f} s, {result.channel}"
    )
    table = Table("milliseconds", "count", "p50", "p95", "p99", "p99.9", "max")
    rows: list[tuple[str, Spread]] = [
        ("connect", result.connect),
        ("first audio", result.first_audio),
        ("frame late", result.frame_late),
        ("stalls", result.stalls),
        ("generator late", result.own_late),
    ]
    for name, spread in rows:
        values = (spread.p50_ms, spread.p95_ms, spread.p99_ms, spread.p999_ms, spread.max_ms)
        table.add_row(name, str(spread.count), *(f"{value:.1f}" for value in values))
    console.print(table)
    console.print(f"frames within 10 ms of their time: {result.frames_within_10_ms:.2%}")
    console.print(f"generator: {result.cpu_share:.0%} of a core")
    for name, counts in (("refused", result.refused), ("failed", result.failed)):
        for what, count in counts.items():
            console.print(f"{name}: {count} × {what}")
    for reason in result.void:
        console.print(f"void: {reason}")
    console.print("✓ good" if result.ok else "✗ not good")
