"""A short "yes" below the threshold of voice activity is heard all the same."""

from __future__ import annotations

import pytest

from gateway.audio.formats import Pcm
from gateway.call.events import Recognise
from gateway.call.faint import REST_S
from gateway.call.profile import CallProfile
from tests.call.harness import Line, tone

WINDOW = 256
WINDOW_S = 0.032
HUM, VOICE = 30, 2000


class Room:
    """A call whose windows are told one by one: level and likeness to speech."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.at = line.caller_s

    def hear(self, value: int, probability: float, seconds: float) -> None:
        for _ in range(round(seconds / WINDOW_S)):
            pcm: Pcm = tone(value, WINDOW_S)
            line = self.line
            line.now += WINDOW_S
            line.answer_what_is_due()
            line.do(line.machine.audio(pcm, line.now))
            self.at += WINDOW_S
            line.do(line.machine.vad(probability, self.at, line.now))
            line.do(line.machine.tick(line.now))

    def asks(self) -> list[Recognise]:
        return [a for a in self.line.actions if isinstance(a, Recognise)]

    def answer(self, text: str) -> None:
        ask = self.asks()[-1]
        self.line.do(self.line.machine.recognised(ask.segment_id, text, False, self.line.now))


def room(profile: CallProfile | None = None) -> Room:
    line = Line(profile).greeted()
    line.stt_silent = True
    found = Room(line)
    found.hear(HUM, 0.01, 2.0)
    return found


def test_a_faint_yes_is_a_turn() -> None:
    here = room()
    here.hear(VOICE, 0.3, 0.25)
    here.hear(HUM, 0.01, 0.5)
    (ask,) = here.asks()
    assert 0.4 < len(ask.pcm) / 16000 < 1.2
    here.answer("yes")
    assert here.line.texts() == ["yes"]
    assert not here.line.find("user_speech_started")


@pytest.mark.parametrize(
    ("value", "probability", "seconds", "why"),
    [
        (VOICE, 0.01, 0.25, "nothing like speech"),
        (60, 0.3, 0.25, "it does not stand out"),
        (VOICE, 0.3, 0.05, "a click"),
        (VOICE, 0.3, 1.5, "too long for a word"),
    ],
)
def test_other_sounds_are_not_asked_about(
    value: int, probability: float, seconds: float, why: str
) -> None:
    here = room()
    here.hear(value, probability, seconds)
    here.hear(HUM, 0.01, 0.5)
    assert here.asks() == [], why


def test_many_sounds_are_few_questions() -> None:
    here = room()
    for _ in range(10):
        here.hear(VOICE, 0.3, 0.16)
        here.hear(HUM, 0.01, 0.35)
    assert len(here.asks()) <= 1 + 5.1 / REST_S


def test_a_long_answer_to_a_short_sound_is_invented() -> None:
    here = room()
    here.hear(VOICE, 0.3, 0.25)
    here.hear(HUM, 0.01, 0.5)
    here.answer("thank you for watching this video")
    assert here.line.texts() == []


def test_no_words_are_no_turn() -> None:
    here = room()
    here.hear(VOICE, 0.3, 0.25)
    here.hear(HUM, 0.01, 0.5)
    here.answer("")
    assert here.line.texts() == []


def test_it_can_be_switched_off() -> None:
    here = room(CallProfile(faint_words=False))
    here.hear(VOICE, 0.3, 0.25)
    here.hear(HUM, 0.01, 0.5)
    assert here.asks() == []


def test_while_the_agent_speaks_its_echo_is_not_asked_about() -> None:
    here = room()
    here.line.say("This is a rather long sentence that takes its time.", 2)
    here.hear(HUM, 0.01, 0.3)
    here.hear(VOICE, 0.3, 0.25)
    here.hear(HUM, 0.01, 0.5)
    assert here.asks() == []


def test_what_turns_out_to_be_speech_is_asked_about_once() -> None:
    here = room()
    here.hear(VOICE, 0.3, 0.1)
    here.hear(VOICE, 0.95, 0.4)
    here.hear(HUM, 0.01, 0.5)
    (ask,) = here.asks()
    assert len(here.line.find("user_speech_started")) == 1
    here.answer("yes")
    here.hear(HUM, 0.01, 0.5)
    assert here.line.texts() == ["yes"]
    assert len(ask.pcm) / 16000 > 0.5
