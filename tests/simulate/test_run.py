"""Whole simulated calls: real codec, engine, speech and agent, and nothing left to chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import demo
from gateway.channels.capabilities import ClearBy
from gateway.channels.dialects import dialect
from gateway.config import load
from gateway.errors import AppError, ScenarioError
from gateway.simulate.platforms import CHANNELS
from gateway.simulate.report import write_report
from gateway.simulate.result import RunResult
from gateway.simulate.run import Simulator, simulate
from gateway.simulate.scenario import Scenario, parse_scenario, read_scenario


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator()


def demo_scenario(name: str) -> Scenario:
    return read_scenario(demo.SCENARIOS_PATH / f"{name}.yaml")


def scenario(text: str) -> Scenario:
    return parse_scenario(text, Path("here.yaml"))


def kinds(result: RunResult, kind: str) -> list[dict[str, object]]:
    return [dict(r) for r in result.log.timeline if r["kind"] == kind]


def broken(result: RunResult) -> list[str]:
    return [str(verdict) for verdict in result.verdicts if not verdict.ok]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_call_holds_on_every_dialect(simulator: Simulator, channel: str) -> None:
    result = simulator.run(demo_scenario("greeting"), channel=channel)
    assert broken(result) == []
    assert result.log.timeline[0]["kind"] == "call_started"
    assert result.log.timeline[-1]["kind"] == "call_ended"
    assert any(result.log.heard)


def test_two_runs_give_identical_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        result = simulate(demo_scenario("barge_in"), channel="twilio")
        write_report(result, tmp_path / name)
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("channel", CHANNELS)
def test_from_the_callers_first_sound_to_the_cut_is_300_ms_at_most(
    simulator: Simulator, channel: str
) -> None:
    result = simulator.run(demo_scenario("barge_in"), channel=channel)
    assert broken(result) == []
    assert not result.log.complaints
    assert kinds(result, "error") == []
    (cut,) = kinds(result, "barge_in")
    onset = [step.start for step in result.log.steps if step.kind == "say"][1]
    assert 0 < float(str(cut["t"])) - onset <= 0.3
    cleared = kinds(result, "cleared")
    if dialect(channel).capabilities.clear is ClearBy.NATIVE:
        assert [float(str(c["t"])) - float(str(cut["t"])) <= 0.02 for c in cleared] == [True]
    else:
        assert not cleared, "what such a platform holds cannot be taken back"


def test_a_tools_sleep_costs_virtual_time_only(simulator: Simulator) -> None:
    result = simulator.run(demo_scenario("slow_tool"))
    assert broken(result) == []
    (music,) = [u for u in kinds(result, "utterance_ended") if "hold" in str(u["uri"])]
    assert float(str(music["heard_s"])) > 2.0


def test_the_scenario_may_say_what_is_understood_and_what_services_take(
    simulator: Simulator,
) -> None:
    result = simulator.run(
        scenario(
            """
latency: {runtime: 1s, stt: 500ms, tts: 250ms}
caller:
  - wait: agent_quiet
  - say: Mumble mumble.
    as: What are your opening hours?
  - wait: agent_quiet
  - hangup: true
expect:
  - heard: nine to five
"""
        )
    )
    assert broken(result) == []
    queued, answered = kinds(result, "utterance_queued")[:2]
    assert float(str(queued["t"])) >= 1.0
    (understood,) = kinds(result, "user_text")
    assert understood["text"] == "What are your opening hours?"
    assert float(str(answered["t"])) - float(str(understood["t"])) >= 1.0
    (ended,) = kinds(result, "user_speech_ended")
    assert float(str(understood["t"])) - float(str(ended["t"])) >= 0.0


def test_a_long_silent_call_is_as_long_as_it_says(simulator: Simulator) -> None:
    quiet = Simulator(load(flags=["call.inactivity_s=1000"]))
    result = quiet.run(scenario("caller: [{silence: 300s}, {hangup: true}]"), channel="twilio")
    assert result.log.seconds == pytest.approx(300.0, abs=0.05)
    assert result.log.ended == "remote_hangup"


def test_a_step_in_vain_fails_the_run(simulator: Simulator) -> None:
    script = "caller: [{wait: {heard: never said, timeout: 2s}}, {say: hello}]"
    result = simulator.run(scenario(script))
    assert broken(result) == ["✗ caller: wait to hear 'never said'   (waited 2 s in vain)"]


def test_keys_on_a_dialect_that_brings_none_fail_where_they_are_pressed(
    simulator: Simulator,
) -> None:
    result = simulator.run(scenario("caller: [{dtmf: '1'}, {silence: 60s}]"), channel="sinch")
    assert broken(result) == ["✗ caller: dtmf 1   (no keys come by this dialect)"]
    assert result.log.seconds < 5


def test_bad_inputs_are_named(simulator: Simulator, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="pigeon"):
        simulator.run(demo_scenario("greeting"), channel="pigeon")
    with pytest.raises(AppError):
        simulator.run(demo_scenario("greeting"), app_path=tmp_path / "nothing")
