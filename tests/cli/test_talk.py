"""`voice-gateway talk`: a real runtime process behind lines of text, in a pipe or a terminal."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.app import read_app
from gateway.cli.talk_input import Lines, Quit, Said, parse_line
from gateway.cli.talk_view import events_of
from gateway.demo import APP_PATH
from gateway.errors import ScenarioError
from tests.agent.talk import APPS

WAIT_S = 60
COMMAND = (sys.executable, "-m", "gateway.cli", "talk")
PROVISIONAL = "This figure is provisional."
BALANCE = "Your balance is 84 euros. It is due on the first of the month."


def talk(lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=lines,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def events(output: str, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in output.splitlines()]
    return [event for event in found if event["type"] == kind]


def test_a_talk_in_a_pipe_ends_with_the_session() -> None:
    done = talk("What is my balance?\n\nbye\nnobody hears this\n")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0].startswith("payload: ")
    assert f"agent: {BALANCE}" in shown
    assert "  get_balance {}" in shown
    assert any(line.startswith("  get_balance → {") for line in shown)
    assert shown[-1] == 'session ended: {"reason":"caller said goodbye"}'
    # Neither a prompt nor the runtime's own notes: a pipe has the agent's words alone.
    assert done.stderr == "starting Northlight Energy …\n"


def test_json_tells_of_everything() -> None:
    lines = "/set customer_name=Ann\nwhat is my balance\n/dtmf 42#"
    done = talk(lines, "--json", "--set", "log.level=info")
    assert done.returncode == 0, done.stderr
    (text,) = {event["text"] for event in events(done.stdout, "text")} - {PROVISIONAL}
    assert text == f"Ann, y{BALANCE[1:]}"
    contents = [event["payload"] for event in events(done.stdout, "payload")]
    assert any("not six digits" in str(one.get("customizedResponse")) for one in contents)
    assert "get_balance" in {event["name"] for event in events(done.stdout, "toolCall")}
    assert events(done.stdout, "agentTransfer")[0]["agent"] == "Billing"
    assert events(done.stdout, "endSession") == []
    # The start and each input that is for the agent had a turn of its own.
    assert len(events(done.stdout, "turnCompleted")) == 3
    assert "runtime.ready" in done.stderr


def test_the_end_of_the_input_waits_for_tools_that_still_run() -> None:
    done = talk("slow", "--app", str(APPS / "tools"))
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("agent: ")]
    assert said[-2] == "agent: I am on it."
    assert said[-1].startswith("agent: Done is ")


@pytest.mark.parametrize(
    ("lines", "arguments", "said"),
    [
        ("hello\n/sing\n", (), "scenario.command: there is no command /sing (line 2)\n  /dtmf 12#"),
        ("", ("--app", "nowhere"), "app.missing: no such folder or zip (nowhere)\n  "),
        ("", ("--set", "runtime.url=ws://127.0.0.1:1"), "config.value: talk runs the app itself"),
    ],
)
def test_bad_input_is_two_lines_and_exit_code_2(
    lines: str, arguments: tuple[str, ...], said: str
) -> None:
    done = talk(lines, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_has_a_prompt_and_a_wrong_command_can_be_mended() -> None:
    ours, theirs = os.openpty()
    process = subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = ""

    def until(words: str) -> None:
        nonlocal shown
        deadline = time.monotonic() + WAIT_S
        while words not in shown:
            assert select.select([ours], [], [], deadline - time.monotonic())[0], shown
            shown += os.read(ours, 1 << 16).decode()

    try:
        until("you: ")
        os.write(ours, b"/sing\n")
        until("there is no command /sing")
        os.write(ours, b"what is my balance\n")
        until(BALANCE)
        # Tool calls stand back behind the words.
        until("\x1b[2m  get_balance {}")
        os.write(ours, b"/quit\n")
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# ---- lines


def said(line: str) -> Said | Quit | None:
    return parse_line(line, read_app(APP_PATH), "#", "line 1")


def test_what_lines_mean() -> None:
    assert said("  Good day  ") == Said({"text": "Good day"}, "Good day")
    assert said("  ") is None
    assert said("/quit") == Quit()
    event = {"event": {"event": "session start"}}
    assert said("/event session start") == Said(event, "<event>session start</event>")
    assert said("/set customer_name = Ann=Lee") == Said({"variables": {"customer_name": "Ann=Lee"}})


@pytest.mark.parametrize(
    ("keys", "given"), [("12#", "12"), ("12#34", "12"), ("#", "#"), ("*1a", "*1A"), ("7", "7")]
)
def test_keys_are_collected_as_in_a_call(keys: str, given: str) -> None:
    words = f"<context>user pressed {given} on keypad.</context>"
    assert said(f"/dtmf {keys}") == Said({"dtmf": given}, words)


@pytest.mark.parametrize(
    "line", ["/dtmf", "/dtmf 12x", "/event", "/set", "/set name", "/set unknown=1", "/help"]
)
def test_lines_that_mean_nothing_say_the_way_out(line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        said(line)
    assert caught.value.code == "scenario.command"
    assert caught.value.hint


async def test_lines_come_from_pipes_and_files_alike(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"one\n\ntw\xff")
    reader, writer = os.pipe()
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.write(writer, file.read_bytes())
        os.close(writer)
        for source in (reader, descriptor):
            lines = Lines(source)
            assert [await lines.next() for _ in range(4)] == ["one", "", "tw�", None]
            assert await lines.next() is None
    finally:
        os.close(reader)
        os.close(descriptor)


async def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * (2 << 20))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        with pytest.raises(ScenarioError, match="longer than 1 MiB"):
            await Lines(descriptor).next()
    finally:
        os.close(descriptor)


def test_what_the_gateway_keeps_for_itself_is_not_shown() -> None:
    payload = {"sessionLanguage": "de-DE"}
    assert list(events_of({"sessionOutput": {"payload": payload, "turnIndex": 2}})) == []
