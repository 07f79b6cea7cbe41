"""The caller does one step after the other, driven by nothing but time and what it observes."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from gateway.simulate.caller import FRAME_S, Caller, Output, label, noise
from gateway.simulate.scenario import (
    Dtmf,
    EventPattern,
    Hangup,
    Noise,
    Say,
    Silence,
    Step,
    WaitEvent,
    WaitHeard,
    WaitQuiet,
    WaitTime,
)
from gateway.simulate.view import EAR_QUIET_S, CallView

RATE_HZ = 8000
FRAME_BYTES = 320
ONE_SECOND = b"\x01\x02" * RATE_HZ


class Line:
    """A caller on the line; records are given at the moment of the test's clock."""

    def __init__(self, *steps: Step, linger_s: float | None = 60.0, timeline: bool = True) -> None:
        self.view = CallView(timeline=timeline)
        clips = {n: ONE_SECOND for n, step in enumerate(steps) if isinstance(step, Say)}
        self.caller = Caller(steps, clips, RATE_HZ, self.view, linger_s=linger_s)
        self.frames = 0

    @property
    def now(self) -> float:
        return self.frames * FRAME_S

    def observe(self, kind: str, **fields: Any) -> None:
        self.view.record({"t": self.now, "kind": kind, **fields}, self.now)

    def run(self, seconds: float) -> list[Output]:
        outputs = []
        for _ in range(round(seconds / FRAME_S)):
            outputs.append(self.caller.frame(self.now))
            self.frames += 1
        return outputs

    def until_spoken(self, limit_s: float = 60.0) -> float:
        """The moment at which the caller first sends something."""
        for _ in range(round(limit_s / FRAME_S)):
            output = self.caller.frame(self.now)
            if output.pcm or output.digit or output.hangup:
                return self.now
            self.frames += 1
        raise AssertionError("the caller never did anything")

    def agent_says(self, number: int, words: str, seconds: float, turn: int = 1) -> None:
        self.observe("runtime_output", type="text", turn=turn, text=words)
        self.observe("utterance_queued", id=number, text=words)
        self.observe("utterance_started", id=number)
        self.observe("runtime_output", type="turnCompleted", turn=turn)
        self.run(seconds)
        self.observe("utterance_ended", id=number, reason="completed", heard_text=words)


def test_speech_goes_out_in_frames_and_the_last_one_is_padded() -> None:
    line = Line(Say(1, "hello"))
    line.caller._frames[0] = [b"a" * FRAME_BYTES, b"b" * FRAME_BYTES]
    assert [output.pcm for output in line.run(0.06)] == [b"a" * 320, b"b" * 320, None]


def test_keys_are_pressed_200_ms_apart() -> None:
    line = Line(Dtmf(1, "12#"))
    pressed = [(n, output.digit) for n, output in enumerate(line.run(1.0)) if output.digit]
    assert pressed == [(0, "1"), (10, "2"), (20, "#")]


@pytest.mark.parametrize("step", [Silence(1, 1.5), WaitTime(1, 1.5)])
def test_a_stretch_of_time_is_as_long_as_it_says(step: Step) -> None:
    assert Line(step, Hangup(2)).until_spoken() == pytest.approx(1.5)


def test_hangup_is_said_once_and_nothing_follows() -> None:
    line = Line(Hangup(1))
    assert [output.hangup for output in line.run(0.06)] == [True, False, False]
    assert line.caller.done


def test_noise_is_the_same_each_time_and_has_its_level() -> None:
    pcm = noise(1.0, -30.0, RATE_HZ, seed=3)
    assert pcm == noise(1.0, -30.0, RATE_HZ, seed=3) != noise(1.0, -30.0, RATE_HZ, seed=4)
    samples = struct.unpack(f"<{RATE_HZ}h", pcm)
    rms = math.sqrt(sum(s * s for s in samples) / len(samples))
    assert 20 * math.log10(rms / 32768) == pytest.approx(-30.0, abs=0.3)
    assert len(Line(Noise(1, 0.5, -30.0)).run(0.5)[0].pcm or b"") == FRAME_BYTES


