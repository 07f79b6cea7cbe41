"""Whole calls whose agent does not hear the caller for a while, on platforms of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.simulate.run import Simulator
from gateway.simulate.scenario import parse_scenario

APP = Path(__file__).parents[1] / "apps" / "sensitive"
CALL = """
caller:
  - wait: agent_quiet
  - say: I would like to pay.
    as: I would like to pay.
  - wait: {heard: enter the number}
  - wait: agent_quiet
  - say: Hold on, my card says one two three.
    as: one two three
  - dtmf: "12#"
  - wait: {heard: thank you}
  - wait: agent_quiet
  - say: Goodbye then.
    as: Goodbye then.
  - wait: {heard: you said something}
  - hangup: true
expect:
  - event: {kind: user_text, text: pay, count: 1}
  - event: {kind: user_text, text: one two three, count: 0}
  - event: {kind: user_text, text: goodbye, count: 1}
  - event: {kind: dtmf, digits: "12", count: 1}
  - event: {kind: listening, count: 2}
  - ended: remote_hangup
"""


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator()


# One that pauses, one that sends no audio, and one that cannot be asked.
@pytest.mark.parametrize("channel", ["genesys", "asterisk", "twilio"])
def test_what_the_caller_says_meanwhile_is_not_understood(
    simulator: Simulator, channel: str
) -> None:
    result = simulator.run(parse_scenario(CALL, Path("here.yaml")), APP, channel)
    assert result.ok, [str(verdict) for verdict in result.verdicts]
    assert not result.log.complaints
