"""`listen` in a payload: the agent does not want to hear the caller, or wants to again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.call.policy import read_payload
from gateway.channels.base import AgentPayload, Listen
from tests.call.harness import EMULATED, NATIVE, Line


def test_the_platform_is_told_once_and_the_engine_is_deaf_until_it_listens_again() -> None:
    line = Line(capabilities=NATIVE).greeted()
    assert not line.machine.deaf
    for wanted in (True, False, False, True, True):
        line.payload(2, listen=wanted)
        assert line.machine.deaf is not wanted
    assert line.sent(Listen) == [Listen(False), Listen(True)]
    assert [record.fields for record in line.find("listening")] == [{"on": False}, {"on": True}]


def test_keys_count_and_the_agent_is_heard_while_nobody_listens() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.payload(2, listen=False)
    line.text("Please enter the number of your card.", 2)
    line.completed(2)
    line.until(lambda: line.quiet)
    assert line.one("utterance_ended", id=2).fields["reason"] == "completed"
    line.keys("12#")
    assert line.one("dtmf").fields == {"digits": "12"}


def test_it_stands_beside_other_words_of_a_payload() -> None:
    reading = read_payload({"audioUri": "beep.wav", "listen": False})
    assert reading.listen is False
    assert reading.plans[0].uri == "beep.wav"
    assert "listen" not in reading.plans[0].policy.extra


def test_a_client_that_shows_the_agent_is_told_as_well() -> None:
    line = Line(capabilities=replace(EMULATED, agent_messages=True)).greeted()
    line.payload(2, listen=False)
    assert line.sent(AgentPayload) == [AgentPayload({"listen": False}, 2)]
    assert line.machine.deaf


@pytest.mark.parametrize("value", [None, "false", 0, [], {}])
def test_what_is_no_yes_or_no_is_the_client_s_own(value: object) -> None:
    reading = read_payload({"listen": value})
    assert (reading.ours, reading.listen, reading.problems) == (False, None, ())
