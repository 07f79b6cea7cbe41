"""Rules of a call: End."""

from __future__ import annotations

import pytest

from gateway.bidi import REMOTE_DISCONNECTED
from gateway.call.events import CallEnded, CloseRuntime, InputType, RuntimeEndSession
from gateway.call.profile import CallProfile
from gateway.channels.base import (
    DtmfIn,
    Ended,
    EndReason,
    GoAway,
    Hangup,
    MarkReached,
    TextIn,
    Transfer,
)
from gateway.channels.capabilities import Capabilities, TransferBy
from gateway.errors import AssetError, RestError, RuntimeFailure, SpeechError
from tests.call.harness import NATIVE, Line, tone

GOODBYE = "Thank you for calling us today. Goodbye."
PHONE = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}
ABLE = Capabilities(dialect="test", transfer=TransferBy.MESSAGE)
BY_REST = Capabilities(dialect="test", transfer=TransferBy.REST)
REFUSED = RestError("rest.refused", "no", hint="pay")


def ending(capabilities: Capabilities = NATIVE, **metadata: object) -> Line:
    """The agent says goodbye and ends the session."""
    line = Line(capabilities=capabilities).greeted()
    line.say(GOODBYE, 2)
    line.output(RuntimeEndSession(metadata))
    return line


def test_the_goodbye_is_heard_before_the_hang_up() -> None:
    line = ending(reason="done")
    line.until(lambda: line.machine.ended)
    assert line.heard_s(2) == pytest.approx(1.96)
    ended = line.one("utterance_ended", id=2)
    assert (ended.fields["reason"], ended.fields["heard_text"]) == ("completed", GOODBYE)
    assert line.sent(Hangup) == [Hangup(EndReason.COMPLETED, {"reason": "done"})]
    assert line.one("call_ended").t >= ended.t
    assert line.actions[-3:] == [
        CloseRuntime(),
        line.records[-1],
        CallEnded(EndReason.COMPLETED),
    ]
    line.check()


def test_nobody_interrupts_the_goodbye() -> None:
    line = ending()
    line.run(0.3)
    line.speak(0.5, "wait")
    line.keys("1")
    line.do(line.machine.channel(TextIn("wait"), line.now))
    line.until(lambda: line.machine.ended)
    assert not line.find("barge_in")
    assert not line.texts()
    assert line.one("utterance_ended", id=2).fields["reason"] == "completed"


def test_music_does_not_hold_up_the_end() -> None:
    line = Line().greeted()
    line.files["m.wav"] = tone(9, 60.0)
    line.payload(2, audioUri="m.wav", cancellable=True)
    line.completed(2)
    line.run(1.0)
    line.output(RuntimeEndSession({}))
    assert line.one("utterance_ended", id=2).fields["reason"] == "cancelled"
    line.run(0.1)
    assert line.machine.ended


def test_a_file_that_is_not_cancellable_plays_to_its_end() -> None:
    line = Line().greeted()
    line.files["chime.wav"] = tone(9, 3.0)
    line.payload(2, audioUri="chime.wav")
    line.completed(2)
    line.output(RuntimeEndSession({}))
    line.until(lambda: line.machine.ended)
    assert line.one("utterance_ended", id=2).fields["heard_s"] == 3.0


def test_the_wait_for_what_must_be_heard_is_bounded() -> None:
    line = Line(CallProfile(drain_s=2.0)).greeted()
    line.files["epic.wav"] = tone(9, 60.0)
    line.payload(2, audioUri="epic.wav")
    line.completed(2)
    line.output(RuntimeEndSession({}))
    line.run(1.9)
    assert not line.machine.ended
    line.run(0.2)
    assert line.machine.ended
    assert line.one("utterance_ended", id=2).fields["reason"] == "dropped"


