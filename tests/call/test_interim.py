"""What a streaming recogniser tells while the caller speaks, and a sentence that is still made."""

from __future__ import annotations

import pytest

from gateway.call.events import Recognise, Synthesize
from gateway.call.listening import LATE_WORDS_S, MISSED_S
from gateway.call.profile import BargeIn, CallProfile
from gateway.channels.base import Started, VariablesIn
from gateway.errors import SpeechError
from tests.call.harness import LINEAR_8K, Line, tone


def interim(line: Line, text: str, length_s: float = 0.3) -> None:
    """Words that ended just now."""
    end_s = line.caller_s
    line.do(line.machine.interim(text, end_s - length_s, end_s, line.now))


def asks(line: Line) -> list[Recognise]:
    return [action for action in line.actions if isinstance(action, Recognise)]


def test_words_that_voice_activity_missed_are_a_turn() -> None:
    line = Line().greeted()
    line.words = "yes"
    line.run(1.0)
    interim(line, "yes")
    line.run(1.0)
    assert line.texts() == ["yes"]
    (ask,) = asks(line)
    assert ask.end_s - ask.start_s < MISSED_S
    line.one("user_speech_started")
    line.one("user_speech_ended")


def test_missed_words_interrupt_the_agent() -> None:
    line = Line(CallProfile(barge_in=BargeIn.BOTH)).greeted()
    line.say("A long answer that goes on and on and on.", 2)
    line.run(0.5)
    line.words = "stop"
    interim(line, "stop")
    line.one("barge_in", by="speech")
    line.run(1.0)
    assert line.texts()[-1] == "stop"


def test_words_under_protected_audio_do_nothing() -> None:
    line = Line(CallProfile(forbid_barge_in=True)).greeted()
    line.say("A disclaimer that has to be heard.", 2)
    line.run(0.5)
    interim(line, "stop")
    line.run(0.5)
    assert line.find("barge_in") == []
    assert asks(line) == []


def test_words_that_are_told_late_begin_no_second_turn() -> None:
    line = Line().greeted()
    line.speak(0.5, "my balance")
    line.until(lambda: bool(line.texts()))
    interim(line, "my balance")
    late_s = line.caller_s + LATE_WORDS_S / 2
    line.do(line.machine.interim("my balance", late_s - 0.3, late_s, line.now))
    line.run(2.0)
    assert line.texts() == ["my balance"]


def test_interim_words_are_told_and_never_given_to_the_agent() -> None:
    line = Line().greeted()
    line.speak(1.0, "my balance please")
    line.run(0.6)
    interim(line, "my")
    interim(line, "...")
    line.until(lambda: bool(line.texts()))
    assert line.texts() == ["my balance please"]
    assert [r.fields["text"] for r in line.find("user_text", final=False)] == ["my"]


def test_the_stretch_that_is_asked_about_is_known() -> None:
    line = Line().greeted()
    begun = line.caller_s
    line.speak(0.5, "hi")
    line.run(1.0)
    (ask,) = asks(line)
    assert ask.start_s == pytest.approx(begun - 0.3, abs=0.05)
    assert len(ask.pcm) == pytest.approx((ask.end_s - ask.start_s) * 16000, abs=4)


# ---- the language of the conversation


def languages(line: Line) -> list[str]:
    return [action.language for action in line.actions if isinstance(action, Synthesize)]


PROFILE = CallProfile(language_variable="language", variables=frozenset({"language"}))


def test_a_session_variable_changes_the_language_from_the_next_utterance_on() -> None:
    line = Line(PROFILE).greeted()
    line.do(line.machine.channel(VariablesIn({"language": "de-DE"}), line.now))
    line.say("Guten Tag.", 2)
    line.do(line.machine.channel(VariablesIn({"language": "English", "other": 1}), line.now))
    line.say("Und weiter.", 3)
    assert languages(line) == ["en-US", "de-DE", "de-DE"]
    assert line.machine.language == "de-DE"