class TestAgentQuiet:
    def test_not_before_the_agent_has_spoken(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        assert not any(output.hangup for output in line.run(10.0))

    def test_300_ms_after_the_last_word_was_heard(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.agent_says(1, "welcome", 2.0)
        assert line.until_spoken() == pytest.approx(2.3)

    def test_not_while_more_is_queued(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.observe("utterance_queued", id=2, text="and then")
        line.agent_says(1, "welcome", 2.0)
        assert not any(output.hangup for output in line.run(5.0))

    def test_not_while_a_turn_is_open(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.agent_says(1, "welcome", 2.0)
        line.observe("runtime_input", type="text", text="what about it")
        assert not any(output.hangup for output in line.run(5.0))
        line.observe("runtime_output", type="turnCompleted", turn=2)
        assert line.until_spoken() == pytest.approx(7.3, abs=0.021)

    def test_what_was_heard_before_the_callers_words_does_not_count(self) -> None:
        line = Line(WaitQuiet(1), Say(2, "and now"), WaitQuiet(3), Hangup(4))
        line.agent_says(1, "welcome", 1.0)
        line.run(1.5)
        assert not any(output.hangup for output in line.run(5.0))
        line.observe("runtime_input", type="text", text="and now")
        line.agent_says(2, "well", 1.0, turn=2)
        heard_out = line.now
        assert line.until_spoken() == pytest.approx(heard_out + 0.3, abs=0.021)

    def test_a_silent_answer_is_an_answer(self) -> None:
        line = Line(Say(1, "go on"), WaitQuiet(2), Hangup(3))
        line.run(1.2)
        line.observe("runtime_input", type="text", text="go on")
        line.observe("runtime_output", type="turnCompleted", turn=2)
        assert line.until_spoken() == pytest.approx(1.5, abs=0.021)

    def test_the_end_of_the_interrupted_turn_is_no_answer(self) -> None:
        line = Line(Dtmf(1, "1"), WaitQuiet(2), Hangup(3))
        line.observe("runtime_output", type="text", turn=1, text="long story")
        line.run(0.3)
        line.observe("runtime_output", type="turnCompleted", turn=1)
        assert not any(output.hangup for output in line.run(5.0))

    def test_not_while_the_caller_is_believed_to_speak(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.agent_says(1, "welcome", 1.0)
        line.observe("user_speech_started")
        assert not any(output.hangup for output in line.run(2.0))
        line.observe("user_speech_ended")
        assert line.until_spoken() == pytest.approx(3.3)

    def test_a_runtime_that_merges_two_inputs_is_not_waited_for_for_ever(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.observe("runtime_input", type="text", text="one")
        line.observe("runtime_input", type="text", text="two")
        line.run(0.1)
        line.observe("runtime_output", type="turnCompleted", turn=1)
        assert line.until_spoken() == pytest.approx(3.1)

    def test_variables_and_an_opened_turn_alone_ask_for_no_answer(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.agent_says(1, "welcome", 1.0)
        line.observe("runtime_input", type="variables")
        line.observe("runtime_input", type="text", text="")
        assert line.until_spoken() == pytest.approx(1.3)

    def test_the_clients_answer_belongs_to_the_turn_that_asked(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2))
        line.observe("runtime_input", type="text", text="show me")
        line.observe("runtime_output", type="toolCalls", turn=1)
        line.observe("runtime_input", type="toolResponses")
        line.agent_says(1, "there it is", 1.0)
        assert line.until_spoken() == pytest.approx(1.3)

    def test_with_ears_only_a_second_of_silence_after_sound(self) -> None:
        line = Line(WaitQuiet(1), Hangup(2), timeline=False)
        line.view.hear(float("-inf"), 0.0)
        assert not any(output.hangup for output in line.run(3.0))
        line.view.hear(-20.0, line.now)
        assert line.until_spoken() == pytest.approx(3.0 + EAR_QUIET_S, abs=0.021)

    def test_with_ears_only_a_start_is_a_sound(self) -> None:
        started = EventPattern("utterance_started")
        line = Line(WaitEvent(1, started), Hangup(2), timeline=False)
        assert not any(output.hangup for output in line.run(3.0))
        line.view.hear(-20.0, line.now)
        assert line.until_spoken() == pytest.approx(3.0, abs=0.021)

    def test_with_ears_only_the_end_is_the_end(self) -> None:
        line = Line(WaitEvent(1, EventPattern("call_ended")), Hangup(2), timeline=False)
        line.view.hear(-20.0, 0.0)
        assert line.until_spoken() == pytest.approx(30.0)

    def test_with_ears_only_every_other_wait_is_for_quiet(self) -> None:
        line = Line(WaitHeard(1, "x"), WaitEvent(2, EventPattern("y")), Hangup(3), timeline=False)
        line.view.hear(-20.0, 0.0)
        assert line.until_spoken() == pytest.approx(EAR_QUIET_S, abs=0.021)


class TestHeard:
    def test_words_count_once_they_were_heard_out(self) -> None:
        line = Line(WaitHeard(1, "bal.nce"), Hangup(2))
        line.agent_says(1, "Your BALANCE is low", 2.0)
        assert line.until_spoken() == pytest.approx(2.0)

    def test_the_same_words_are_not_found_twice(self) -> None:
        line = Line(WaitHeard(1, "there"), WaitHeard(2, "there"), Hangup(3))
        line.agent_says(1, "still there?", 1.0)
        assert not any(output.hangup for output in line.run(3.0))
        line.agent_says(2, "still there?", 1.0)
        assert line.until_spoken() == pytest.approx(5.0)

    def test_words_from_before_the_callers_own_do_not_count(self) -> None:
        line = Line(WaitTime(1, 2.0), Say(2, "hm"), WaitHeard(3, "hello"), Hangup(4))
        line.agent_says(1, "hello", 1.0)
        assert not any(output.hangup for output in line.run(9.0))


class TestEvent:
    def test_an_event_during_the_callers_words_counts(self) -> None:
        line = Line(Say(1, "stop"), WaitEvent(2, EventPattern("barge_in")), Hangup(3))
        line.run(0.3)
        line.observe("barge_in", by="speech")
        outputs = line.run(0.8)
        assert [n for n, output in enumerate(outputs) if output.hangup] == [35]

    def test_an_event_from_before_does_not(self) -> None:
        line = Line(
            WaitTime(1, 1.0), Say(2, "stop"), WaitEvent(3, EventPattern("barge_in")), Hangup(4)
        )
        line.observe("barge_in", by="speech")
        assert not any(output.hangup for output in line.run(9.0))


def test_a_wait_in_vain_fails_the_call_and_hangs_up() -> None:
    line = Line(WaitQuiet(7, timeout_s=2.0), Say(8, "never said"))
    assert line.until_spoken() == pytest.approx(2.0)
    assert line.caller.failed
    assert line.caller.hung_up
    assert [(s.line, s.problem) for s in line.caller.spans] == [(7, "waited 2 s in vain")]


class TestAfterTheScript:
    def test_the_caller_stays_for_the_agents_end(self) -> None:
        line = Line(Silence(1, 1.0), linger_s=5.0)
        assert line.until_spoken() == pytest.approx(6.0)

    def test_or_hangs_up_when_the_agent_is_quiet(self) -> None:
        line = Line(Silence(1, 1.0), linger_s=None)
        line.agent_says(1, "bye", 2.0)
        assert line.until_spoken() == pytest.approx(2.3)

    def test_but_does_not_wait_for_ever(self) -> None:
        assert Line(Silence(1, 1.0), linger_s=None).until_spoken() == pytest.approx(31.0)


class TestMissed:
    def test_words_that_could_not_be_said_any_more(self) -> None:
        line = Line(Silence(1, 9.0), Say(2, "too late"))
        line.run(1.0)
        assert [(s.line, s.problem) for s in line.caller.missed()] == [
            (2, "the call had ended before")
        ]

    def test_silence_and_hangup_are_not_missed(self) -> None:
        line = Line(Silence(1, 9.0), WaitQuiet(2), WaitTime(3, 1.0), Hangup(4))
        line.run(1.0)
        assert line.caller.missed() == []

    def test_an_event_that_came_with_the_end_is_not_missed(self) -> None:
        line = Line(WaitEvent(1, EventPattern("call_ended")), WaitHeard(2, "bye"))
        line.run(1.0)
        line.observe("utterance_queued", id=1, text="bye")
        line.observe("utterance_ended", id=1, reason="completed", heard_text="bye")
        line.observe("call_ended", reason="completed")
        assert line.view.ended
        assert line.caller.missed() == []


def test_steps_have_names_for_people() -> None:
    assert label(Say(1, "hello")) == "say 'hello'"
    assert label(WaitEvent(1, EventPattern("x", {"a": 1}))) == "wait for event x a=1"
    assert label(Noise(1, 3.0, -40.0)) == "noise 3s at -40 dBFS"