def test_outputs_that_the_end_overtook_are_still_heard() -> None:
    line = Line().greeted()
    line.text("First.", 2)
    line.output(RuntimeEndSession({}))
    line.run(0.2)
    line.text("Second.", 2)
    line.completed(2)
    line.until(lambda: line.machine.ended)
    assert line.one("utterance_ended", id=3).fields["heard_text"] == "Second."


def test_a_turn_that_never_completes_does_not_hold_up_the_end() -> None:
    line = Line().greeted()
    line.text("Bye.", 2)
    line.output(RuntimeEndSession({}))
    line.run(1.0)
    assert line.machine.ended


def test_a_runtime_that_closes_after_its_end_changes_nothing() -> None:
    line = ending()
    line.do(line.machine.runtime_lost(RuntimeFailure("runtime.closed", "closed"), line.now))
    line.until(lambda: line.machine.ended)
    assert not line.find("error")
    assert line.one("call_ended").fields["reason"] == "completed"


# ---- transfer


def test_a_number_to_dial_becomes_a_transfer_where_the_dialect_can() -> None:
    line = ending(ABLE, **PHONE)
    line.until(lambda: line.machine.ended)
    assert line.sent(Transfer) == [Transfer("+15550123", PHONE)]
    assert not line.sent(Hangup)
    assert line.one("transfer").fields == {"target": "+15550123", "metadata": PHONE}
    assert line.one("call_ended").fields["reason"] == "transferred"
    assert line.one("transfer").t >= line.one("utterance_ended", id=2).t


# ---- … by REST, whose answer decides


def asking() -> Line:
    """The platform has been asked to hand the caller on."""
    line = ending(BY_REST, **PHONE)
    line.until(lambda: bool(line.sent(Transfer)))
    return line


def test_a_transfer_by_rest_has_not_happened_before_the_platform_says_so() -> None:
    line = asking()
    line.run(5.0)
    assert not line.machine.ended
    assert not line.sent(Hangup)
    line.do(line.machine.handed_on(line.now))
    assert line.one("call_ended").fields["reason"] == "transferred"
    assert line.sent(Transfer) == [Transfer("+15550123", PHONE)]
    assert not line.sent(Hangup)
    line.check()


def test_a_caller_who_was_not_handed_on_hears_the_fallback() -> None:
    line = asking()
    line.do(line.machine.not_handed_on(REFUSED, line.now))
    assert line.one("error").fields == {"code": "rest.refused", "message": "no", "hint": "pay"}
    line.until(lambda: line.machine.ended)
    (fallback,) = line.find("utterance_ended")[-1:]
    assert fallback.fields["heard_text"] == CallProfile().fallback_message
    assert line.one("call_ended").fields["reason"] == "error"
    assert line.sent(Hangup) == [Hangup(EndReason.ERROR)]
    line.check()


@pytest.mark.parametrize("refused", [False, True])
def test_a_platform_that_takes_the_caller_off_before_it_answers(refused: bool) -> None:
    line = asking()
    line.do(line.machine.channel(Ended(), line.now))
    assert not line.machine.ended
    machine, now = line.machine, line.now
    line.do(machine.not_handed_on(REFUSED, now) if refused else machine.handed_on(now))
    ended = line.one("call_ended").fields["reason"]
    assert ended == ("remote_hangup" if refused else "transferred")
    assert not line.sent(Hangup)
    line.check()


def test_nobody_hangs_up_on_a_caller_who_is_being_handed_on() -> None:
    line = asking()
    line.do(line.machine.shutdown("Goodbye.", line.now))
    line.do(line.machine.end(EndReason.SHUTDOWN, line.now))
    assert line.one("call_ended").fields["reason"] == "shutdown"
    assert not line.sent(Hangup)
    assert line.machine.handed_on(line.now) == []


def test_an_answer_that_was_not_waited_for_changes_nothing() -> None:
    line = Line(capabilities=BY_REST).greeted()
    assert not line.machine.handed_on(line.now)
    assert not line.machine.not_handed_on(REFUSED, line.now)
    assert line.machine.conversing


