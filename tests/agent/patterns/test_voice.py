"""Each voice pattern as a whole simulated telephone call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config import Settings
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import read_scenario
from tests.agent.loopback import api_server
from tests.agent.patterns.test_text import with_api

pytestmark = pytest.mark.slow

SCENARIOS = Path(__file__).parent / "scenarios"
PATTERNS = sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
NEEDS_API = ("end_tool", "openapi_context")


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator()


def _run(simulator: Simulator, pattern: str, app: Path | None = None) -> None:
    result = simulator.run(read_scenario(SCENARIOS / f"{pattern}.yaml"), app, "twilio")
    assert result.ok, "\n".join(str(verdict) for verdict in result.verdicts)
    assert [record for record in result.log.timeline if record["kind"] == "error"] == []


@pytest.mark.parametrize("pattern", [name for name in PATTERNS if name not in NEEDS_API])
def test_the_call_goes_as_its_author_expects(simulator: Simulator, pattern: str) -> None:
    _run(simulator, pattern)


def test_an_api_is_asked_during_the_call(simulator: Simulator, tmp_path: Path) -> None:
    with api_server() as api:
        # Whatever the session is called: every path answers the same.
        api.default = {"kwh": "470"}
        _run(simulator, "openapi_context", with_api(tmp_path, api))
        assert sorted(api.last["query"]) == [["meter", "M-77"], ["unit", "kwh"]]


def test_the_end_of_a_call_is_filed(simulator: Simulator) -> None:
    with api_server() as api:
        scenario = read_scenario(SCENARIOS / "end_tool.yaml")
        variables = {**scenario.variables, "log_url": f"{api.url}/log"}
        result = simulator.run(replace(scenario, variables=variables), None, "twilio")
        assert result.ok, "\n".join(str(verdict) for verdict in result.verdicts)
        assert api.last["path"] == "/log"


@pytest.mark.parametrize("how", ["by_voice", "by_key"])
def test_the_caller_agrees_or_not(how: str) -> None:
    settings = Settings.model_validate({"tools": {"consent": ["cancel_order"]}})
    scenario = read_scenario(SCENARIOS.parent / "consent" / f"{how}.yaml")
    result = Simulator(settings).run(scenario, None, "twilio")
    assert result.ok, "\n".join(str(verdict) for verdict in result.verdicts)
