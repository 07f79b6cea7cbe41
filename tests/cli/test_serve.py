"""`voice-gateway serve` that cannot start: two lines on standard error, exit code 2."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.banner import banner
from gateway.config import load
from tests.agent.app.check.app import report

WAIT_S = 60
FAR = "projects/p/locations/us/apps/a"


def serve(*arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def test_an_app_whose_code_is_broken(tmp_path: Path) -> None:
    code = "tools/look_up/code.py"
    report(tmp_path / "app", {code: "def look_up(:\n"})
    status, lines = serve("--app", str(tmp_path / "app"), "--port", "0")
    assert status == 2
    told = [line for line in lines if not line.startswith("voice-gateway: starting")]
    assert told == [
        f"app.syntax: Python syntax: invalid syntax ({code}:1)",
        "  All problems of an app at once: voice-gateway app check PATH",
    ]


def test_a_port_that_is_taken_is_told_before_the_engines_load() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, lines = serve("--port", str(port))
    assert status == 2
    assert lines[0].startswith(f"config.port: cannot listen on 127.0.0.1:{port}: ")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "the demo app"),
        ({"app": "my_app"}, "my_app"),
        ({"runtime": {"url": "wss://agents.example/x"}}, "wss://agents.example/x"),
        ({"runtime": {"google": {"app": FAR}}}, FAR),
        ({"app": "my_app", "runtime": {"google": {"app": FAR}}}, FAR),
    ],
)
def test_the_first_lines_say_who_answers(settings: dict[str, Any], named: str) -> None:
    first, *rest = banner(load(overrides=settings), "http://127.0.0.1:8080").splitlines()
    assert named in first
    assert any("barge_in.yaml" in line for line in rest) == (not settings)
