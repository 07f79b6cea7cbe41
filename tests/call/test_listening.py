"""Voice activity into segments, questions to the recogniser, and turns."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.call.events import Recognise
from gateway.call.listening import (
    TRANSITIONS,
    WINDOW_S,
    Ask,
    Cue,
    Hearing,
    ListenEvent,
    Listening,
    Partial,
    SpeechEnded,
    SpeechStarted,
    Understood,
)
from gateway.call.profile import CallProfile
from tests.call.harness import RATE_HZ, Line

PROFILE = CallProfile()


class Ear:
    """Feeds windows of 32 ms whose samples are the number of the window."""

    def __init__(self, profile: CallProfile = PROFILE, counts: bool = True) -> None:
        self.listening = Listening(profile, RATE_HZ)
        self.counts = counts
        self.windows = 0
        self.events: list[ListenEvent] = []

    @property
    def now(self) -> float:
        return self.windows * WINDOW_S

    def hear(self, *probabilities: float) -> list[ListenEvent]:
        new: list[ListenEvent] = []
        for probability in probabilities:
            self.windows += 1
            sample = self.windows.to_bytes(2, "little")
            self.listening.feed(sample * round(WINDOW_S * RATE_HZ))
            for event in self.listening.window(probability, self.now, self.now):
                if isinstance(event, SpeechStarted):
                    event.segment.counts = self.counts
                new.append(event)
        self.events += new
        return new

    def answer(self, ask: Ask, text: str, complete: bool = False) -> list[ListenEvent]:
        new = list(self.listening.answer(ask.ask_id, text, complete, self.now))
        self.events += new
        return new

    def asks(self) -> list[Ask]:
        return [e for e in self.events if isinstance(e, Ask)]

    def numbers(self, ask: Ask) -> tuple[int, int]:
        """The first and the last window in an ask."""
        pcm = ask.pcm
        return int.from_bytes(pcm[:2], "little"), int.from_bytes(pcm[-2:], "little")


LOUD, MIDDLE, SOFT = 0.9, 0.4, 0.1
PAUSE = [SOFT] * 7
END = [SOFT] * 22


def test_the_table_holds_every_pair() -> None:
    assert set(TRANSITIONS) == set(itertools.product(Hearing, Cue))
    assert set(TRANSITIONS.values()) == set(Hearing)


def test_two_loud_windows_in_a_row_are_speech_and_one_is_not() -> None:
    ear = Ear()
    assert ear.hear(LOUD, SOFT, LOUD, MIDDLE, LOUD, SOFT) == []
    (started,) = ear.hear(LOUD, LOUD)
    assert isinstance(started, SpeechStarted)
    assert ear.listening.speaking


def test_between_the_thresholds_nothing_changes() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *[MIDDLE] * 100)
    assert ear.listening.speaking
    ear.hear(*PAUSE, MIDDLE)
    assert ear.listening.state is Hearing.PAUSED


def test_a_segment_begins_before_its_onset_so_no_word_loses_its_start() -> None:
    ear = Ear()
    ear.hear(*[SOFT] * 100, LOUD, LOUD, *PAUSE)
    first, last = ear.numbers(ear.asks()[0])
    assert first in (91, 92)  # 0.3 s before window 101 began
    assert last == 109


def test_a_pause_asks_and_a_complete_turn_ends_at_once() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, LOUD, *PAUSE)
    (ask,) = ear.asks()
    assert ask.ask_complete
    ended, understood = ear.answer(ask, "yes", complete=True)
    assert isinstance(ended, SpeechEnded)
    assert isinstance(understood, Understood)
    assert understood.text == "yes"
    assert ear.listening.state is Hearing.QUIET
    assert ear.hear(*END) == []


def test_an_incomplete_turn_waits_for_the_longer_silence_and_asks_no_second_time() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *PAUSE)
    (ask,) = ear.asks()
    assert ear.answer(ask, "I would") == [Partial("I would")]
    ear.hear(*[SOFT] * 14)
    assert not [e for e in ear.events if isinstance(e, SpeechEnded)]
    ended, understood = ear.hear(SOFT)
    assert isinstance(ended, SpeechEnded)
    assert isinstance(understood, Understood)
    assert understood.text == "I would"
    assert ear.asks() == [ask]


def test_a_slow_answer_ends_the_turn_when_it_comes() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *END)
    (ask,) = ear.asks()
    assert ear.listening.pending
    (understood,) = ear.answer(ask, "slowly", complete=False)
    assert isinstance(understood, Understood)
    assert not ear.listening.pending


def test_speech_that_goes_on_continues_the_segment_and_voids_the_answer() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *PAUSE)
    (early,) = ear.asks()
    ear.hear(LOUD, LOUD)
    assert ear.answer(early, "I would", complete=True) == []
    assert ear.listening.speaking
    ear.hear(*PAUSE)
    late = ear.asks()[1]
    assert len(late.pcm) > len(early.pcm)
    assert late.pcm.startswith(early.pcm)
    (_, understood) = ear.answer(late, "I would like", complete=True)
    assert isinstance(understood, Understood)
    assert understood.text == "I would like"


def test_a_long_segment_is_split_without_losing_a_sample() -> None:
    ear = Ear(CallProfile(max_segment_s=2.0))
    ear.hear(*[SOFT] * 20, *[LOUD] * 200, *END)
    asks = ear.asks()
    assert len(asks) == 4
    for before, after in itertools.pairwise(asks):
        assert ear.numbers(after)[0] - ear.numbers(before)[1] in (0, 1)
    total = sum(len(ask.pcm) for ask in asks)
    first, last = ear.numbers(asks[0])[0], ear.numbers(asks[-1])[1]
    assert abs(total / 2 / RATE_HZ - (last - first + 1) * WINDOW_S) < WINDOW_S
    texts = ["one", "two", "three", "four"]
    for ask, text in zip(reversed(asks), reversed(texts), strict=True):
        ear.answer(ask, text)
    assert ear.events[-1].text == "one two three four"  # type: ignore[union-attr]


def test_segments_are_understood_in_their_order() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *END, LOUD, LOUD, *END)
    first, second = ear.asks()
    assert ear.answer(second, "second") == []
    one, two = ear.answer(first, "first")
    assert isinstance(one, Understood)
    assert isinstance(two, Understood)
    assert (one.text, two.text) == ("first", "second")


def test_what_does_not_count_is_never_asked_about() -> None:
    ear = Ear(counts=False)
    ear.hear(LOUD, LOUD, *PAUSE, LOUD, *END)
    assert ear.asks() == []
    assert isinstance(ear.events[-1], SpeechEnded)
    assert not ear.listening.pending


def test_a_guard_asks_for_more_while_the_agent_speaks_and_more_still_at_the_start() -> None:
    profile = CallProfile(echo_guard=0.2)
    for at, probability, starts in ((0.5, 0.85, False), (0.5, 0.95, True)):
        listening = Listening(profile, RATE_HZ)
        found = [
            event
            for n in range(4)
            for event in listening.window(probability, at + n * WINDOW_S, at + n * WINDOW_S, True)
        ]
        assert bool(found) is starts
    for probability, starts in ((0.65, False), (0.75, True)):
        listening = Listening(profile, RATE_HZ)
        found = [
            event
            for n in range(4)
            for event in listening.window(probability, 9 + n * WINDOW_S, 9 + n * WINDOW_S, True)
        ]
        assert bool(found) is starts
    unguarded = Listening(profile, RATE_HZ)
    assert [e for n in range(4) for e in unguarded.window(0.55, n * WINDOW_S, n * WINDOW_S)]


def test_what_counts_after_all_counts_from_its_start() -> None:
    ear = Ear(counts=False)
    ear.hear(*[SOFT] * 20, *[LOUD] * 50)
    assert ear.listening.segment is not None
    ear.listening.segment.counts = True
    ear.hear(*PAUSE)
    assert ear.numbers(ear.asks()[0])[0] <= 21


def test_audio_that_stops_coming_ends_the_speech() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, LOUD)
    assert list(ear.listening.poll(ear.now + 0.9)) == []
    ended, ask = list(ear.listening.poll(ear.now + 1.1))
    assert isinstance(ended, SpeechEnded)
    assert isinstance(ask, Ask)


def test_an_onset_whose_audio_stops_is_forgotten() -> None:
    ear = Ear()
    ear.hear(LOUD)
    assert list(ear.listening.poll(ear.now + 2.0)) == []
    assert ear.listening.state is Hearing.QUIET


def test_the_next_segment_does_not_repeat_audio_of_the_last() -> None:
    ear = Ear()
    ear.hear(LOUD, LOUD, *PAUSE)
    ear.answer(ear.asks()[0], "yes", complete=True)
    ear.hear(LOUD, LOUD, *PAUSE)
    assert ear.numbers(ear.asks()[1])[0] >= ear.numbers(ear.asks()[0])[1]


def test_silence_is_not_kept() -> None:
    ear = Ear()
    ear.hear(*[SOFT] * 4000)
    assert len(ear.listening._buffer) < 6 * 2 * RATE_HZ


@given(st.lists(st.sampled_from([LOUD, MIDDLE, SOFT]), max_size=300), st.booleans())
def test_any_windows_keep_the_books(windows: list[float], complete: bool) -> None:
    ear = Ear(CallProfile(max_segment_s=3.0))
    for probability in windows:
        for event in ear.hear(probability):
            if isinstance(event, Ask):
                assert len(event.pcm) <= (3.0 + 0.4) * RATE_HZ * 2
                ear.answer(event, "w", complete)
    ear.hear(*END)
    for ask in ear.asks():
        ear.answer(ask, "w")
    started = [e for e in ear.events if isinstance(e, SpeechStarted)]
    ended = [e for e in ear.events if isinstance(e, SpeechEnded)]
    understood = [e for e in ear.events if isinstance(e, Understood)]
    assert len(started) == len(ended) == len(understood)
    assert not ear.listening.pending


# ---- in a call


def test_a_complete_turn_goes_to_the_runtime_at_the_pause() -> None:
    line = Line().greeted()
    start = line.now
    line.speak(0.5, "my balance")
    line.until(lambda: bool(line.texts()))
    assert line.now - start < 0.5 + 0.3
    assert line.one("user_text").fields == {"text": "my balance", "final": True}
    assert line.kinds()[-3:] == ["user_speech_ended", "user_text", "runtime_input"]


def test_an_incomplete_turn_goes_to_the_runtime_after_the_longer_silence() -> None:
    line = Line().greeted()
    line.complete = False
    start = line.now
    line.speak(0.5, "I want")
    line.until(lambda: bool(line.texts()))
    assert line.now - start == pytest.approx(0.5 + 0.7, abs=0.06)


def test_the_recogniser_gets_the_callers_rate_and_language() -> None:
    line = Line().greeted()
    line.speak(0.5, "hi")
    line.run(1.0)
    (ask,) = [a for a in line.actions if isinstance(a, Recognise)]
    assert (ask.rate_hz, ask.language) == (8000, "en-US")
    assert 0.9 < len(ask.pcm) / 16000 < 1.2
