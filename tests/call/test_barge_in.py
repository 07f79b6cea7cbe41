"""Rules of a call: Barge-in and Hold music."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.bidi import NOISE_TEXT, interrupted_text
from gateway.call.events import (
    CancelUtterance,
    InputType,
    Recognise,
    Record,
    RuntimeInterruption,
    SendAudio,
    ToChannel,
    ToRuntime,
)
from gateway.call.profile import BargeIn, CallProfile
from gateway.channels.base import Clear, MarkReached, SendMark, TextIn
from gateway.channels.capabilities import Capabilities, ClearBy
from tests.call.harness import EMULATED, NATIVE, Line, Platform, tone, value_of

LONG = "This is a rather long sentence that takes its time to be spoken."


def talking(profile: CallProfile | None = None, capabilities: Capabilities = NATIVE) -> Line:
    """The agent is in the middle of a long sentence, its turn complete."""
    line = Line(profile, capabilities).greeted()
    line.say(LONG, 2)
    return line.run(1.0)


def reasons(line: Line) -> dict[int, str]:
    return {r.fields["id"]: r.fields["reason"] for r in line.find("utterance_ended")}


# ---- speech


def test_speech_cuts_what_is_interruptible_in_the_same_instant() -> None:
    line = talking(CallProfile(barge_in_awareness=True))
    line.speak(1.0, "stop please")
    line.until(lambda: bool(line.find("barge_in")))
    at = next(i for i, a in enumerate(line.actions) if a == ToChannel(Clear(barge_in=True)))
    shapes = [
        a.kind if isinstance(a, Record) else type(a).__name__ for a in line.actions[at : at + 7]
    ]
    assert shapes == [
        "ToChannel",
        "CancelUtterance",
        "barge_in",
        "cleared",
        "utterance_ended",
        "runtime_input",
        "ToRuntime",
    ]
    ended = line.find("utterance_ended")[-1].fields
    assert ended["reason"] == "barge_in"
    assert line.one("barge_in").fields == {"by": "speech", "cut": [2]}
    told = line.actions[at + 6]
    assert told == ToRuntime(
        InputType.TEXT, text=interrupted_text(ended["heard_text"]), will_continue=True
    )
    assert LONG.startswith(ended["heard_text"])
    assert ended["heard_s"] == pytest.approx(line.heard_s(2), abs=0.021)


def test_from_the_voice_detectors_word_to_the_clear_no_time_passes() -> None:
    line = talking()
    first = line.machine.vad(0.9, 50.0, line.now)
    assert first == []
    second = line.machine.vad(0.9, 50.032, line.now)
    assert ToChannel(Clear(barge_in=True)) in second


def test_after_the_clear_nothing_of_the_cut_utterance_is_sent() -> None:
    line = talking()
    line.speak(1.0, "stop")
    line.until(lambda: bool(line.find("barge_in")))
    before = len(line.platform.played)
    line.run(2.0)
    assert len(line.platform.played) == before


def test_the_callers_words_follow_the_interruption() -> None:
    line = talking()
    line.speak(0.6, "stop please")
    line.run(3.0)
    assert [(i.text, i.will_continue) for i in line.inputs if i.type is InputType.TEXT] == [
        ("", True),
        ("stop please", False),
    ]


def test_an_interruption_by_noise_is_told_as_noise() -> None:
    line = talking()
    line.speak(0.3, "")
    line.run(3.0)
    assert line.texts() == ["", NOISE_TEXT]


def test_a_recogniser_that_fails_counts_as_noise() -> None:
    line = talking()
    line.stt_silent = True
    line.speak(0.3)
    line.run(1.5)
    for ask in [a for a in line.actions if isinstance(a, Recognise)]:
        line.do(line.machine.recognise_failed(ask.segment_id, "speech.busy", line.now))
    assert line.texts() == ["", NOISE_TEXT]


def test_a_recogniser_that_never_answers_counts_as_noise_in_the_end() -> None:
    line = talking()
    line.stt_silent = True
    line.speak(0.3)
    line.run(27.0)
    assert line.texts() == ["", NOISE_TEXT]


def test_what_has_not_started_is_dropped_with_it() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.text(LONG, 2)
    line.text("Another one.", 2)
    line.run(1.0)
    line.speak(0.5, "stop")
    line.run(2.0)
    assert reasons(line) == {1: "completed", 2: "barge_in", 3: "dropped"}
    assert line.heard_s(3) == 0
    assert not line.find("utterance_started", id=3)


def test_an_answer_that_is_not_heard_yet_gives_way_too() -> None:
    line = Line(tts_s=1.0).greeted()
    line.text("Here is your answer.", 2)
    line.run(0.2)
    line.speak(0.5, "oh and another thing")
    line.run(2.5)
    assert reasons(line)[2] == "dropped"
    assert line.one("barge_in").fields == {"by": "speech", "cut": [2]}
    assert line.texts()[-1] == "oh and another thing"


def test_outputs_of_the_interrupted_turn_that_come_later_are_dropped() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.text(LONG, 2)
    line.run(1.0)
    line.speak(0.5, "stop")
    line.until(lambda: bool(line.find("barge_in")))
    line.text("Too late.", 2)
    line.completed(2)
    line.say("All right.", 3)
    line.run(3.0)
    assert line.one("runtime_output", text="Too late.").fields["dropped"] is True
    assert [r.fields["text"] for r in line.find("utterance_queued")] == [
        "Hello.",
        LONG,
        "All right.",
    ]


def test_the_interruption_tells_what_was_heard_of_the_whole_response() -> None:
    line = Line(CallProfile(barge_in_awareness=True), NATIVE).greeted()
    line.text("First part.", 2)
    line.text(LONG, 2)
    line.completed(2)
    line.run(2.5)
    line.speak(0.5, "stop")
    line.until(lambda: bool(line.find("barge_in")))
    part = line.find("utterance_ended")[-1].fields["heard_text"]
    assert part
    assert line.texts() == [interrupted_text(f"First part. {part}")]


# ---- protection


def test_protected_speech_is_not_cut_and_the_caller_is_ignored() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.payload(2, customizedResponse={"content": LONG, "disableBargeIn": True})
    line.completed(2)
    line.run(1.0)
    line.speak(0.6, "but I")
    line.run(6.0)
    assert not line.find("barge_in")
    assert not line.sent(Clear)
    assert not line.texts()
    assert not line.find("user_text")
    assert reasons(line)[2] == "completed"
    assert len(line.find("user_speech_started")) == 1


def test_the_app_and_the_profile_can_protect_everything() -> None:
    line = talking(CallProfile(disable_barge_in=True))
    line.speak(0.5, "stop")
    line.run(5.0)
    assert not line.find("barge_in")
    assert reasons(line)[2] == "completed"
    assert line.find("utterance_queued")[-1].fields["interruptable"] is False


def test_speech_alone_can_be_kept_from_interrupting() -> None:
    line = talking(CallProfile(barge_in=BargeIn.DTMF))
    line.speak(0.5, "stop")
    line.run(1.0)
    assert not line.find("barge_in")
    line.keys("1")
    assert line.one("barge_in").fields["by"] == "dtmf"


def test_speech_that_goes_on_into_an_interruptible_utterance_interrupts_it_there() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.payload(2, customizedResponse={"content": "Terms apply here.", "disableBargeIn": True})
    line.text(LONG, 2)
    line.completed(2)
    line.run(0.4)
    line.speak(1.5, "wait a moment")
    line.run(4.0)
    assert reasons(line) == {1: "completed", 2: "completed", 3: "barge_in"}
    assert line.one("barge_in").t >= line.one("utterance_ended", id=2).t
    assert line.texts() == ["", "wait a moment"]
    ask = next(a for a in line.actions if isinstance(a, Recognise))
    assert len(ask.pcm) / 16000 > 1.5


def test_speech_that_goes_on_into_silence_counts_as_a_whole() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": "Terms apply.", "disableBargeIn": True})
    line.completed(2)
    line.run(0.3)
    line.speak(1.2, "I agree")
    line.run(3.0)
    assert line.texts() == ["I agree"]
    ask = next(a for a in line.actions if isinstance(a, Recognise))
    assert len(ask.pcm) / 16000 > 1.2


def test_a_pause_under_protection_that_outlasts_it_does_not_go_on() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": "Terms apply now.", "disableBargeIn": True})
    line.completed(2)
    line.run(0.2)
    line.speak(0.4, "hm")
    line.run(3.0)
    assert not line.texts()


def test_only_up_to_the_first_protected_utterance_is_cut() -> None:
    line = Line(CallProfile(lead_ms=400), NATIVE).greeted()
    line.text("One short start.", 2)
    line.payload(2, customizedResponse={"content": "Terms apply to this.", "disableBargeIn": True})
    line.text("And a question?", 2)
    line.completed(2)
    line.run(0.4)
    line.speak(0.2, "yes")
    line.run(5.0)
    assert reasons(line) == {1: "completed", 2: "barge_in", 3: "completed", 4: "completed"}
    assert line.one("barge_in").fields["cut"] == [2]


def test_a_protected_utterance_that_was_sent_ahead_starts_anew_at_once_and_whole() -> None:
    line = Line(CallProfile(lead_ms=1000), NATIVE).greeted()
    line.text("One short start.", 2)
    line.payload(2, customizedResponse={"content": "Terms apply.", "disableBargeIn": True})
    line.completed(2)
    line.run(0.3)
    assert line.platform.heard_s(3, line.now + 9) > 0
    line.speak(0.2, "yes")
    line.until(lambda: bool(line.find("barge_in")))
    cut_at = line.one("barge_in").t
    line.run(3.0)
    assert line.heard_s(3) == pytest.approx(12 * 0.05)
    assert line.one("utterance_started", id=3).t == pytest.approx(cut_at, abs=0.021)
    assert line.sent(SendMark)[-1] == SendMark("3.1")


# ---- positions and marks


def test_marks_of_cleared_audio_never_count_as_heard() -> None:
    line = Line(CallProfile(lead_ms=1000), NATIVE, echo_marks=False).greeted()
    line.say("One short sentence.", 2)
    line.run(0.2)
    assert SendMark("2.0") in line.sent(SendMark)
    line.speak(0.3, "stop")
    line.until(lambda: bool(line.find("barge_in")))
    line.do(line.machine.channel(MarkReached("2.0"), line.now))
    line.run(2.0)
    assert reasons(line)[2] == "barge_in"
    ended = line.one("utterance_ended", id=2).fields
    assert ended["heard_s"] < 0.5
    assert ended["heard_text"] in ("", "One", "One short")


def test_unheard_audio_on_the_platform_is_measured() -> None:
    line = Line(CallProfile(lead_ms=500), NATIVE).greeted()
    line.say(LONG, 2)
    line.run(1.0)
    line.speak(0.3, "stop")
    line.until(lambda: bool(line.find("cleared")))
    assert line.one("cleared").fields["unheard_ms"] == pytest.approx(500, abs=21)


def test_a_platform_that_plays_late_has_its_lag_taken_off() -> None:
    line = Line(capabilities=NATIVE, platform=Platform(delay_s=0.4)).greeted()
    line.say(LONG, 2)
    line.run(1.5)
    line.speak(0.3, "stop")
    line.run(1.0)
    claimed = line.one("utterance_ended", id=2).fields["heard_s"]
    assert claimed <= line.heard_s(2) + 0.021


def test_a_late_platform_is_cleared_of_music_that_it_still_plays() -> None:
    line = Line(capabilities=NATIVE, platform=Platform(delay_s=0.4)).greeted()
    line.files["m.wav"] = tone(9, 1.0)
    line.payload(2, audioUri="m.wav", cancellable=True)
    line.run(1.1)
    line.say("Here it is.", 2)
    line.run(2.0)
    assert line.sent(Clear) == [Clear(barge_in=False)]
    assert line.heard_s(9) < 0.75
    assert line.one("utterance_ended", id=2).fields["reason"] == "cancelled"


def test_speech_right_after_the_end_interrupts_nothing() -> None:
    line = Line(capabilities=EMULATED).greeted()
    line.speak(0.4, "hello")
    line.run(2.0)
    assert not line.find("barge_in")
    assert line.texts() == ["hello"]


# ---- thinking


def test_a_short_answer_counts_before_the_platform_has_told_of_the_end() -> None:
    line = Line(CallProfile(mark_grace_s=2.0), NATIVE, echo_marks=False).greeted()
    line.say("Yes or no.", 2)
    line.run(0.9)
    assert not line.find("utterance_ended", id=2), "nobody has said that it was heard"
    line.speak(0.3, "yes")
    line.run(1.0)
    assert line.texts()[-1] == "yes"
    assert line.one("user_text").fields["text"] == "yes"


def test_speech_while_the_runtime_thinks_only_sends_the_words() -> None:
    line = Line().greeted()
    line.speak(0.4, "first")
    line.run(1.5)
    line.speak(0.4, "second")
    line.run(1.5)
    assert line.texts() == ["first", "second"]
    assert not line.find("barge_in")


def test_words_given_into_an_answer_that_began_meanwhile_stop_it() -> None:
    line = Line().greeted()
    line.speak(1.0, "no I meant the other one")
    line.run(0.5)
    line.text(LONG, 2)
    line.run(0.4)
    assert not line.find("barge_in")
    line.run(2.0)
    assert line.one("barge_in").fields == {"by": "speech", "cut": [2]}
    assert line.texts() == ["", "no I meant the other one"]


def test_noise_does_not_stop_an_answer_that_begins_meanwhile() -> None:
    line = Line().greeted()
    line.speak(1.0, "")
    line.run(0.5)
    line.say(LONG, 2)
    line.run(5.0)
    assert not line.find("barge_in")
    assert reasons(line)[2] == "completed"


# ---- by others


def test_typed_text_interrupts_like_speech() -> None:
    line = talking()
    line.do(line.machine.channel(TextIn("stop"), line.now))
    assert line.one("barge_in").fields["by"] == "speech"
    assert line.texts() == ["", "stop"]
    assert line.one("user_text").fields == {"text": "stop", "final": True}


def test_typed_text_under_protection_is_ignored() -> None:
    line = talking(CallProfile(disable_barge_in=True))
    line.do(line.machine.channel(TextIn("stop"), line.now))
    assert line.texts() == []


def test_a_typed_fragment_opens_the_turn_and_the_rest_completes_it() -> None:
    line = Line().greeted()
    line.do(line.machine.channel(TextIn("my number", will_continue=True), line.now))
    line.do(line.machine.channel(TextIn("is 5"), line.now))
    assert [(i.text, i.will_continue) for i in line.inputs] == [
        ("my number", True),
        ("is 5", False),
    ]


def test_the_runtime_can_interrupt_itself_and_is_not_told() -> None:
    line = talking()
    line.output(RuntimeInterruption(barge_in=False))
    assert line.one("barge_in").fields == {"by": "runtime", "cut": [2]}
    assert line.sent(Clear) == [Clear(barge_in=False)]
    assert line.inputs == []
    line.text("Too late.", 2)
    assert not line.find("utterance_queued", text="Too late.")


def test_the_runtime_does_not_cut_what_is_protected() -> None:
    line = Line().greeted()
    line.payload(2, customizedResponse={"content": LONG, "disableBargeIn": True})
    line.run(0.5)
    line.output(RuntimeInterruption(barge_in=True))
    line.run(5.0)
    assert reasons(line)[2] == "completed"


# ---- hold music


def music(line: Line, turn: int, **payload: object) -> None:
    line.files["music.wav"] = tone(9, 2.0)
    line.payload(turn, audioUri="music.wav", cancellable=True, **payload)


def test_music_of_an_open_turn_cannot_be_interrupted_and_stops_for_the_answer() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.text("One moment.", 2)
    music(line, 2, loop=True)
    line.run(3.0)
    line.speak(0.5, "hello")
    line.run(2.0)
    assert not line.find("barge_in")
    assert not line.texts()
    line.text("Here it is.", 2)
    assert line.sent(Clear)[-1] == Clear(barge_in=False)
    line.completed(2)
    line.run(2.0)
    assert reasons(line) == {1: "completed", 2: "completed", 3: "cancelled", 4: "completed"}
    assert line.one("utterance_ended", id=3).fields["uri"] == "music.wav"
    assert line.heard_s(9) == pytest.approx(
        line.one("utterance_ended", id=3).fields["heard_s"], abs=0.021
    )


def test_music_of_a_complete_turn_can_be_interrupted() -> None:
    line = Line(capabilities=NATIVE).greeted()
    music(line, 2, loop=True)
    line.completed(2)
    line.run(1.0)
    line.speak(0.5, "hello")
    line.run(2.0)
    assert reasons(line)[2] == "barge_in"
    assert line.texts() == ["", "hello"]


def test_music_of_a_complete_turn_can_be_protected() -> None:
    line = Line(capabilities=NATIVE).greeted()
    music(line, 2, interruptable=False)
    line.completed(2)
    line.run(0.5)
    line.speak(0.5, "hello")
    line.run(3.0)
    assert not line.find("barge_in")
    assert reasons(line)[2] == "completed"


def test_speech_over_music_that_goes_on_when_the_turn_completes_interrupts_it() -> None:
    line = Line(capabilities=NATIVE).greeted()
    music(line, 2, loop=True)
    line.run(1.0)
    line.speak(1.0, "hello")
    line.run(0.5)
    assert not line.find("barge_in")
    line.completed(2)
    assert line.one("barge_in").fields["cut"] == [2]


def test_music_goes_when_the_words_before_it_are_interrupted() -> None:
    line = Line(capabilities=NATIVE).greeted()
    line.text(LONG, 2)
    music(line, 2, loop=True)
    line.run(1.0)
    line.speak(0.5, "never mind")
    line.run(2.0)
    assert reasons(line) == {1: "completed", 2: "barge_in", 3: "cancelled"}
    assert line.quiet


def test_new_music_replaces_old_music() -> None:
    line = Line().greeted()
    music(line, 2, loop=True)
    line.run(0.5)
    music(line, 2, loop=True)
    line.run(0.5)
    assert reasons(line) == {1: "completed", 2: "cancelled"}


def test_a_payload_of_the_clients_does_not_stop_the_music() -> None:
    line = Line().greeted()
    music(line, 2, loop=True)
    line.run(0.5)
    line.payload(2, chips=["a"])
    line.run(0.5)
    assert reasons(line) == {1: "completed"}


def test_what_protects_before_the_music_loses_nothing_when_it_is_cancelled() -> None:
    line = Line(CallProfile(lead_ms=1000), NATIVE).greeted()
    line.payload(2, customizedResponse={"content": "Terms apply here.", "disableBargeIn": True})
    music(line, 2, loop=True)
    line.run(0.4)
    line.text("Done.", 2)
    line.completed(2)
    line.run(3.0)
    values = [value_of(p.frame) for p in line.platform.played if p.share > 0.99]
    assert 9 not in values
    assert line.heard_s(2) == pytest.approx(17 * 0.05, abs=0.021)
    assert reasons(line) == {1: "completed", 2: "completed", 3: "cancelled", 4: "completed"}


def test_no_frame_is_sent_twice_without_need() -> None:
    line = talking()
    sent = [a for a in line.actions if isinstance(a, SendAudio)]
    line.run(5.0)
    assert line.heard_s(2) == pytest.approx(len(LONG) * 0.05)
    assert len(sent) < len([a for a in line.actions if isinstance(a, SendAudio)])
    assert CancelUtterance(2) not in line.actions


# ---- platforms that cannot be cleared


LOCAL = replace(EMULATED, clear=ClearBy.LOCAL_ONLY)


def test_without_a_clear_what_was_sent_is_still_heard_and_counts() -> None:
    line = talking(CallProfile(lead_ms=200), LOCAL)
    line.speak(0.5, "stop")
    line.until(lambda: bool(line.find("barge_in")))
    sent = len(line.platform.played)
    line.run(2.0)
    assert not line.sent(Clear)
    assert not line.find("cleared")
    assert len(line.platform.played) == sent
    ended = line.one("utterance_ended", id=2).fields
    assert ended["reason"] == "barge_in"
    assert ended["heard_s"] == pytest.approx(line.heard_s(2))
    assert LONG.startswith(ended["heard_text"])


def test_without_a_clear_nothing_that_stays_is_heard_twice() -> None:
    line = Line(CallProfile(lead_ms=1000), LOCAL).greeted()
    line.text("One short start.", 2)
    line.payload(2, customizedResponse={"content": "Terms apply.", "disableBargeIn": True})
    line.completed(2)
    line.run(0.3)
    line.speak(0.2, "yes")
    line.run(4.0)
    assert reasons(line) == {1: "completed", 2: "barge_in", 3: "completed"}
    assert line.heard_s(3) == pytest.approx(12 * 0.05)


def test_without_a_clear_a_hold_goes_on_where_the_sending_stopped() -> None:
    line = talking(CallProfile(resume_after_noise=True, lead_ms=200), LOCAL)
    line.speak(0.3, "")
    line.run(8.0)
    assert line.find("resumed")
    assert reasons(line)[2] == "completed"
    assert line.heard_s(2) == pytest.approx(len(LONG) * 0.05, abs=0.021)
