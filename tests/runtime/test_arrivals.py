"""Speech is played whole, background only as far as nothing waits for it."""

from __future__ import annotations

import struct
from math import pi, sin

from gateway.runtime.arrivals import MARGIN_S, ROOM_S, Arrivals, is_loud

RATE = 8000


def tone(seconds: float, level: int = 9000) -> bytes:
    samples = (round(level * sin(2 * pi * 440 * n / RATE)) for n in range(round(seconds * RATE)))
    return b"".join(struct.pack("<h", sample) for sample in samples)


def hum(seconds: float) -> bytes:
    return tone(seconds, 60)


def test_what_is_loud() -> None:
    assert is_loud(tone(0.02))
    assert not is_loud(hum(0.02))
    assert not is_loud(b"\0" * 320)


def test_speech_is_played_whole_however_fast_it_comes() -> None:
    arrivals = Arrivals(RATE)
    for _ in range(50):
        assert arrivals.take(tone(1.0), 1, 0.0) == (0, RATE, False)


def test_pauses_within_an_answer_belong_to_it() -> None:
    arrivals = Arrivals(RATE)
    arrivals.take(tone(0.5), 1, 0.0)
    assert arrivals.take(hum(0.5), 1, 0.0) == (0, RATE // 2, False)


def test_a_long_silence_before_the_first_word_is_left_out() -> None:
    arrivals = Arrivals(RATE)
    first, last, background = arrivals.take(hum(5.5) + tone(1.0), 1, 0.0)
    assert not background
    assert last == round(6.5 * RATE)
    assert abs(first - round((5.5 - MARGIN_S - ROOM_S) * RATE)) <= RATE // 50


def test_background_without_end_does_not_pile_up() -> None:
    arrivals = Arrivals(RATE)
    taken = 0
    for _ in range(100):
        first, last, background = arrivals.take(hum(0.1), 0, 0.0)
        assert background
        taken += last - first
    assert taken <= round((ROOM_S + 0.1) * RATE)


def test_background_in_real_time_is_all_heard() -> None:
    arrivals = Arrivals(RATE)
    taken = 0
    for n in range(100):
        first, last, _ = arrivals.take(hum(0.1), 0, n * 0.1)
        taken += last - first
    assert taken == 10 * RATE


def test_after_a_turn_or_an_interruption_it_is_background_until_it_is_loud() -> None:
    for done in (Arrivals.pause, lambda a: Arrivals.cut(a, 0.0)):
        arrivals = Arrivals(RATE)
        arrivals.take(tone(0.1), 1, 0.0)
        done(arrivals)
        assert arrivals.take(hum(0.02), 1, 0.0)[2]
        assert not arrivals.take(tone(0.02), 1, 0.0)[2]
