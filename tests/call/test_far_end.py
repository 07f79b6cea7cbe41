"""The platform's own state: buffers that are full, callers on hold, playback that it reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.call import events
from gateway.call.events import InputType, RuntimeEndSession
from gateway.call.profile import CallProfile
from gateway.channels.base import (
    ChannelEvent,
    Clear,
    FlowControl,
    Hangup,
    ParamsUpdated,
    Paused,
    PlatformFault,
    PlaybackIdle,
    PlaybackStarted,
    Resumed,
    SendMark,
    Transfer,
)
from gateway.channels.capabilities import Capabilities, ClearBy, Marks, TransferBy
from tests.call.harness import EMULATED, NATIVE, Line, Platform

SENTENCE = "Twenty characters here."
LENGTH_S = 1.16
"""What the harness makes of it, in whole frames."""
IDLE = Capabilities(dialect="test", marks=Marks.IDLE, clear=ClearBy.NATIVE, max_lead_ms=200)


def tell(line: Line, event: ChannelEvent) -> None:
    line.do(line.machine.channel(event, line.now))


def frames(line: Line) -> int:
    return sum(isinstance(action, events.SendAudio) for action in line.actions)


# ---- flow control


def test_a_full_platform_gets_neither_audio_nor_marks_until_it_has_room() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.say(SENTENCE, 2)
    line.run(0.4)
    tell(line, FlowControl(False))
    before, marks = frames(line), len(line.sent(SendMark))
    line.run(3.0)
    assert (frames(line), len(line.sent(SendMark))) == (before, marks)
    assert not line.find("error")
    assert not line.find("utterance_ended", id=2)
    tell(line, FlowControl(True))
    line.until(lambda: line.quiet)
    assert line.heard_s(2) == pytest.approx(LENGTH_S)
    ended = line.one("utterance_ended", id=2)
    assert ended.fields["reason"] == "completed"
    assert ended.fields["heard_text"] == SENTENCE


def test_a_platform_that_never_has_room_again_does_not_hold_up_the_end() -> None:
    line = Line(CallProfile(drain_s=5.0)).greeted()
    line.say(SENTENCE, 2)
    tell(line, FlowControl(False))
    line.output(RuntimeEndSession({}))
    line.run(5.1)
    assert line.machine.ended


def test_an_interruption_while_the_platform_is_full_still_clears_it() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.say(SENTENCE, 2)
    line.run(0.4)
    tell(line, FlowControl(False))
    line.keys("1")
    assert line.find("cleared")
    assert line.one("utterance_ended", id=2).fields["reason"] == "barge_in"


def test_after_many_clears_of_a_full_platform_everything_is_heard_as_at_first() -> None:
    line = Line(capabilities=NATIVE).greeted()
    for turn in range(2, 42):
        line.say(SENTENCE, turn)
        line.run(0.4)
        tell(line, FlowControl(False))
        line.keys("1#")
        tell(line, FlowControl(True))
    assert len(line.sent(Clear)) == 40
    line.say(SENTENCE, 42)
    line.until(lambda: line.quiet)
    assert line.heard_s(42) == pytest.approx(LENGTH_S)
    assert line.one("utterance_ended", id=42).fields["heard_text"] == SENTENCE


# ---- hold


def test_on_hold_nothing_is_played_and_everything_goes_on_afterwards() -> None:
    line = Line().greeted()
    line.say(SENTENCE, 2)
    line.run(0.4)
    tell(line, Paused())
    before = frames(line)
    line.run(10.0)
    assert frames(line) == before
    assert not line.find("utterance_ended", id=2)
    tell(line, Resumed())
    line.until(lambda: line.quiet)
    started = line.one("utterance_started", id=2).t
    ended = line.one("utterance_ended", id=2)
    assert ended.t - started == pytest.approx(LENGTH_S + 10.0, abs=0.021)
    assert (ended.fields["reason"], ended.fields["heard_text"]) == ("completed", SENTENCE)


def test_silence_on_hold_means_nothing() -> None:
    line = Line(CallProfile(inactivity_s=3.0)).greeted()
    tell(line, Paused())
    line.run(20.0)
    assert not line.find("inactivity")
    tell(line, Resumed())
    line.run(2.9)
    assert not line.find("inactivity")
    line.run(0.2)
    assert len(line.find("inactivity")) == 1


def test_what_the_agent_says_meanwhile_waits_for_the_caller() -> None:
    line = Line().greeted()
    tell(line, Paused())
    line.say(SENTENCE, 2)
    line.run(5.0)
    assert not line.find("utterance_started", id=2)
    tell(line, Resumed())
    line.until(lambda: line.quiet)
    assert line.heard_s(2) == pytest.approx(LENGTH_S)


def test_holds_do_not_nest_and_a_stray_resume_is_nothing() -> None:
    line = Line().greeted()
    tell(line, Resumed())
    line.say(SENTENCE, 2)
    line.run(0.4)
    tell(line, Paused())
    line.run(1.0)
    tell(line, Paused())
    line.run(1.0)
    tell(line, Resumed())
    tell(line, Resumed())
    line.until(lambda: line.quiet)
    started = line.one("utterance_started", id=2).t
    ended = line.one("utterance_ended", id=2).t
    assert ended - started == pytest.approx(LENGTH_S + 2.0, abs=0.021)


# ---- a platform that tells only when it has run dry


def dry_line() -> Line:
    line = Line(capabilities=IDLE, platform=Platform(), echo_marks=False)
    line.run(0.1)
    line.say("Hello.", 1)
    return line


def test_the_last_utterance_is_over_when_the_platform_says_so() -> None:
    line = dry_line()
    line.run(1.0)
    assert not line.find("utterance_ended", id=1)
    assert not line.sent(SendMark)
    tell(line, PlaybackIdle())
    assert line.t("utterance_ended", id=1) == pytest.approx(1.1)


def test_one_that_another_follows_at_once_is_over_by_the_clock() -> None:
    line = dry_line()
    line.say(SENTENCE, 2)
    line.run(1.0)
    assert line.find("utterance_ended", id=1)
    assert not line.find("utterance_ended", id=2)


def test_a_report_that_never_comes_is_not_waited_for_for_ever() -> None:
    line = dry_line()
    line.run(0.3 + line.profile.mark_grace_s + 0.1)
    assert line.one("utterance_ended", id=1).fields["reason"] == "completed"


def test_a_report_of_earlier_audio_does_not_end_what_was_just_sent() -> None:
    line = dry_line()
    line.run(0.1)
    tell(line, PlaybackIdle())
    line.run(0.1)
    assert not line.find("utterance_ended", id=1)


def test_a_playback_that_begins_late_is_heard_late() -> None:
    line = Line(capabilities=IDLE, platform=Platform(delay_s=0.3), echo_marks=False).greeted()
    line.say(SENTENCE, 2)
    line.until(lambda: bool(line.find("utterance_started", id=2)))
    line.run(0.3)
    tell(line, PlaybackStarted())
    line.run(0.3)
    line.keys("1")
    heard_s = line.one("utterance_ended", id=2).fields["heard_s"]
    assert heard_s == pytest.approx(0.3, abs=0.05)


# ---- messages longer than a frame


@pytest.mark.parametrize("message_ms", [100, 200])
def test_audio_is_sent_early_enough_to_be_gathered(message_ms: int) -> None:
    line = Line(CallProfile(lead_ms=20), replace(EMULATED, min_message_ms=message_ms))
    line.run(0.1)
    line.say(SENTENCE, 1)
    line.until(lambda: frames(line) > 0)
    ahead_s = [a for a in line.actions if isinstance(a, events.SendAudio)][-1].due - line.now
    assert ahead_s >= message_ms / 1000


# ---- what the platform says of the call in its course


def test_a_fault_of_the_platform_is_recorded_and_the_call_goes_on() -> None:
    line = Line(CallProfile()).greeted()
    tell(line, PlatformFault("429", "rate limit exceeded"))
    fault = line.one("error").fields
    assert fault["code"] == "platform.fault"
    assert fault["said"] == "429: rate limit exceeded"
    assert "429" not in fault["message"], "which goes to the log"
    assert not line.find("call_ended")


def test_updates_change_the_language_and_declared_variables() -> None:
    line = Line(CallProfile(variables=frozenset({"tier"}))).greeted()
    tell(line, ParamsUpdated("de-DE", {"tier": "gold", "stranger": 1}))
    assert [i.data for i in line.inputs if i.type is InputType.VARIABLES] == [{"tier": "gold"}]
    line.say("Guten Tag.", 2)
    asked = [a for a in line.actions if isinstance(a, events.Synthesize)][-1]
    assert asked.language == "de-DE"


# ---- the words before a transfer


def test_the_caller_hears_why_before_being_handed_on() -> None:
    line = Line(capabilities=replace(EMULATED, transfer=TransferBy.OUTPUTS)).greeted()
    params = {"ESCALATION_MESSAGE": "A colleague takes over.", "queue": "gold", "skill": [1, 2]}
    metadata = {"session_escalated": True, "params": params}
    line.output(RuntimeEndSession(metadata))
    assert not line.sent(Transfer)
    line.until(lambda: line.machine.ended)
    heard = line.find("utterance_ended", heard_text="A colleague takes over.")
    assert heard[0].fields["reason"] == "completed"
    [transfer] = line.sent(Transfer)
    assert transfer.target == ""
    assert transfer.outputs == {**params, "skill": "[1,2]"}


def test_a_plain_end_carries_its_params_too() -> None:
    line = Line().greeted()
    line.output(RuntimeEndSession({"reason": "done", "params": {"score": 5, "none": None}}))
    line.until(lambda: line.machine.ended)
    assert line.sent(Hangup)[0].outputs == {"score": "5"}
