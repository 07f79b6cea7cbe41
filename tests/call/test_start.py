"""Rules of a call: Start."""

from __future__ import annotations

from gateway.bidi import REMOTE_DISCONNECTED, SESSION_START
from gateway.call.events import CallEnded, InputType, OpenRuntime, Record
from gateway.call.profile import CallProfile
from gateway.channels.base import (
    EndReason,
    EventIn,
    Hangup,
    Started,
    VariablesIn,
)
from gateway.channels.capabilities import Capabilities
from gateway.errors import RuntimeFailure
from tests.call.harness import EMULATED, LINEAR_8K, Line, tone


def started(**fields: object) -> Started:
    return Started(call_id="c", in_format=LINEAR_8K, out_format=LINEAR_8K, **fields)  # type: ignore[arg-type]


def test_the_first_action_is_the_call_started_record() -> None:
    line = Line(start=started(from_="+1", to="+2", language="de-DE"))
    first = line.actions[0]
    assert isinstance(first, Record)
    assert first.kind == "call_started"
    assert first.fields == {
        "channel": "test",
        "call_id": "c",
        "from": "+1",
        "to": "+2",
        "language": "de-DE",
        "in_format": "LINEAR16/8000",
        "out_format": "LINEAR16/8000",
    }


def test_only_variables_that_the_app_declares_travel_to_the_runtime() -> None:
    profile = CallProfile(variables=frozenset({"customer"}))
    line = Line(profile, start=started(custom={"customer": "7", "secret": "x"}))
    opened = next(a for a in line.actions if isinstance(a, OpenRuntime))
    assert opened == OpenRuntime({"customer": "7"}, SESSION_START)
    assert line.one("runtime_input", type="variables").fields["variables"] == ["customer"]
    assert line.one("runtime_input", type="event").fields["event"] == SESSION_START


def test_a_client_that_kicks_off_itself_gets_no_kickoff() -> None:
    line = Line(capabilities=Capabilities(dialect="test", kickoff=False))
    opened = next(a for a in line.actions if isinstance(a, OpenRuntime))
    assert opened.kickoff is None
    assert not line.run(15.0).find("call_ended")


def test_input_before_the_runtime_is_open_is_kept_in_order() -> None:
    line = Line(runtime_s=1.0)
    line.do(line.machine.channel(VariablesIn({"a": 1}), line.now))
    line.do(line.machine.channel(EventIn("hello"), line.now))
    line.run(0.5)
    assert line.inputs == []
    line.run(0.6)
    assert [i.type for i in line.inputs] == [InputType.VARIABLES, InputType.EVENT]


def test_speech_before_the_start_is_not_lost() -> None:
    line = Line(begin=False)
    line.do(line.machine.audio(tone(1234, 0.5), line.now))
    line.caller_s += 0.5
    line._window_s = 0.48
    line.begin()
    line.speak(0.4, "hello")
    line.run(2.0)
    assert line.texts() == ["hello"]
    asked = next(a for a in line.actions if type(a).__name__ == "Recognise")
    assert asked.pcm.startswith(tone(1234, 0.2))


def test_a_runtime_that_never_opens_makes_the_caller_hear_the_fallback() -> None:
    line = Line(runtime_s=None)
    line.run(9.9)
    assert not line.find("error")
    line.until(lambda: line.machine.ended)
    assert line.one("error").fields["code"] == "runtime.start_timeout"
    assert line.one("utterance_ended").fields["heard_text"] == line.profile.fallback_message
    assert line.one("utterance_queued").fields["interruptable"] is False
    assert line.sent(Hangup) == [Hangup(EndReason.ERROR)]
    assert line.one("call_ended").fields["reason"] == "error"
    line.check()


def test_a_runtime_that_opens_but_says_nothing_makes_the_caller_hear_the_fallback() -> None:
    line = Line(runtime_s=0.1).run(20.0)
    assert line.one("error").fields["code"] == "runtime.start_timeout"
    assert line.machine.ended


def test_a_fallback_that_cannot_be_spoken_hangs_up_at_once() -> None:
    line = Line(runtime_s=None)
    line.tts_fails = True
    line.run(10.2)
    assert line.machine.ended
    assert line.one("call_ended").fields["reason"] == "error"


def test_a_fallback_that_never_comes_hangs_up_after_five_seconds() -> None:
    line = Line(runtime_s=None)
    line.tts_silent = True
    line.run(14.9)
    assert not line.machine.ended
    line.run(0.3)
    assert line.machine.ended


def test_a_runtime_lost_in_mid_call_makes_the_caller_hear_the_fallback() -> None:
    line = Line().greeted()
    line.do(line.machine.runtime_lost(RuntimeFailure("runtime.closed", "gone"), line.now))
    line.until(lambda: line.machine.ended)
    assert line.one("error").fields == {"code": "runtime.closed", "message": "gone"}
    assert line.find("utterance_ended")[-1].fields["heard_text"] == line.profile.fallback_message
    assert not [i for i in line.inputs if i.text == REMOTE_DISCONNECTED]
    line.check()


def test_a_runtime_that_falls_silent_in_its_turn_counts_as_lost() -> None:
    line = Line(CallProfile(turn_timeout_s=5.0)).greeted()
    line.speak(0.5, "hello")
    line.until(lambda: line.machine.ended)
    assert line.one("error").fields["code"] == "runtime.turn_timeout"


def test_a_second_start_changes_nothing() -> None:
    line = Line()
    assert line.machine.started(started(), line.now) == []


def test_a_call_that_ends_before_it_started_still_has_both_ends() -> None:
    line = Line(begin=False)
    line.do(line.machine.transport_lost(line.now))
    assert line.kinds() == ["call_started", "call_ended"]
    assert line.actions[-1] == CallEnded(EndReason.TRANSPORT_LOST)
    assert line.machine.tick(line.now) == []
    line.check()


def test_the_platforms_lead_bounds_ours() -> None:
    line = Line(CallProfile(lead_ms=1000), Capabilities(dialect="test", max_lead_ms=60))
    line.run(0.1)
    line.say("One long sentence of the agent.", 1)
    line.run(0.2)
    sent = sum(type(a).__name__ == "SendAudio" for a in line.actions)
    assert sent * 0.02 <= 0.2 + 0.06 + 0.02 + 1e-9
    assert EMULATED.max_lead_ms == 1000
