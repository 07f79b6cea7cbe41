"""Rules of a call: DTMF."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.call.dtmf import Keypad
from gateway.call.events import InputType
from gateway.call.policy import DtmfPolicy
from gateway.call.profile import CallProfile
from tests.call.harness import NATIVE, Line

LONG = "This is a rather long sentence that takes its time to be spoken."


def digits(line: Line) -> list[str]:
    return [i.text for i in line.inputs if i.type is InputType.DTMF]


def test_digits_are_collected_up_to_the_finish_digit() -> None:
    line = Line().greeted()
    for key in "1234#":
        line.keys(key)
        line.run(0.2)
    assert digits(line) == ["1234"]
    assert line.one("dtmf").fields == {"digits": "1234"}
    assert line.one("runtime_input", type="dtmf").fields["digits"] == "1234"


def test_digits_are_collected_until_no_more_come() -> None:
    line = Line().greeted()
    line.keys("1")
    line.run(2.0)
    line.keys("2")
    line.run(2.9)
    assert digits(line) == []
    line.run(0.2)
    assert digits(line) == ["12"]


def test_digits_are_collected_up_to_the_maximum() -> None:
    line = Line(CallProfile(dtmf_max_digits=4)).greeted()
    line.keys("123456")
    assert digits(line) == ["1234"]
    line.run(4.0)
    assert digits(line) == ["1234", "56"]


def test_a_key_told_twice_counts_once() -> None:
    line = Line().greeted()
    line.keys("1")
    line.run(0.04)
    line.keys("1")
    line.run(0.2)
    line.keys("1")
    line.keys("#")
    assert digits(line) == ["11"]


def test_one_event_with_several_keys_is_taken_as_it_is() -> None:
    line = Line().greeted()
    line.keys("1122#")
    assert digits(line) == ["1122"]


def test_a_finish_digit_alone_is_an_answer() -> None:
    line = Line().greeted()
    line.keys("#")
    assert digits(line) == ["#"]


def test_keys_interrupt_like_speech() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.say(LONG, 2)
    line.run(1.0)
    line.keys("1")
    assert line.one("barge_in").fields == {"by": "dtmf", "cut": [2]}
    line.keys("#")
    assert [(i.type, i.text, i.will_continue) for i in line.inputs] == [
        (InputType.TEXT, "", True),
        (InputType.DTMF, "1", False),
    ]


def test_keys_under_protection_are_ignored() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": LONG, "disableBargeIn": True})
    line.completed(2)
    line.run(0.5)
    line.keys("12#")
    line.run(8.0)
    assert digits(line) == []
    assert not line.find("dtmf")


def test_a_protected_response_that_waits_for_keys_keeps_them_and_goes_on() -> None:
    line = Line().greeted()
    response = {"content": LONG, "disableBargeIn": True, "enableDtmf": True}
    line.payload(2, customizedResponse=response)
    line.completed(2)
    line.run(0.5)
    line.keys("12#")
    assert digits(line) == ["12"]
    assert not line.find("barge_in")
    line.run(4.0)
    assert line.one("utterance_ended", id=2).fields["reason"] == "completed"


def test_a_response_sets_its_own_finish_digit_and_timeout() -> None:
    line = Line().greeted()
    response = {"content": "Number?", "dtmfFinishDigit": "*", "dtmfEndpointingTimeout": "1s"}
    line.payload(2, customizedResponse=response)
    line.completed(2)
    line.until(lambda: line.quiet)
    line.keys("1#2*")
    assert digits(line) == ["1#2"]
    line.keys("7")
    line.run(1.1)
    assert digits(line) == ["1#2", "7"]


def test_the_next_response_is_back_to_the_defaults() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": "Number?", "dtmfFinishDigit": "*"})
    line.completed(2)
    line.until(lambda: line.quiet)
    line.say("Again.", 3)
    line.until(lambda: line.quiet)
    line.keys("1#")
    assert digits(line) == ["1"]


def test_keys_can_be_switched_off() -> None:
    line = Line(CallProfile(disable_dtmf=True)).greeted()
    line.keys("12#")
    line.run(5.0)
    assert not line.inputs
    assert not line.find("dtmf")


def test_wrong_settings_are_recorded_and_the_content_is_spoken() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": "Hi.", "enableDtmf": "yes"})
    line.completed(2)
    line.run(1.0)
    assert line.one("error").fields["code"] == "payload.value"
    assert line.one("utterance_ended", id=2).fields["heard_text"] == "Hi."


@given(st.text(max_size=40), st.integers(1, 8))
def test_no_key_is_lost_or_invented(keys: str, most: int) -> None:
    pad = Keypad(CallProfile(dtmf_max_digits=most, dtmf_finish_digit=""))
    _, done = pad.press(keys, 0.0)
    rest = pad.expired(1e9)
    whole = "".join(done) + (rest or "")
    assert whole == "".join(k for k in keys.upper() if k in "0123456789*#ABCD")
    assert all(len(d) == most for d in done)


def test_settings_that_a_response_leaves_out_are_the_profiles() -> None:
    pad = Keypad(CallProfile(dtmf_timeout_s=2.0))
    pad.configure(DtmfPolicy(enabled=True))
    assert (pad.finish_digit, pad.timeout_s) == ("#", pytest.approx(2.0))
