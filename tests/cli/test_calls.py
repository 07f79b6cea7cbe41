"""The calling commands: results on standard output, progress beside it, and exit codes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from gateway.cli.main import build
from gateway.demo import APP_PATH
from gateway.errors import ScenarioError

GOOD = "caller: [{wait: agent_quiet}, {hangup: true}]\nexpect: [{heard: welcome}]\n"
BAD = "caller: [{hangup: true}]\nexpect: [{heard: never said}]\n"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command configures logging for its whole process; here that is the tests' own."""
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    paths = {}
    for name, text in {"good": GOOD, "bad": BAD, "wrong": "caller: [{sing: la}]"}.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        paths[name] = str(path)
    return paths


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments))


def test_a_scenario_that_holds(files: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("simulate", files["good"], "--channel", "twilio", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "✓ heard: welcome" in result.stdout
    assert "simulating good" in result.stderr
    assert "simulating" not in result.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "call.wav",
        "report.html",
        "result.json",
        "timeline.jsonl",
    ]


def test_one_of_two_that_fails(files: dict[str, str], tmp_path: Path) -> None:
    result = run("simulate", files["good"], files["bad"], "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "✗ heard: never said" in result.stdout
    assert "1 of 2 scenarios hold" in result.stdout
    assert (tmp_path / "out" / "good" / "report.html").exists()
    assert (tmp_path / "out" / "bad" / "report.html").exists()


def test_json_is_the_only_thing_on_standard_output(files: dict[str, str]) -> None:
    result = run("simulate", files["bad"], "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ok"] is False
    several = run("simulate", files["good"], files["bad"], "--json")
    assert [one["ok"] for one in json.loads(several.stdout)] == [True, False]


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "nowhere.yaml"),
        ("simulate", "WRONG"),
        ("call", "127.0.0.1", "GOOD"),
        ("call", "http://127.0.0.1:1", "GOOD"),
        ("load", "http://127.0.0.1:1", "GOOD", "--calls", "0"),
        ("load", "http://127.0.0.1:1", "GOOD", "--calls", "1", "--rate", "fast"),
        ("load", "http://127.0.0.1:1", "GOOD", "--calls", "1", "--duration", "long"),
    ],
)
def test_bad_input_is_exit_code_2(
    arguments: tuple[str, ...],
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gateway.cli.main import main

    names = {"GOOD": files["good"], "WRONG": files["wrong"]}
    monkeypatch.setattr("sys.argv", ["voice-gateway", *(names.get(a, a) for a in arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "GOOD"),
        ("call", "http://127.0.0.1:1", "GOOD"),
        ("load", "http://127.0.0.1:1", "GOOD", "--calls", "1"),
        ("app", "evaluate", str(APP_PATH)),
    ],
)
def test_an_out_that_cannot_be_written_is_told_before_the_work(
    arguments: tuple[str, ...], files: dict[str, str]
) -> None:
    out = files["good"] + "/out"
    words = [files["good"] if word == "GOOD" else word for word in arguments]
    result = run(*words, "--out", out)
    assert isinstance(result.exception, ScenarioError)
    assert (result.exception.code, result.exception.where) == ("scenario.out", out)
    assert "simulating" not in result.stderr
    assert "ing http" not in result.stderr


def test_a_variable_that_nobody_declares_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "named.yaml"
    path.write_text("variables: {customer_name: Ann, nick: A}\n" + GOOD)
    result = run("simulate", str(path))
    assert result.exit_code == 0
    warnings = [line for line in result.stderr.splitlines() if "declares no variable" in line]
    assert warnings == [f"{path}: the app declares no variable 'nick': it will not take it"]


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("", "simulate scenario.yaml --out out   a whole call, in virtual time, with a report"),
        ("serve", "serve --config config/production.yaml --set server.max_calls=100"),
        ("load", "load http://127.0.0.1:8080 greeting.yaml --calls 200 --duration 5m"),
        ("app", "unpack my_app.zip my_app && voice-gateway app pack my_app my_app2.zip"),
        ("app evaluate", "app evaluate my_app --name balance --junit junit.xml"),
    ],
)
def test_examples_in_help_are_whole_lines(
    command: str, example: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert example in run(*command.split(), "--help").stdout


@pytest.mark.parametrize("command", ["simulate", "call", "load"])
def test_help_begins_with_what_to_type(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    head = result.stdout.partition("Options")[0]
    assert f"voice-gateway {command} " in head


def test_a_load_that_reaches_nobody_is_a_failed_verdict(files: dict[str, str]) -> None:
    result = run("load", "http://127.0.0.1:1", files["good"], "--calls", "1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"] == {"runtime.unreachable": 1}
    shown = run("load", "http://127.0.0.1:1", files["good"], "--calls", "1")
    assert "failed: 1 × runtime.unreachable" in shown.stdout
