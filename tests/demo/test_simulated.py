"""Every demo scenario as a whole call in virtual time, on both dialects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.demo import SCENARIOS_PATH
from gateway.simulate.result import CallLog, RunResult
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import Latency, read_scenario

pytestmark = pytest.mark.slow

SCENARIOS = sorted(path.stem for path in SCENARIOS_PATH.glob("*.yaml"))
CHANNELS = ("ces", "twilio")
TICK_S = 0.02
ONSET_TO_CLEAR_S = 0.3


class Calls:
    """Simulated calls, each made once: engines load once, each sentence is synthesised once."""

    def __init__(self) -> None:
        self.simulator = Simulator()
        self._made: dict[tuple[str, str], RunResult] = {}

    def result(self, name: str, channel: str) -> RunResult:
        """The call of one demo scenario on one dialect."""
        if (name, channel) not in self._made:
            scenario = read_scenario(SCENARIOS_PATH / f"{name}.yaml")
            self._made[name, channel] = self.simulator.run(scenario, channel=channel)
        return self._made[name, channel]


@pytest.fixture(scope="module")
def calls() -> Calls:
    return Calls()


def times(log: CallLog, kind: str) -> list[float]:
    """When records of this kind stand in the timeline, in seconds."""
    return [record["t"] for record in log.timeline if record["kind"] == kind]


def verdict_lines(result: RunResult) -> str:
    return "\n".join(str(verdict) for verdict in result.verdicts)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_scenario_holds(calls: Calls, name: str, channel: str) -> None:
    result = calls.result(name, channel)
    assert result.ok, verdict_lines(result)
    assert [record for record in result.log.timeline if record["kind"] == "error"] == []
    assert result.log.seconds < 40


@pytest.mark.parametrize("name", ["barge_in", "async_tool_interrupted", "disclaimer"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_the_line_is_cleared_soon_after_the_caller_starts_to_speak(
    calls: Calls, name: str, channel: str
) -> None:
    log = calls.result(name, channel).log
    (cut,) = times(log, "barge_in")
    cleared = next(t for t in times(log, "cleared") if t >= cut)
    detected = [t for t in times(log, "user_speech_started") if t <= cut][-1]
    # The clip begins with the step; its sound begins then or later.
    spoke = [step.start for step in log.steps if step.kind == "say" and step.start < cut][-1]
    assert cleared - detected <= TICK_S
    assert cleared - spoke <= ONSET_TO_CLEAR_S


def test_a_scenario_holds_when_services_are_slow(calls: Calls) -> None:
    slow = Latency(runtime_s=0.3, tts_s=0.4, stt_s=0.5)
    scenario = read_scenario(SCENARIOS_PATH / "async_tool_interrupted.yaml")
    result = calls.simulator.run(replace(scenario, latency=slow), channel="twilio")
    assert result.ok, verdict_lines(result)
