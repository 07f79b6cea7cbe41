"""Pacing at 100 Twilio calls: the server on one core, the load generator on the other.

`frame late`: how late frames arrive against each call's own 20 ms grid, measured by the
generator; `left late`: how late the server's ticks ran, from its /metrics.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from gateway import demo

CALLS = 100
PORT = 18099
URL = f"http://127.0.0.1:{PORT}"
READY_S = 60.0
BAR = 0.99


def _pin(core: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gateway.cli", *words]


def _wait_ready() -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{URL}/readyz") as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise SystemExit("the server did not become ready")


def _metric(name: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{URL}/metrics") as answer:
        text = answer.read().decode()
    return {
        match[1] or "": float(match[2])
        for match in re.finditer(rf"^{name}(?:\{{(.*?)\}})? (\S+)$", text, re.MULTILINE)
    }


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the share of frames within 10 ms of their due time, and CPU a frame pair."""
    scenario = Path(__file__).parent / "greeting_load.yaml"
    server = subprocess.Popen(
        _command("serve", "--port", str(PORT), "--set", "log.level=error"),
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: _pin(0),
    )
    try:
        _wait_ready()
        cpu = _cpu_s(server.pid)
        begun = time.monotonic()
        loaded = subprocess.run(
            _command(
                "load",
                URL,
                str(scenario),
                "--calls",
                str(CALLS),
                "--rate",
                "16/s",
                "--duration",
                "25s",
                "--channel",
                "twilio",
                "--json",
            ),
            stdout=subprocess.PIPE,
            preexec_fn=lambda: _pin(1),
            check=False,
        )
        seconds = time.monotonic() - begun
        used = _cpu_s(server.pid) - cpu
        result = json.loads(loaded.stdout)
        ticks = _metric("voice_gateway_frame_late_seconds_bucket")
        total = ticks.get('le="+Inf"', 0.0)
        print(f"demo app {demo.APP_PATH.name}, {CALLS} calls, {seconds:.0f} s")
        print(json.dumps(result, indent=2))
        if total:
            share = ticks.get('le="0.01"', 0.0) / total
            print(f"ticks within 10 ms of their due time: {share:.2%} of {total:.0f}")
            print(f"server CPU: {used / total * 1e6:.0f} µs a tick (one frame each way)")
        print(f"server CPU share: {used / seconds:.0%} of its core")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
