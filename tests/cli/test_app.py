"""`voice-gateway app …`: verdicts and exit codes, trees, templates, zips."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.app import commands
from gateway.config import Settings
from gateway.demo import APP_PATH
from gateway.errors import GatewayError
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import read_scenario
from tests.agent.app.check.app import GOOD, report


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(commands, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments: str | Path) -> str:
    """The code of a command's error, which the program turns into exit code 2."""
    with pytest.raises(GatewayError) as caught:
        run(*arguments)
    assert caught.value.where
    return caught.value.code


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    folder = tmp_path / "broken"
    report(folder, {"agents/Main/instruction.txt": "{@TOOL: lookup}\n{unknown}\n"})
    return folder


# ---- check


def test_the_demo_passes_the_check() -> None:
    result = run("check", APP_PATH)
    assert result.exit_code == 0
    assert result.stdout == f"✓ {APP_PATH}: no errors, no warnings\n"


def test_each_problem_is_two_lines_and_the_exit_code_tells(broken: Path) -> None:
    result = run("check", broken)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "agents/Main/instruction.txt:1: error app.reference: there is no tool 'lookup'"
    )
    assert lines[1].startswith("  Did you mean 'look_up'?")
    assert lines[-1] == f"✗ {broken}: 1 error, 1 warning"


def test_warnings_fail_a_strict_check_only(tmp_path: Path) -> None:
    report(tmp_path, {"agents/Main/instruction.txt": "{unknown}\n"})
    assert run("check", tmp_path).exit_code == 0
    assert run("check", tmp_path, "--strict").exit_code == 1


def test_a_check_in_json(broken: Path) -> None:
    result = run("check", broken, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["ok"], found["errors"], found["warnings"]) == (False, 1, 1)
    assert found["problems"][0].keys() == {"code", "severity", "file", "line", "message", "hint"}
    assert json.loads(run("check", APP_PATH, "--json").stdout)["ok"] is True


def test_no_app_is_bad_input(tmp_path: Path) -> None:
    assert refused("check", tmp_path) == "app.no_app_file"
    assert refused("check", tmp_path / "none") == "app.missing"
    (tmp_path / "a.zip").write_text("no zip")
    assert refused("check", tmp_path / "a.zip") == "app.zip"


# ---- show


def test_the_tree_has_agents_tools_callbacks_and_voices() -> None:
    lines = [line.strip(" │├└─") for line in run("show", APP_PATH).stdout.splitlines()]
    assert lines[0] == "Northlight Energy"
    assert "en-US en-US-Chirp3-HD-Aoede at 1" in lines
    assert "root agent Front Desk" in lines
    assert "agent Billing" in lines
    assert "tool book_engineer pythonFunction, asynchronous" in lines
    assert "tool end_session of the platform" in lines
    assert "before_model greeting" in lines
    # A shared agent is drawn in full once.
    assert lines.count("agent Escalation") == 3
    assert lines.count("see above") == 2


def test_the_tree_shows_all_kinds_of_things_and_names_as_they_are(tmp_path: Path) -> None:
    report(
        tmp_path,
        {
            "app.yaml": GOOD["app.yaml"].replace("X", "'[red]X[/]'")
            + "guardrails: [G]\ndefaultChannelProfile: {disableBargeInControl: true}\n"
            "audioProcessingConfig:\n"
            "  ambientSoundConfig: {prebuiltAmbientSound: hum, volumeGainDb: -6}\n",
            "agents/Main/Main.yaml": GOOD["agents/Main/Main.yaml"].replace("look_up, ", "gone, ")
            + "toolsets: [{toolset: S}]\nguardrails: [G]\nmodelSettings: {model: m}\n",
            "toolsets/s/s.yaml": "displayName: S\n",
            "guardrails/g/g.yaml": "displayName: G\ncontentFilter: {}\n",
            "agents/B/B.yaml": "displayName: B\nchildAgents: [Main]\n",
        },
    )
    text = run("show", tmp_path).stdout
    for words in (
        "[red]X[/]",
        "background hum at -6 dB",
        "cannot be interrupted",
        "tool gone missing",
        "tools of no agent 1",
        "toolset S: all operations",
        "guardrails G",
        "model m",
        "agent B",
    ):
        assert words in text, words