def test_an_escalation_or_hand_off_without_number_is_a_transfer_too() -> None:
    for metadata in (
        {"session_escalated": True},
        {"params": {"LIVE_AGENT_HANDOFF": {"sipRefer": True}}},
    ):
        line = ending(ABLE, **metadata).run(3.0)
        assert line.machine.ended
        assert line.sent(Transfer) == [Transfer("", metadata)]


def test_a_dialect_without_transfer_hangs_up_and_says_why() -> None:
    metadata = {"session_escalated": True, **PHONE}
    line = ending(NATIVE, **metadata)
    line.until(lambda: line.machine.ended)
    assert line.one("transfer").fields == {"target": "", "metadata": metadata}
    assert line.sent(Hangup) == [Hangup(EndReason.TRANSFERRED, metadata)]
    line = ending(NATIVE, **PHONE)
    line.until(lambda: line.machine.ended)
    assert line.sent(Hangup) == [Hangup(EndReason.COMPLETED, PHONE)]


def test_metadata_of_any_shape_end_the_call() -> None:
    for metadata in ({"params": 5}, {"params": {"PHONE_GATEWAY_TRANSFER": "x"}}, {"x": None}):
        line = ending(ABLE, **metadata).run(3.0)
        assert line.machine.ended
        assert line.sent(Hangup) == [Hangup(EndReason.COMPLETED, metadata)]


# ---- the caller goes


def test_a_caller_who_hangs_up_is_told_to_the_runtime_which_may_finish() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.say(GOODBYE, 2)
    line.run(0.5)
    line.do(line.machine.channel(Ended(), line.now))
    assert line.inputs[-1].type is InputType.EVENT
    assert line.inputs[-1].text == REMOTE_DISCONNECTED
    assert line.one("utterance_ended", id=2).fields["reason"] == "dropped"
    line.run(0.5)
    assert not line.machine.ended
    line.output(RuntimeEndSession({}))
    assert line.machine.ended
    assert line.actions[-1] == CallEnded(EndReason.REMOTE_HANGUP)
    assert not line.sent(Hangup)
    line.check()


def test_a_runtime_that_does_not_finish_is_given_two_seconds() -> None:
    line = Line().greeted()
    line.do(line.machine.channel(Ended(), line.now))
    line.text("To nobody.", 2)
    line.run(1.9)
    assert not line.machine.ended
    line.run(0.2)
    assert line.machine.ended
    assert not line.find("utterance_queued", text="To nobody.")


def test_a_lost_transport_ends_the_same_way_with_its_own_reason() -> None:
    line = Line().greeted()
    line.do(line.machine.transport_lost(line.now))
    line.do(line.machine.transport_lost(line.now))
    assert [i.text for i in line.inputs] == [REMOTE_DISCONNECTED]
    line.run(2.1)
    assert line.one("call_ended").fields["reason"] == "transport_lost"


def test_a_hang_up_during_the_goodbye_ends_at_once() -> None:
    line = ending()
    line.run(0.3)
    line.do(line.machine.channel(Ended(), line.now))
    assert line.machine.ended
    assert line.one("call_ended").fields["reason"] == "remote_hangup"
    assert not line.inputs


def test_a_hang_up_before_the_runtime_is_open_ends_at_once() -> None:
    line = Line(runtime_s=None)
    line.do(line.machine.channel(Ended(), line.now))
    assert line.machine.ended


# ---- the gateway ends


def test_a_shutdown_says_its_message_then_hangs_up() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.say(GOODBYE, 2)
    line.run(0.5)
    line.do(line.machine.shutdown("We are closing.", line.now))
    assert line.sent(GoAway) == [GoAway()]
    assert line.one("utterance_ended", id=2).fields["reason"] == "cancelled"
    line.until(lambda: line.machine.ended)
    assert line.find("utterance_ended")[-1].fields["heard_text"] == "We are closing."
    assert line.sent(Hangup) == [Hangup(EndReason.SHUTDOWN)]
    line.check()


