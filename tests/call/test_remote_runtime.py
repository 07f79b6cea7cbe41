"""Rules of a call whose runtime is a service far away: background, beginnings, ends, keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.call.events import (
    InputType,
    OpenRuntime,
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimeText,
    RuntimeToolCalls,
)
from gateway.call.profile import BargeIn, CallProfile
from gateway.channels.base import Hangup, Started, Transfer
from gateway.channels.capabilities import TransferBy
from tests.call.harness import EMULATED, LINEAR_8K, Line, tone

HEARING = CallProfile(audio_runtime=True, single_keys=True, end_grace_s=0.5, start_timeout_s=5.0)
READING = CallProfile(single_keys=True, end_grace_s=0.5)
SPEECH, BED, LATE = 5000, 60, 7000


def audio(seconds: float, turn: int, value: int = SPEECH) -> RuntimeAudio:
    return RuntimeAudio(tone(value, seconds), turn)


def greeted() -> Line:
    """A call whose first turn was heard."""
    line = Line(HEARING).run(0.1)
    line.output(audio(0.5, 1))
    line.completed(1)
    return line.run(1.0)


# ---- background


def with_bed(line: Line, seconds: float) -> Line:
    """The service sends its background in real time, without end."""
    for _ in range(round(seconds / 0.1)):
        line.output(RuntimeAudio(tone(BED, 0.1), 1, background=True))
        line.run(0.1)
    return line


def test_background_is_heard_and_is_no_answer() -> None:
    line = with_bed(Line(HEARING).run(0.1), 5.5)
    assert line.platform.heard_s(BED, line.now) > 4.0
    assert line.one("error").fields["code"] == "runtime.start_timeout"


def test_background_between_turns_keeps_no_turn_open_and_delays_no_speech() -> None:
    line = with_bed(greeted(), 70.0)
    assert not line.find("error")
    line.output(audio(0.5, 2, LATE))
    line.run(0.5)
    assert line.platform.heard_s(LATE, line.now) > 0.2


def test_background_never_stands_behind_speech_that_still_sounds() -> None:
    line = Line(HEARING).run(0.1)
    line.output(audio(3.0, 1))
    line.completed(1)
    with_bed(line, 2.5)
    assert line.platform.heard_s(BED, line.now) == 0.0
    with_bed(line, 1.5)
    assert line.platform.heard_s(BED, line.now) > 0.5


def test_background_does_not_hold_back_a_hang_up() -> None:
    line = greeted()
    line.output(RuntimeEndSession({}))
    with_bed(line, 1.5)
    assert line.one("call_ended").fields["reason"] == "completed"


# ---- beginnings


def test_words_may_begin_a_call_in_place_of_the_event() -> None:
    line = Line(replace(HEARING, first_words="Hello"))
    opened = next(a for a in line.actions if isinstance(a, OpenRuntime))
    assert opened == OpenRuntime({}, None, "Hello")
    assert line.one("runtime_input").fields == {"type": "text", "text": "Hello"}
    line.run(5.5)
    assert line.one("error").fields["code"] == "runtime.start_timeout"


def test_without_event_and_words_the_caller_begins() -> None:
    line = Line(replace(HEARING, kickoff=""))
    opened = next(a for a in line.actions if isinstance(a, OpenRuntime))
    assert opened == OpenRuntime({}, None, "")
    assert not line.run(70.0).find("error")


def test_without_event_a_runtime_that_never_opens_is_not_waited_for_either() -> None:
    line = Line(replace(HEARING, kickoff=""), runtime_s=None).run(5.5)
    assert line.one("error").fields["code"] == "runtime.start_timeout"


def test_all_custom_parameters_travel_where_the_declared_ones_are_not_known() -> None:
    start = Started("c", in_format=LINEAR_8K, out_format=LINEAR_8K, custom={"a": "1", "b": "2"})
    line = Line(replace(HEARING, variables=None), start=start)
    opened = next(a for a in line.actions if isinstance(a, OpenRuntime))
    assert opened.variables == {"a": "1", "b": "2"}


# ---- ends


def test_the_end_is_held_back_for_a_turn_that_it_has_overtaken() -> None:
    line = greeted()
    line.output(RuntimeEndSession({}))
    line.run(0.4)
    line.output(RuntimeText("Goodbye.", 2))
    line.output(audio(2.0, 2, LATE))
    line.until(lambda: bool(line.find("call_ended")))
    assert line.platform.heard_s(LATE, line.now) == pytest.approx(2.0, abs=0.05)


def test_a_turn_completed_after_the_end_is_waited_for_no_longer() -> None:
    line = greeted()
    line.output(RuntimeEndSession({}))
    line.completed(2)
    line.run(0.1)
    assert line.sent(Hangup)


def test_a_runtime_that_never_falls_silent_is_left_in_the_end() -> None:
    line = greeted()
    line.output(RuntimeEndSession({}))
    for _ in range(120):
        line.output(audio(0.1, 2, LATE))
        line.run(0.1)
    assert line.one("call_ended").fields["reason"] == "completed"
    assert 9.0 < line.platform.heard_s(LATE, line.now) < 11.0


def test_a_hand_off_is_a_transfer_to_whom_the_platform_knows() -> None:
    able = replace(EMULATED, transfer=TransferBy.MESSAGE)
    line = Line(HEARING, able).run(0.1)
    metadata = {"reason": "transferToNga", "session_escalated": True}
    line.output(RuntimeEndSession(metadata))
    line.run(1.0)
    assert line.sent(Transfer) == [Transfer("", metadata)]
    assert line.one("call_ended").fields["reason"] == "transferred"


# ---- interruptions, tools, keys


def test_what_comes_late_of_an_interrupted_turn_is_dropped_also_when_all_before_was_heard() -> None:
    line = greeted()
    line.output(audio(0.2, 2))
    line.run(1.0)
    line.output(RuntimeInterruption(True))
    line.output(audio(1.0, 2, LATE))
    line.output(audio(0.5, 3))
    line.run(1.0)
    assert line.platform.heard_s(LATE, line.now) == 0.0


def test_a_client_function_is_answered_where_there_is_no_client() -> None:
    line = greeted()
    tool = {"toolsetTool": {"toolset": "t", "toolId": "x"}}
    line.output(RuntimeToolCalls([{"id": "7", "args": {}, "tool": "y"}, {"id": "8", **tool}], 2))
    (answer,) = [i for i in line.inputs if i.type is InputType.TOOL_RESPONSES]
    first, second = answer.items
    assert (first["id"], first["tool"]) == ("7", "y")
    assert (second["id"], second["toolsetTool"]) == ("8", tool["toolsetTool"])
    assert all("error" in item["response"] for item in answer.items)
    # The turn goes on under its own number, and nothing more is owed once it is complete.
    line.output(audio(0.5, 2))
    line.completed(2)
    line.run(70.0)
    assert [r.fields["code"] for r in line.find("error")] == ["runtime.client_tools"]


def test_each_key_goes_alone_and_at_once() -> None:
    line = Line(READING).greeted()
    line.keys("12#")
    assert [i.text for i in line.inputs if i.type is InputType.DTMF] == ["1", "2", "#"]


def test_keys_interrupt_where_the_gateway_speaks_unless_the_words_are_protected() -> None:
    line = Line(READING).greeted()
    line.say("A sentence that takes a while to be said, and then some.", 2)
    line.run(0.5)
    line.keys("1")
    assert line.one("barge_in").fields["by"] == "dtmf"
    line.payload(3, customizedResponse={"content": "Terms for all.", "disableBargeIn": True})
    line.run(0.5)
    line.keys("2")
    assert [i.text for i in line.inputs if i.type is InputType.DTMF] == ["1"]


def test_keys_do_not_interrupt_where_nothing_does() -> None:
    line = Line(replace(READING, barge_in=BargeIn.OFF)).greeted()
    line.say("A sentence that takes a while to be said, and then some.", 2)
    line.run(0.5)
    line.keys("1")
    assert not line.find("barge_in")
    assert [i.text for i in line.inputs if i.type is InputType.DTMF] == ["1"]