def test_the_platform_may_name_the_language_at_the_start() -> None:
    start = Started("c", in_format=LINEAR_8K, out_format=LINEAR_8K, custom={"language": "fr-FR"})
    assert languages(Line(PROFILE, start=start).greeted()) == ["fr-FR"]
    undeclared = CallProfile(language_variable="language")
    assert languages(Line(undeclared, start=start).greeted()) == ["en-US"]


def test_the_runtime_says_that_the_language_has_changed() -> None:
    line = Line(PROFILE).greeted()
    line.payload(2, sessionLanguage="es-ES")
    line.say("Hola.", 2)
    line.run(1.0)
    assert languages(line) == ["en-US", "es-ES"]
    line.check()


def test_the_caller_changes_the_language_by_speaking_it() -> None:
    line = Line().greeted()
    line.do(line.machine.speak_language("de-DE", line.now))
    line.speak(0.5, "Guten Tag")
    line.run(1.0)
    assert asks(line)[-1].language == "de-DE"


# ---- a sentence that comes in pieces


def streamed(line: Line, number: int, text: str, *pieces: float, more: bool = False) -> None:
    for seconds in pieces:
        pcm = tone(number, seconds)
        line.do(line.machine.speech_audio(number, text, pcm, line.now, True))
    if not more:
        line.do(line.machine.speech_audio(number, text, b"", line.now))


TEXT = "one two three four five six seven eight nine ten"


def said(line: Line) -> int:
    """The second utterance, whose speech the test makes itself."""
    line.tts_silent = True
    line.say(TEXT, 2)
    return 2


def test_pieces_sound_without_a_gap_between_them() -> None:
    line = Line().greeted()
    number = said(line)
    streamed(line, number, TEXT, 0.033, 0.5, 0.007, 0.46)
    line.do(line.machine.speech_finished(number, line.now))
    line.until(lambda: line.quiet)
    ended = line.one("utterance_ended", id=number)
    assert ended.fields["heard_s"] == 1.0
    assert ended.fields["heard_text"] == TEXT
    frames = [frame for frame in line.platform.played if frame.frame[:2] == b"\x02\x00"]
    assert len(frames) == 50


def test_half_of_a_whole_sentence_heard_is_half_of_its_words() -> None:
    line = Line().greeted()
    number = said(line)
    streamed(line, number, TEXT, 1.0, 1.0, 1.0)
    line.until(lambda: line.heard_s(number) >= 1.5)
    line.keys("1")
    heard = line.one("utterance_ended", id=number).fields["heard_text"]
    assert heard in ("one two three four", "one two three four five")


def test_of_a_sentence_that_is_still_made_no_more_counts_than_can_have_been_heard() -> None:
    line = Line().greeted()
    number = said(line)
    streamed(line, number, TEXT, 0.5, more=True)
    line.until(lambda: line.heard_s(number) >= 0.4)
    line.keys("1")
    heard = line.one("utterance_ended", id=number).fields["heard_text"]
    assert heard == "one"


def test_a_sentence_that_broke_off_never_counts_as_heard_whole() -> None:
    line = Line().greeted()
    number = said(line)
    streamed(line, number, TEXT, 3.5, more=True)
    line.do(line.machine.speech_failed(number, SpeechError("speech.unavailable", "gone"), line.now))
    line.until(lambda: line.quiet)
    ended = line.one("utterance_ended", id=number).fields
    assert ended["heard_s"] == 3.5
    assert TEXT.startswith(ended["heard_text"] + " ")
    assert ended["heard_text"]


def test_sentences_in_pieces_and_whole_ones_follow_each_other() -> None:
    line = Line().greeted()
    number = said(line)
    streamed(line, number, "One two.", 0.25, 0.25)
    line.do(line.machine.speech_audio(number, "Three four.", tone(2, 0.5), line.now))
    streamed(line, number, "Five six.", 0.5)
    line.do(line.machine.speech_finished(number, line.now))
    line.until(lambda: line.quiet)
    ended = line.one("utterance_ended", id=number).fields
    assert ended["heard_text"] == "One two. Three four. Five six."
    assert ended["heard_s"] == 1.5
