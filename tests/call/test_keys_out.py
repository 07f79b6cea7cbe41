"""`sendDtmf` in a payload presses keys towards the far end, by the way that the record names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.call.events import RuntimeEndSession, Source
from gateway.call.policy import read_payload
from gateway.channels.base import AgentPayload, Hangup, SendDtmf
from gateway.channels.capabilities import DtmfOut
from tests.call.harness import EMULATED, NATIVE, Line

BY_MESSAGE = replace(NATIVE, dtmf_out=DtmfOut.NATIVE)


@pytest.mark.parametrize("way", [DtmfOut.NATIVE, DtmfOut.REST])
def test_keys_are_pressed_once_what_was_said_before_was_heard(way: DtmfOut) -> None:
    line = Line(capabilities=replace(NATIVE, dtmf_out=way)).greeted()
    line.text("Dialling the extension now.", 2)
    line.payload(2, sendDtmf="12#")
    line.completed(2)
    line.run(0.5)
    assert not line.sent(SendDtmf)
    line.until(lambda: line.quiet)
    assert line.sent(SendDtmf) == [SendDtmf("12#")]
    assert line.one("dtmf_sent").fields == {"digits": "12#"}
    assert line.one("dtmf_sent").t >= line.one("utterance_ended", id=2).t
    assert line.one("utterance_queued", source=Source.KEYS.value).fields["text"] == ""
    line.check()


def test_inband_keys_are_tones_in_the_agent_s_audio() -> None:
    line = Line(capabilities=replace(EMULATED, dtmf_out=DtmfOut.INBAND)).greeted()
    before = len(line.platform.played)
    line.payload(2, send_dtmf="1a")
    line.completed(2)
    line.until(lambda: line.quiet)
    sounding = line.platform.played[before:]
    assert len(sounding) == pytest.approx(2 * (100 + 80) / 20, abs=1)
    assert any(any(frame.frame) for frame in sounding)
    assert not line.sent(SendDtmf)
    assert line.one("dtmf_sent").fields == {"digits": "1A"}


def test_keys_cannot_be_interrupted() -> None:
    line = Line(capabilities=replace(EMULATED, dtmf_out=DtmfOut.INBAND)).greeted()
    line.payload(2, sendDtmf="123456")
    line.completed(2)
    line.run(0.3)
    line.speak(0.5, "wait")
    line.until(lambda: line.quiet)
    assert not line.find("barge_in")
    assert line.one("dtmf_sent")


def test_keys_are_pressed_before_the_call_ends() -> None:
    line = Line(capabilities=BY_MESSAGE).greeted()
    line.payload(2, sendDtmf="9")
    line.output(RuntimeEndSession({}))
    line.until(lambda: line.machine.ended)
    assert [type(command) for command in line.commands[-2:]] == [SendDtmf, Hangup]


def test_a_line_that_cannot_says_so_and_the_turn_goes_on() -> None:
    line = Line(capabilities=replace(EMULATED, dtmf_out=DtmfOut.NONE)).greeted()
    line.payload(2, sendDtmf="1")
    line.text("Still here.", 2)
    line.completed(2)
    line.until(lambda: line.quiet)
    assert line.one("error").fields["code"] == "dtmf.unsupported"
    assert line.one("utterance_ended", heard_text="Still here.")


def test_a_client_of_the_native_dialect_presses_them_itself() -> None:
    able = replace(EMULATED, dtmf_out=DtmfOut.NONE, agent_messages=True)
    line = Line(capabilities=able).greeted()
    line.payload(2, sendDtmf="1")
    assert line.sent(AgentPayload) == [AgentPayload({"sendDtmf": "1"}, 2)]
    assert not line.find("error")


@pytest.mark.parametrize("keys", ["", "12x", 12, None, ["1"], "1" * 65])
def test_what_are_no_keys_is_reported_and_nothing_is_pressed(keys: object) -> None:
    reading = read_payload({"sendDtmf": keys})
    assert not reading.plans
    assert bool(reading.problems) == (keys is not None)
