"""Calls of a server beside a flood of newcomers: how late their frames come, with and without it.

The flood comes from a process of its own: a thousand websocket upgrades a second, in bursts of a
hundred. All lines of the server are taken by calls, so that none is admitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.isolation import CALLS, PORT, SCRIPT, late, server
from gateway.simulate.platforms.ces import PATH

BURST = 100
EVERY_S = 0.1
LISTEN = """
caller:
  - silence: 30s
  - hangup: true
"""
ANSWER_S = 5.0
RUNS = 3
UPGRADE = (
    f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
).encode()


async def _knock(answers: Counter[str]) -> None:
    """One newcomer, to the first line of its answer."""
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
            with contextlib.closing(writer):
                writer.write(UPGRADE)
                line = await reader.readline()
                answers[line.decode().partition(" ")[2][:3] or "closed"] += 1
    except (OSError, TimeoutError) as error:
        answers[type(error).__name__] += 1


async def _flood() -> None:
    """Once the calls are there, knock until standard input closes; say what the answers were."""
    loop = asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    answers: Counter[str] = Counter()
    while not answers["503"]:
        await asyncio.sleep(EVERY_S)
        await _knock(answers)
    knocking: set[asyncio.Task[None]] = set()
    while not over.done():
        for _ in range(BURST):
            task = asyncio.create_task(_knock(answers))
            knocking.add(task)
            task.add_done_callback(knocking.discard)
        await asyncio.sleep(EVERY_S)
    await asyncio.gather(*knocking)
    print(dict(answers))


def main() -> None:
    """Print the lateness of the calls' frames, first alone, then beside the flood."""
    with tempfile.TemporaryDirectory() as folder:
        script, scenario = Path(folder) / "script.yaml", Path(folder) / "listen.yaml"
        script.write_text(SCRIPT)
        scenario.write_text(LISTEN)
        for name in ("calm", *["beside a flood"] * RUNS):
            with server(script, f"server.max_calls={CALLS}"):
                flood = None
                if name != "calm":
                    flood = subprocess.Popen(
                        [sys.executable, "-m", "bench.flood"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                figures = late(scenario, "twilio")
                told = flood.communicate()[0].strip() if flood is not None else "nobody"
            load = os.getloadavg()[0]
            print(f"{name}: frame late, ms: {figures}  (answers: {told}; load {load:.1f})")


if __name__ == "__main__":
    asyncio.run(_flood())
