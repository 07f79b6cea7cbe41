"""`voice-gateway app evaluate`: the app's evaluations, in text or as simulated phone calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from gateway import config
from gateway.agent.app.evaluations import Method
from gateway.cli.output import FAILED, progress, show_json, with_quiet_logs
from gateway.errors import AppError
from gateway.evaluate.junit import to_junit
from gateway.evaluate.result import TEXT, Report, Verdict
from gateway.evaluate.table import report_table
from gateway.logs import set_up


def evaluate(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Folder or zip of an exported agent app.")
    ],
    channel: Annotated[
        str, typer.Option("--channel", help="text, or a dialect: a simulated phone call.")
    ] = TEXT,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Only evaluations whose name matches; may be repeated."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Only the members of this dataset.")
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(
            "--method",
            help="In text: naive, one session; stable, each turn by itself, after the turns before "
            "it as they should have gone. Default: the app's.",
        ),
    ] = None,
    as_text: Annotated[
        bool,
        typer.Option("--as-text", help="In calls: the recogniser gives the words as written."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="What could not be run fails, too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for result.json, junit.xml and reports of calls."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the result as JUnit XML.")
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings file (YAML).")
    ] = None,
    flags: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as tools.fakes=true; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run an app's evaluations and show where the agent does otherwise.

    voice-gateway app evaluate my_app

    voice-gateway app evaluate my_app --channel twilio --out out

    voice-gateway app evaluate my_app --name balance --junit junit.xml

    Golden evaluations are replayed turn by turn; scenarios need a language model that plays the
    user and judges. Exit code 0: nothing failed; 1: something failed (with --strict: or was not
    run); 2: bad input, or nothing at all could be run.
    """
    # Speech engines and simulator, which the other commands need not load.
    from gateway.evaluate.run import Options
    from gateway.evaluate.run import evaluate as run_evaluations
    from gateway.simulate.report import check_folder

    settings = with_quiet_logs(config.load(config_file, flags or ()))
    set_up(settings.log)
    for folder in (out, junit.parent if junit is not None else None):
        if folder is not None:
            check_folder(folder)
    options = Options(channel, method, names or (), dataset, as_text, out)
    report = run_evaluations(path, settings, options, progress)
    document = orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2)
    if out is not None:
        _write(out / "result.json", document)
        _write(out / "junit.xml", to_junit(report))
    if junit is not None:
        _write(junit, to_junit(report))
    if as_json:
        show_json(report.to_json())
    else:
        Console(highlight=False).print(report_table(report))
        typer.echo(report.summary)
    _leave(report, strict)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise AppError(
            "evaluation.output", f"cannot write the result: {error.strerror}", where=str(path)
        ) from None


def _leave(report: Report, strict: bool) -> None:
    not_run = report.count(Verdict.NOT_RUN)
    if not_run == len(report.results):
        reasons = dict.fromkeys(result.reason for result in report.results if result.reason)
        raise AppError(
            "evaluation.not_run",
            "nothing could be run",
            where=report.app,
            hint="; ".join(reasons) or "See the lines above.",
        )
    if report.count(Verdict.FAILED) or (strict and not_run):
        raise typer.Exit(FAILED)
