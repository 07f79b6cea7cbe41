"""Calm calls beside app code at its worst: how late their frames come, with and without it.

The app's callbacks loop, eat memory, print megabytes, fork and take their process down, in text
sessions of the native dialect, while telephone calls of the same server listen to a long answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from gateway.simulate.platforms.ces import PATH

APP = Path(__file__).parent.parent / "tests" / "apps" / "misbehaving"
PORT = 18098
CALLS = 20
SECONDS = 20
READY_S = 60.0
TROUBLE = (
    *("loop", "raise", "exit", "fork", "eat", "megabytes", "shout", "close", "slow", "die"),
    *("hoard", "descriptors", "threads"),
)
SCENARIO = """
caller:
  - silence: 15s
  - hangup: true
"""
SCRIPT = f"""
default:
  - say: "{" ".join(f"This is sentence number {n} of a long answer." for n in range(40))}"
"""


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gateway.cli", *words]


@contextmanager
def server(script: Path, *more: str) -> Iterator[None]:
    """A server of the misbehaving app, with `more` settings."""
    flags = (
        f"model.script={script}",
        "runtime.callback_timeout_s=2",
        "runtime.processes=2",
        "log.level=error",
        *more,
    )
    words = [word for flag in flags for word in ("--set", flag)]
    process = subprocess.Popen(
        _command("serve", "--app", str(APP), "--port", str(PORT), *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz") as answer,
            ):
                if answer.status == 200:
                    break
            time.sleep(0.2)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _trouble(number: int, stop: threading.Event) -> None:
    """One session of trouble after the other."""
    turn = number
    while not stop.is_set():
        turn += 1
        name = f"projects/p/locations/l/apps/a/sessions/trouble-{number}-{turn}"
        words = TROUBLE[turn % len(TROUBLE)]
        with (
            contextlib.suppress(OSError, WebSocketException, TimeoutError),
            connect(f"ws://127.0.0.1:{PORT}{PATH}", open_timeout=5) as socket,
        ):
            socket.send(json.dumps({"config": {"session": name}}))
            socket.send(json.dumps({"realtimeInput": {"text": words}}))
            socket.recv(timeout=5)
        stop.wait(0.5)


def late(scenario: Path, channel: str) -> dict[str, float]:
    """How late the frames of calls came to the generator that made them."""
    loaded = subprocess.run(
        _command(
            "load",
            f"http://127.0.0.1:{PORT}",
            str(scenario),
            *("--calls", str(CALLS), "--rate", "10/s", "--duration", f"{SECONDS}s"),
            *("--channel", channel, "--json"),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    figures: dict[str, float] = json.loads(loaded.stdout)["frame_late_ms"]
    return figures


def main() -> None:
    """Print the lateness of the calm calls' frames, first alone, then beside trouble."""
    with tempfile.TemporaryDirectory() as folder:
        script, scenario = Path(folder) / "script.yaml", Path(folder) / "listen.yaml"
        script.write_text(SCRIPT)
        scenario.write_text(SCENARIO)
        for name, troubled in (("calm", False), ("beside trouble", True)):
            with server(script):
                stop = threading.Event()
                threads = [
                    threading.Thread(target=_trouble, args=(number, stop))
                    for number in range(4 if troubled else 0)
                ]
                for thread in threads:
                    thread.start()
                figures = late(scenario, "twilio")
                stop.set()
                for thread in threads:
                    thread.join()
            print(f"{name}: frame late, ms: {figures}  (load {os.getloadavg()[0]:.1f})")