def test_the_tree_in_json() -> None:
    shown = json.loads(run("show", APP_PATH, "--json").stdout)
    assert shown["rootAgent"] == "Front Desk"
    assert shown["inactivitySeconds"] == 8.0
    assert shown["voices"] == {"en-US": {"voice": "en-US-Chirp3-HD-Aoede", "speakingRate": 1.0}}
    assert "Escalation" in shown["agents"]["Billing"]["childAgents"]
    assert shown["tools"]["book_engineer"]["asynchronous"] is True


# ---- init


def test_a_new_app_passes_the_check_and_has_its_folders_name(tmp_path: Path) -> None:
    folder = tmp_path / "service_line"
    result = run("init", folder)
    assert result.exit_code == 0
    assert f"voice-gateway serve --app {folder}" in result.stderr
    checked = json.loads(run("check", folder, "--json").stdout)
    assert checked["problems"] == []
    assert json.loads(run("show", folder, "--json").stdout)["displayName"] == "service line"
    run("init", tmp_path / "other", "--name", "No: 1")
    assert json.loads(run("show", tmp_path / "other", "--json").stdout)["displayName"] == "No: 1"


def test_a_new_app_never_replaces_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert refused("init", tmp_path) == "app.exists"


def test_a_new_app_takes_a_call(tmp_path: Path) -> None:
    run("init", tmp_path / "line")
    scenario = read_scenario(tmp_path / "line/scenarios/opening_hours.yaml")
    result = Simulator(Settings()).run(scenario, None, "twilio")
    assert result.ok, [str(verdict) for verdict in result.verdicts]


# ---- pack and unpack


def test_unpack_pack_unpack_is_lossless(tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    assert run("pack", APP_PATH, first).exit_code == 0
    run("unpack", first, tmp_path / "one")
    run("pack", tmp_path / "one", second)
    assert first.read_bytes() == second.read_bytes()
    for path in APP_PATH.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            copy = tmp_path / "one" / path.relative_to(APP_PATH)
            assert copy.read_bytes() == path.read_bytes()


def test_either_format_can_be_asked_for(tmp_path: Path) -> None:
    run("pack", APP_PATH, tmp_path / "a.zip", "--format", "json")
    run("unpack", tmp_path / "a.zip", tmp_path / "as_packed")
    assert (tmp_path / "as_packed/agents/Billing/Billing.json").is_file()
    run("unpack", tmp_path / "a.zip", tmp_path / "yaml", "--format", "yaml")
    assert (tmp_path / "yaml/app.yaml").is_file()
    assert run("check", tmp_path / "yaml").exit_code == 0


def test_without_a_target_the_names_are_those_of_the_app_and_the_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = json.loads(run("pack", APP_PATH, "--json").stdout)
    assert packed["path"] == "Northlight_Energy.zip"
    unpacked = json.loads(run("unpack", "Northlight_Energy.zip", "--json").stdout)
    assert unpacked == {"path": "Northlight_Energy", "files": packed["files"]}


def test_what_is_there_stays(tmp_path: Path) -> None:
    target = tmp_path / "a.zip"
    run("pack", APP_PATH, target)
    before = target.stat().st_mtime_ns
    assert refused("pack", APP_PATH, target) == "app.exists"
    assert target.stat().st_mtime_ns == before
    assert run("pack", APP_PATH, target, "--force").exit_code == 0
    assert refused("unpack", target, tmp_path) == "app.exists"
    # A folder's default target is the folder itself, which is not what is wrong then.
    for folder in (tmp_path, tmp_path / "new"):
        assert refused("unpack", APP_PATH, folder) == "app.zip"
    assert refused("pack", tmp_path, tmp_path / "b.zip") == "app.no_app_file"


def test_help_begins_with_examples() -> None:
    for command in ("check", "show", "init", "pack", "unpack"):
        text = run(command, "--help").stdout
        assert f"voice-gateway app {command} " in text.split("Options:")[0]
