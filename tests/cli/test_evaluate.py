"""`voice-gateway app evaluate`: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import junitparser
import pytest
from typer.testing import CliRunner, Result

from gateway.cli.app import commands
from gateway.demo import TEMPLATE_PATH
from gateway.errors import AppError, GatewayError
from tests.agent.talk import APPS

GOLDENS = APPS / "goldens"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(commands, ["evaluate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_new_app_passes_its_own_evaluations(tmp_path: Path) -> None:
    result = run(TEMPLATE_PATH, "--dataset", "Smoke", "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "2 of 2 evaluations passed"
    assert result.stderr.splitlines() == [
        "evaluating A person (1 of 2) …",
        "evaluating Opening hours (2 of 2) …",
    ]
    written = json.loads((tmp_path / "result.json").read_text())
    assert (written["passed"], written["channel"]) == (2, "text")
    assert junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml")).tests == 2


def test_a_difference_is_exit_code_1_in_the_table_and_in_json(tmp_path: Path) -> None:
    junit = tmp_path / "new/junit.xml"
    result = run(GOLDENS, "--name", "^Bad num", "--name", "^Good card", "--json", "--junit", junit)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["passed"], report["failed"], report["not_run"]) == (1, 1, 0)
    bad = report["evaluations"][0]
    assert bad["where"] == "evaluations/Bad_number/Bad_number.yaml:2"
    assert bad["turns"][0]["lines"][1]["difference"][1:] == [
        "expected: Parcel 4712 comes on Monday.",
        "got:      Parcel 4711 comes on Monday.",
    ]
    assert junitparser.JUnitXml.fromfile(str(junit)).failures == 1


def test_what_is_not_run_fails_a_strict_run_only() -> None:
    arguments = (GOLDENS, "--name", "^Good card", "--name", "^Not heard")
    assert run(*arguments).exit_code == 0
    assert run(*arguments, "--strict").exit_code == 1


def test_where_nothing_can_be_run_the_command_says_why() -> None:
    with pytest.raises(AppError) as caught:
        run(GOLDENS, "--name", "^Scenario")
    assert caught.value.code == "evaluation.not_run"
    assert "no language model" in (caught.value.hint or "")


def test_a_result_that_cannot_be_written_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place, code in (("file/junit.xml", "scenario.out"), ("", "evaluation.output")):
        with pytest.raises(GatewayError) as caught:
            run(GOLDENS, "--name", "^Good card", "--junit", tmp_path / place)
        assert caught.value.code == code
        assert str(tmp_path) in (caught.value.where or "")