def test_a_shutdown_lets_protected_words_be_heard_first() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": "Terms apply.", "disableBargeIn": True})
    line.run(0.2)
    line.do(line.machine.shutdown("We are closing.", line.now))
    line.until(lambda: line.machine.ended)
    assert [r.fields["reason"] for r in line.find("utterance_ended")] == ["completed"] * 3


def test_a_call_that_lasts_too_long_is_ended_politely() -> None:
    line = Line(CallProfile(max_call_s=10.0)).greeted()
    line.until(lambda: line.machine.ended)
    assert line.find("utterance_ended")[-1].fields["heard_text"] == line.profile.limit_message
    assert line.one("call_ended").fields["reason"] == "limit"
    assert line.t("call_ended") < 15.0


def test_a_message_that_cannot_be_spoken_does_not_hold_up_the_end() -> None:
    line = Line().greeted()
    line.tts_silent = True
    line.do(line.machine.shutdown("We are closing.", line.now))
    line.run(5.1)
    assert line.machine.ended
    assert line.find("error", code="speech.timeout")


def test_an_empty_message_hangs_up_at_once() -> None:
    line = Line().greeted()
    line.do(line.machine.shutdown(" ", line.now))
    line.run(0.04)
    assert line.machine.ended


def test_after_a_farewell_has_begun_nothing_else_is_said_or_heard() -> None:
    line = Line().greeted()
    line.do(line.machine.shutdown("We are closing.", line.now))
    line.text("Too late.", 2)
    line.speak(0.3, "hello")
    line.run(0.5)
    line.do(line.machine.runtime_lost(RuntimeFailure("runtime.closed", "gone"), line.now))
    line.until(lambda: line.machine.ended)
    assert not line.find("utterance_queued", text="Too late.")
    assert not line.inputs
    assert line.one("call_ended").fields["reason"] == "shutdown"


def test_ending_at_once_ends_at_once() -> None:
    line = Line().greeted()
    line.say(GOODBYE, 2)
    line.do(line.machine.end(EndReason.ERROR, line.now))
    assert line.sent(Hangup) == [Hangup(EndReason.ERROR)]
    assert line.actions[-1] == CallEnded(EndReason.ERROR)
    line.check()


def test_after_the_end_every_method_returns_nothing() -> None:
    line = Line().greeted()
    line.do(line.machine.end(EndReason.ERROR, line.now))
    machine, now = line.machine, line.now + 1
    assert machine.ended
    assert machine.tick(now) == []
    assert machine.audio(b"\0\0", now) == []
    assert machine.vad(1.0, 99.0, now) == []
    assert machine.recognised(1, "x", True, now) == []
    assert machine.recognise_failed(1, "x", now) == []
    assert machine.channel(DtmfIn("1"), now) == []
    assert machine.channel(MarkReached("1.0"), now) == []
    assert machine.channel(Ended(), now) == []
    assert machine.runtime_opened(now) == []
    assert machine.runtime(RuntimeEndSession({}), now) == []
    assert machine.runtime_lost(RuntimeFailure("a", "b"), now) == []
    assert machine.speech_audio(1, "x", b"\0\0", now) == []
    assert machine.speech_finished(1, now) == []
    assert machine.speech_failed(1, SpeechError("a", "b"), now) == []
    assert machine.audio_loaded(1, b"\0\0", now) == []
    assert machine.audio_failed(1, AssetError("a", "b"), now) == []
    assert machine.ambience(b"\0\0", now) == []
    assert machine.handed_on(now) == []
    assert machine.not_handed_on(REFUSED, now) == []
    assert machine.transport_lost(now) == []
    assert machine.shutdown("x", now) == []
    assert machine.end(EndReason.ERROR, now) == []
