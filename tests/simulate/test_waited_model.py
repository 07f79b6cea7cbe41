"""A simulated call whose agent asks a model over the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.config import Settings
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import parse_scenario
from tests.agent.made import make_app
from tests.agent.models.service import Service, service
from tests.agent.models.test_openai import DONE, ended, said

SLOW_S = 0.5
SCENARIO = """
channel: twilio
caller:
  - wait: {heard: first, timeout: 10s}
  - wait: {heard: second, timeout: 10s}
  - hangup: true
expect:
  - heard: "first one.*second one"
"""


@contextmanager
def _service() -> Iterator[Service]:
    """The service in a loop of its own: the simulator does not share its thread."""
    ready = threading.Event()
    made: list[tuple[Service, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with service() as running:
            stop = asyncio.Event()
            made.append((running, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    running, loop, stop = made[0]
    try:
        yield running
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def test_the_call_takes_as_long_as_the_model_did(tmp_path: Path) -> None:
    with _service() as server:
        server.answer(said("The first one."), SLOW_S, said(" The second one."), ended(), DONE)
        model = {"provider": "openai", "url": f"{server.url}/v1", "name": "qwen"}
        settings = Settings.model_validate({"model": model})
        result = Simulator(settings).run(
            parse_scenario(SCENARIO, Path("here.yaml")), make_app(tmp_path)
        )
    assert [str(verdict) for verdict in result.verdicts if not verdict.ok] == []
    outputs = [r for r in result.log.timeline if r["kind"] == "runtime_output" and r.get("text")]
    first, second = outputs[:2]
    assert [first["text"], second["text"]] == ["The first one.", " The second one."]
    assert float(second["t"]) - float(first["t"]) >= SLOW_S / 2
