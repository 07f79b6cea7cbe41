"""`voice-gateway simulate`: whole calls in this process, in virtual time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from gateway import config
from gateway.cli.output import finish, folder_for, progress, show
from gateway.logs import set_up
from gateway.simulate.report import check_folder, write_report
from gateway.simulate.result import RunResult
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import read_scenario, undeclared


def simulate(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO…", help="Scenario files (YAML).")
    ],
    app: Annotated[
        Path | None,
        typer.Option("--app", help="Folder or zip of an exported agent app; default: the demo."),
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Any dialect; default: the scenario's.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for wav, timeline, report and result."),
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Settings file (YAML).")
    ] = None,
    flags: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, such as call.lead_ms=60; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run whole calls in this process, in virtual time, and judge them.

    voice-gateway simulate greeting.yaml

    voice-gateway simulate greeting.yaml --channel twilio --out out

    voice-gateway simulate scenarios/*.yaml --app my-app.zip --json

    Speech, agent and call engine are the real ones; the caller, the telephone platform and the
    clock are simulated. Exit code 0: all expectations hold; 1: one fails; 2: bad input.
    """
    read = [read_scenario(path) for path in scenarios]
    settings = config.load(config_file, flags or ())
    set_up(settings.log)
    if out is not None:
        check_folder(out)
    simulator = Simulator(settings)
    several = len(read) > 1
    results: list[RunResult] = []
    for scenario in read:
        known = {*simulator.app_of(scenario, app).variable_declarations}
        for warning in undeclared(scenario, known | {settings.call.language_variable}):
            progress(warning)
        begun = time.monotonic()
        progress(f"simulating {scenario.name} …")
        result = simulator.run(scenario, app, channel)
        took = time.monotonic() - begun
        progress(f"simulated {result.log.seconds:.1f} s of call in {took:.1f} s")
        results.append(result)
        if out is not None:
            folder = folder_for(out, result, several)
            write_report(result, folder)
            progress(f"report: {folder / 'report.html'}")
        if not as_json:
            show(result)
    finish(results, as_json, several)
