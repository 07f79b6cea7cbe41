"""Many callers against a small server on the loopback interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ScenarioError
from gateway.load import LoadPlan, load
from gateway.load.result import Tally
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import parse_scenario
from tests.simulate.loopback import GREETING_FRAMES, serving

SCENARIO = parse_scenario(
    "caller: [{wait: agent_quiet}, {dtmf: '7'}, {hangup: true}]", Path("load.yaml")
)


async def test_every_call_is_made_once_and_measured() -> None:
    seen: list[int] = []

    def progress(tally: Tally) -> None:
        seen.append(tally.active)

    async with serving() as server:
        plan = LoadPlan(calls=5, rate_per_s=50)
        result = await load(server.access, SCENARIO, plan, "twilio", progress=progress)
    assert (result.started, result.completed) == (5, 5)
    assert (result.refused, result.failed) == ({}, {})
    assert result.most_active == 5
    assert server.keys == "7" * 5
    assert server.stops == 5
    assert result.frame_late.count == 5 * GREETING_FRAMES
    assert result.connect.count == result.first_audio.count == 5
    assert result.sent_frames > 5 * GREETING_FRAMES
    assert 0 < result.cpu_share < 2
    assert seen


async def test_calls_are_replaced_until_the_time_is_over() -> None:
    async with serving() as server:
        plan = LoadPlan(calls=2, rate_per_s=50, duration_s=3.0)
        result = await load(server.access, SCENARIO, plan, "twilio")
    assert result.completed == result.started > 2
    assert result.most_active == 2


async def test_refusals_are_counted_by_status() -> None:
    async with serving(refuse=503) as server:
        plan = LoadPlan(calls=3, rate_per_s=50)
        result = await load(server.access, SCENARIO, plan, "twilio")
    assert result.refused == {"503": 3}
    assert not result.ok


async def test_a_native_call_to_a_place_that_does_not_exist_is_refused() -> None:
    async with serving() as server:
        result = await load(server.access, SCENARIO, LoadPlan(calls=1), "ces")
    assert result.refused == {"404": 1}


async def test_nobody_there() -> None:
    access = Access("http://127.0.0.1:1")
    result = await load(access, SCENARIO, LoadPlan(calls=1), "ces")
    assert result.failed == {"runtime.unreachable": 1}


async def test_a_call_that_the_server_breaks_off_has_failed() -> None:
    async with serving(close_code=1011) as server:
        result = await load(server.access, SCENARIO, LoadPlan(calls=1), "twilio")
    assert result.failed == {"closed 1011": 1}


async def test_a_message_against_the_dialect_is_a_failed_call() -> None:
    async with serving(nonsense='{"event":"clear"}') as server:
        result = await load(server.access, SCENARIO, LoadPlan(calls=1), "twilio")
    (problem,) = result.failed
    assert "streamSid" in problem
    assert server.stops == 1


@pytest.mark.parametrize(
    "options", [{"calls": 0}, {"calls": 10**6}, {"rate_per_s": 0.0}, {"duration_s": -1.0}]
)
def test_a_plan_that_cannot_be(options: dict[str, float]) -> None:
    with pytest.raises(ScenarioError):
        LoadPlan(**{"calls": 1, **options})  # type: ignore[arg-type]
