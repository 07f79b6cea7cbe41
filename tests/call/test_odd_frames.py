"""The caller's audio in every size and at every time but the usual ones: none of it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np
import pytest

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.call.events import Recognise
from tests.call.harness import EMULATED, RATE_HZ, TICK_S, WINDOW_S, Line

SECONDS = 12.0
SPEECH = (3.0, 6.0)
SOURCE = (np.arange(round(SECONDS * RATE_HZ)) % 30_000).astype("<i2").tobytes()
"""Each sample tells where it belongs."""

Delivery = tuple[float, int]
"""When so many bytes come."""


def every(*sizes: int) -> Iterator[Delivery]:
    """Messages of these sizes in turn, each when its last sample was spoken."""
    sent = 0
    for size in cycle(sizes):
        sent += size
        if sent > len(SOURCE):
            return
        yield sent / 2 / RATE_HZ, size


def stalled(begin_s: float, end_s: float) -> Iterator[Delivery]:
    """Frames of 20 ms, of which those of a stretch come all at once at its end."""
    for at, size in every(320):
        yield (end_s if begin_s < at < end_s else at), size


class Told(Line):
    """A line whose caller's audio comes as a test says."""

    def __init__(self, deliveries: Iterator[Delivery]) -> None:
        self._deliveries = list(deliveries)
        self._halves = g711.Decoder(Encoding.LINEAR16)
        self._sent = 0
        super().__init__(None, EMULATED)

    def _caller_audio(self) -> None:
        while self._deliveries and self._deliveries[0][0] <= self.now - self.begun + 1e-9:
            _, size = self._deliveries.pop(0)
            data = self._halves.process(SOURCE[self._sent : self._sent + size])
            self._sent += size
            self.machine.pace(len(data) // 2, self.now)
            self.do(self.machine.audio(data, self.now))
            self.caller_s += len(data) / 2 / RATE_HZ
            while self._window_s + WINDOW_S <= self.caller_s + 1e-9:
                self._window_s += WINDOW_S
                loud = SPEECH[0] <= self._window_s - WINDOW_S / 2 <= SPEECH[1]
                self.do(self.machine.vad(0.95 if loud else 0.02, self._window_s, self.now))


@pytest.mark.parametrize(
    "deliveries",
    [
        lambda: every(320),
        lambda: every(480),
        lambda: every(640),
        lambda: every(3200),
        lambda: every(319, 321, 1, 7, 640),
        lambda: stalled(1.0, 6.0),
        lambda: stalled(4.0, 9.0),
        lambda: stalled(5.5, 10.5),
    ],
    ids=["20ms", "30ms", "40ms", "200ms", "odd", "before", "within", "at-end"],
)
def test_every_sample_of_what_was_said_is_recognised(
    deliveries: Callable[[], Iterator[Delivery]],
) -> None:
    line = Told(deliveries())
    line.words = "one two three"
    line.run(0.1)
    line.say("Hello.", 1)
    line.run(SECONDS + 1.5)
    asks = [action for action in line.actions if isinstance(action, Recognise)]
    assert asks
    known = np.zeros(len(SOURCE) // 2, bool)
    for ask in asks:
        first = round(ask.start_s * RATE_HZ)
        count = len(ask.pcm) // 2
        assert ask.pcm == SOURCE[2 * first : 2 * (first + count)], "in its place, without a hole"
        assert count == round(ask.end_s * RATE_HZ) - first
        known[first : first + count] = True
    said = slice(*(round(at * RATE_HZ) for at in SPEECH))
    assert known[said].all()
    assert line.texts(), "and the agent was told"


@pytest.mark.parametrize("away_s", [2.0, 5.0])
def test_what_is_sent_keeps_its_lead_through_silences_and_bursts(away_s: float) -> None:
    # A platform that sends nothing while nobody speaks, then one that is held up and catches up.
    line = Told((at + away_s if at > 2.0 else at, size) for at, size in stalled(6.0, 6.0 + away_s))
    line.run(0.1)
    line.say("Hello.", 1)
    line.run(SECONDS + away_s + 1.0)
    line.say("a" * 100 + ".", 2)
    line.run(1.0)
    playing = line.platform.free_at - line.now
    assert 0.0 < playing <= line.profile.lead_ms / 1000 + TICK_S


def test_one_key_told_in_two_ways_is_one_key() -> None:
    line = Line(None, EMULATED)
    line.run(0.1)
    line.say("Hello.", 1)
    line.run(1.0)
    for key in "1123":
        line.keys(key)
        line.run(0.04)
        line.keys(key)
        line.run(0.5)
    line.run(5.0)
    assert [item.text for item in line.inputs if item.type.value == "dtmf"] == ["1123"]
