"""The agent's side of a recording is what came out of the caller's loudspeaker, to the sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from gateway.audio.formats import Pcm
from gateway.call import events
from gateway.call.profile import CallProfile
from gateway.channels.base import Ended
from gateway.records.alignment import HeardFrames
from tests.call.harness import EMULATED, NATIVE, RATE_HZ, Line, tone
from tests.call.test_interleavings import STORY, Story

FRAME_SAMPLES = RATE_HZ // 50


def recorded(line: Line) -> Pcm:
    """What a recorder makes of the engine's actions: PCM from the beginning of the call."""
    track = HeardFrames(RATE_HZ)
    frames: list[Pcm] = []
    for action in line.actions:
        if isinstance(action, events.SendAudio):
            frames.append(action.data)
            track.add(action.due - line.begun, len(action.data) // 2)
        elif isinstance(action, events.AudioUnheard):
            track.unheard(action.since - line.begun)
    return laid([(p.start, frames[p.index][: 2 * p.samples]) for p in track.placed])


def played(line: Line) -> Pcm:
    """What the platform's loudspeaker gave, from the beginning of the call."""
    return laid(
        [
            (
                round((frame.t - line.begun) * RATE_HZ),
                frame.frame[: 2 * round(frame.share * FRAME_SAMPLES)],
            )
            for frame in line.platform.played
        ]
    )


def laid(pieces: list[tuple[int, Pcm]]) -> Pcm:
    sound = bytearray()
    for start, pcm in pieces:
        sound += bytes(max(0, 2 * start - len(sound)))
        sound += pcm
    return bytes(sound)


def barge_in(line: Line) -> None:
    line.say("This is a rather long sentence that takes its time to be spoken.", 2)
    line.run(1.0)
    line.speak(0.5, "stop")
    line.run(3.0)


def protected_after_interruptible(line: Line) -> None:
    line.text("A question that may be interrupted by the caller.", 2)
    line.payload(2, customizedResponse={"content": "The terms.", "disableBargeIn": True})
    line.completed(2)
    line.run(0.5)
    line.speak(0.5, "stop")
    line.run(5.0)


def music_that_stops(line: Line) -> None:
    line.files["m.wav"] = tone(300, 1.03)
    line.payload(2, audioUri="m.wav", cancellable=True, loop=True)
    line.run(2.51)
    line.text("Here I am again.", 2)
    line.completed(2)
    line.run(3.0)


def caller_hangs_up(line: Line) -> None:
    line.say("This is a rather long sentence that takes its time to be spoken.", 2)
    line.run(1.0)
    line.do(line.machine.channel(Ended(), line.now))
    line.platform.clear(line.now)


@pytest.mark.parametrize(
    "happens", [barge_in, protected_after_interruptible, music_that_stops, caller_hangs_up]
)
@pytest.mark.parametrize("lead_ms", [60, 400])
def test_nothing_more_and_nothing_less_than_was_heard(
    happens: Callable[[Line], None], lead_ms: int
) -> None:
    line = Line(CallProfile(lead_ms=lead_ms), EMULATED).greeted()
    happens(line)
    assert same_but_for_lateness(recorded(line), played(line))


@settings(max_examples=25)
@given(STORY)
def test_of_any_story_each_utterance_is_recorded_for_as_long_as_it_was_heard(
    story: list[tuple[Callable[[Story, int], None], int]],
) -> None:
    line = Line(CallProfile(lead_ms=100), NATIVE).run(0.1)
    teller = Story(line)
    for step, n in story:
        step(teller, n)
    teller.complete(0)
    line.until(lambda: line.quiet, 200.0)
    assert same_but_for_lateness(recorded(line), played(line), slack=FRAME_SAMPLES)


def same_but_for_lateness(ours: Pcm, theirs: Pcm, slack: int = 0) -> bool:
    """The same sounds for the same number of samples, silence left out."""

    def lengths(sound: Pcm) -> dict[int, int]:
        counts: dict[int, int] = {}
        for sample in memoryview(sound).cast("h"):
            if sample:
                counts[sample] = counts.get(sample, 0) + 1
        return counts

    one, two = lengths(ours), lengths(theirs)
    return all(abs(one.get(v, 0) - two.get(v, 0)) <= slack for v in one.keys() | two.keys())
