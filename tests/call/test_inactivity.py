"""Rules of a call: Inactivity."""

from __future__ import annotations

import pytest

from gateway.bidi import inactivity_text
from gateway.call.events import RuntimeToolCalls, ToRuntime
from gateway.call.inactivity import Inactivity
from gateway.call.profile import CallProfile
from gateway.channels.base import Started
from gateway.channels.capabilities import Capabilities
from tests.call.harness import NATIVE, Line, Platform, tone

PROFILE = CallProfile(inactivity_s=5.0)
TICK = inactivity_text(5)


def ticks(line: Line) -> list[float]:
    return [round(r.t - line.begun, 2) for r in line.find("inactivity")]


def test_it_is_counted_from_the_end_of_what_was_heard() -> None:
    line = Line(PROFILE, NATIVE, platform=Platform(delay_s=0.3)).run(0.1)
    line.say("A greeting of some length.", 1)
    line.run(9.0)
    heard = line.t("utterance_ended")
    assert heard == pytest.approx(0.12 + 0.3 + 26 * 0.05)
    assert ticks(line) == [pytest.approx(heard + 5.0, abs=0.021)]
    assert line.texts() == [TICK]
    assert line.one("inactivity").fields == {"seconds": 5}


def test_it_comes_once_for_each_silence_and_again_after_the_reply_was_heard() -> None:
    line = Line(PROFILE).greeted()
    line.run(20.0)
    assert line.texts() == [TICK]
    line.say("Are you still there?", 2)
    line.until(lambda: line.quiet)
    again = line.now - line.begun
    line.run(20.0)
    assert line.texts() == [TICK, TICK]
    assert ticks(line)[1] == pytest.approx(again + 5.0, abs=0.021)


def test_a_reply_without_content_arms_it_again() -> None:
    line = Line(PROFILE).greeted()
    line.run(6.0)
    line.completed(2)
    line.run(6.0)
    assert line.texts() == [TICK, TICK]


def test_words_disarm_it() -> None:
    line = Line(PROFILE).greeted()
    line.run(4.5)
    line.speak(0.5, "I am here")
    line.run(6.0)
    assert line.texts() == ["I am here"]


def test_words_that_begin_just_before_the_tick_hold_it_back() -> None:
    line = Line(PROFILE).greeted()
    line.run(4.8)
    line.speak(2.0, "I am thinking")
    line.run(6.0)
    assert line.texts() == ["I am thinking"]


def test_noise_neither_resets_it_nor_leaves_it_unarmed() -> None:
    line = Line(PROFILE).greeted()
    start = line.now - line.begun
    line.run(3.0)
    line.speak(1.0, "")
    line.run(6.0)
    assert ticks(line) == [pytest.approx(start + 5.0, abs=0.021)]


def test_noise_at_the_tick_defers_it_until_it_is_known_to_be_noise() -> None:
    line = Line(PROFILE).greeted()
    start = line.now - line.begun
    line.run(4.8)
    line.speak(1.0, "")
    line.run(6.0)
    (tick,) = ticks(line)
    assert start + 5.8 < tick < start + 6.5


def test_noise_without_end_defers_it_by_eight_seconds_at_most() -> None:
    line = Line(PROFILE).greeted()
    start = line.now - line.begun
    line.run(1.0)
    line.speak(25.0, "")
    line.run(20.0)
    assert ticks(line) == [pytest.approx(start + 13.0, abs=0.021)]


def test_keys_disarm_it() -> None:
    line = Line(PROFILE).greeted()
    line.run(4.0)
    line.keys("1")
    line.run(2.9)
    assert not ticks(line)
    line.run(0.2)
    line.run(10.0)
    assert not ticks(line)


def test_a_running_tool_and_hold_music_disarm_it() -> None:
    line = Line(PROFILE).greeted()
    line.files["music.wav"] = tone(9, 2.0)
    line.payload(2, audioUri="music.wav", cancellable=True, loop=True)
    line.run(10.0)
    assert not ticks(line)
    line.completed(2)
    line.run(10.0)
    assert not ticks(line)
    line.say("Done.", 3)
    line.run(6.0)
    assert len(ticks(line)) == 1


def test_an_open_turn_without_sound_disarms_it() -> None:
    line = Line(PROFILE).greeted()
    line.text("One moment.", 2)
    line.run(10.0)
    assert not ticks(line)


def test_it_is_not_armed_before_the_agent_has_said_anything() -> None:
    capabilities = Capabilities(dialect="test", kickoff=False)
    line = Line(PROFILE, capabilities).run(20.0)
    assert not ticks(line)


def test_without_a_timeout_there_is_no_tick() -> None:
    line = Line(CallProfile(inactivity_s=None)).greeted()
    assert not ticks(line.run(60.0))


def test_a_text_session_has_no_silence() -> None:
    line = Line(PROFILE, start=Started(call_id="c")).run(0.1)
    line.say("Hello.", 1)
    line.run(10.0)
    assert not ticks(line)


def test_an_interruption_that_waits_for_its_words_disarms_it() -> None:
    line = Line(CallProfile(inactivity_s=1.0)).greeted()
    line.stt_silent = True
    line.say("A long sentence that is interrupted soon.", 2)
    line.run(0.5)
    line.speak(0.3, "stop")
    line.run(5.0)
    assert not ticks(line)


def test_the_clock_itself() -> None:
    clock = Inactivity(5.0, 8.0)
    assert not clock.fires(True, False, 0.0)
    assert clock.armed
    assert not clock.fires(True, False, 4.99)
    assert not clock.fires(True, True, 12.9)
    assert clock.fires(True, True, 13.0)
    assert not clock.armed
    assert not clock.fires(True, False, 13.1)
    assert not clock.fires(False, False, 19.0)
    assert not clock.armed


def test_client_tools_are_waited_for() -> None:
    line = Line(PROFILE, Capabilities(dialect="test", agent_messages=True)).greeted()
    line.output(RuntimeToolCalls([{"id": "1"}], 2))
    line.run(10.0)
    assert not ticks(line)
    assert not [i for i in line.inputs if isinstance(i, ToRuntime) and i.text == TICK]
