"""One caller over a real socket in real time, the timeline followed over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import AdmissionError, RuntimeFailure
from gateway.simulate.scenario import Scenario, parse_scenario
from gateway.simulate.wire import call
from tests.simulate.loopback import serving

POLITE = """
caller:
  - wait: {heard: welcome, timeout: 5s}
  - wait: agent_quiet
  - dtmf: "12"
  - hangup: true
expect:
  - heard: welcome
  - ended: remote_hangup
"""


def scenario(text: str = POLITE) -> Scenario:
    return parse_scenario(text, Path("wire.yaml"))


async def test_a_call_is_made_heard_and_judged() -> None:
    async with serving() as server:
        result = await call(server.access, scenario(), "twilio")
    assert result.ok, [str(verdict) for verdict in result.verdicts]
    assert (server.keys, server.stops) == ("12", 1)
    assert server.frames >= 25 + 15, "silence is sent all the time"
    assert any(result.log.heard), "the tone was heard"
    assert not any(result.log.sent)
    assert [r["kind"] for r in result.log.timeline][-1] == "call_ended"
    assert "Bearer secret" in {h.get("Authorization") for h in server.headers}


async def test_a_server_that_shows_no_timeline_is_told_how_to() -> None:
    async with serving(timeline_status=403) as server:
        with pytest.raises(RuntimeFailure, match=r"runtime\.timeline") as caught:
            await call(server.access, scenario(), "twilio")
    assert "share_timeline" in str(caught.value.hint)


async def test_a_server_that_is_full() -> None:
    async with serving(refuse=503) as server:
        with pytest.raises(AdmissionError):
            await call(server.access, scenario(), "twilio")


async def test_a_message_that_the_platform_would_not_take_is_a_verdict() -> None:
    async with serving(nonsense='{"event":"clear"}') as server:
        result = await call(server.access, scenario(), "twilio")
    assert not result.ok
    assert "streamSid" in result.verdicts[0].detail


async def test_a_server_that_hangs_up_leaves_steps_undone() -> None:
    async with serving(close_code=1011) as server:
        result = await call(server.access, scenario(), "twilio")
    assert [v.text for v in result.verdicts if not v.ok][:1] == ["caller: wait to hear 'welcome'"]


async def test_a_wait_in_vain_ends_the_call() -> None:
    impatient = POLITE.replace("timeout: 5s", "timeout: 300ms")
    async with serving(silent=True) as server:
        result = await call(server.access, scenario(impatient), "twilio")
    assert result.verdicts[0].detail == "waited 0.3 s in vain"
    assert server.stops == 1
