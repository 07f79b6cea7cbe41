"""Whole calls in virtual time whose caller's audio comes otherwise than in frames of 20 ms, on
every dialect whose wire permits it: in other sizes, only while somebody speaks, late and all at
once, in part, twice, or in another order. Every key is told twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from gateway.audio.formats import Pcm
from gateway.channels.dialects import dialect
from gateway.simulate import platforms
from gateway.simulate.platforms import CHANNELS, side
from gateway.simulate.platforms.access import Side
from gateway.simulate.platforms.base import Identity, Platform, Wire
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import Scenario, parse_scenario

QUESTION = "Tell me about your prices."
KEYS = "1123#"
CALL = f"""
caller:
  - wait: agent_quiet
  - say: {QUESTION}
    as: {QUESTION}
  - wait: {{event: {{kind: utterance_started}}}}
  - silence: 1s
  - say: Stop, please.
    as: Stop, please.
  - wait: {{heard: "i stopped there"}}
  - dtmf: "{KEYS}"
  - silence: 500ms
  - hangup: true
expect:
  - event: {{kind: user_text, text: "prices", count: 1}}
  - event: {{kind: barge_in, by: speech, count: 1}}
  - event: {{kind: dtmf, digits: "1123", count: 1}}
  - ended: remote_hangup
"""


def scenario(channel: str) -> Scenario:
    """The call; without its keys where the dialect has no words for them."""
    lines = CALL.splitlines()
    if not dialect(channel).capabilities.dtmf_in:
        lines = [line for line in lines if "dtmf" not in line]
    return parse_scenario("\n".join(lines), Path("rough.yaml"))


Habit = Callable[[Platform], "Deliver"]
Deliver = Callable[[Pcm | None], list[Wire]]


@dataclass
class Rough:
    """A platform whose caller's audio comes as a habit has it, and keys by two ways."""

    inner: Any
    deliver: Deliver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def media(self, pcm: Pcm | None) -> list[Wire]:
        return self.deliver(pcm)

    def digit(self, digit: str) -> list[Wire]:
        out: list[Wire] = self.inner.digit(digit)
        return out if isinstance(self.inner, Rough) else out + self.inner.digit(digit)


def frames_of(*sizes_ms: int) -> Habit:
    """Messages of these lengths in turn."""

    def habit(inner: Platform) -> Deliver:
        frame_bytes = inner.in_format.pcm_frame_bytes
        kept = bytearray()
        sizes = cycle(size_ms * frame_bytes // 20 for size_ms in sizes_ms)
        wanted = next(sizes)

        def deliver(pcm: Pcm | None) -> list[Wire]:
            nonlocal wanted
            kept.extend(bytes(frame_bytes) if pcm is None else pcm)
            out: list[Wire] = []
            while len(kept) >= wanted:
                out += inner.media(bytes(kept[:wanted]))
                del kept[:wanted]
                wanted = next(sizes)
            return out

        return deliver

    return habit


def while_spoken(inner: Platform) -> Deliver:
    """Nothing comes while nobody speaks."""

    def deliver(pcm: Pcm | None) -> list[Wire]:
        return inner.media(pcm) if pcm is not None else []

    return deliver


def stalled(inner: Platform) -> Deliver:
    """For half a second of every two nothing comes, then all of it at once."""
    held: list[Wire] = []
    frames = count()

    def deliver(pcm: Pcm | None) -> list[Wire]:
        held.extend(inner.media(pcm))
        if next(frames) % 100 < 25:
            return []
        out = list(held)
        held.clear()
        return out

    return deliver


def every(which: int, change: Callable[[Wire], list[Wire]]) -> Habit:
    """Something happens to one message in `which`."""

    def habit(inner: Platform) -> Deliver:
        numbers = count(1)

        def deliver(pcm: Pcm | None) -> list[Wire]:
            out: list[Wire] = []
            for message in inner.media(pcm):
                out += change(message) if next(numbers) % which == 0 else [message]
            return out

        return deliver

    return habit


def shuffled(inner: Platform) -> Deliver:
    """Every four messages come last first."""
    held: list[Wire] = []

    def deliver(pcm: Pcm | None) -> list[Wire]:
        held.extend(inner.media(pcm))
        if len(held) < 4:
            return []
        out = held[::-1]
        held.clear()
        return out

    return deliver


def simulate(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, channel: str, *habits: Habit
) -> None:
    known: Side = side(channel)

    def make(identity: Identity) -> Platform:
        made = known.make(identity)
        for habit in habits:
            made = Rough(made, habit(made))
        return made

    rough = replace(known, make=make, configured=None)
    monkeypatch.setattr(platforms, "_SIDES", {**platforms._SIDES, channel: rough})
    result = simulator.run(scenario(channel), channel=channel)
    assert result.ok, [str(verdict) for verdict in result.verdicts]
    assert not result.log.complaints
    assert not [line for line in result.log.timeline if line["kind"] == "error"]


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator()


# Genesys sends all the time, in messages of 200 ms.
@pytest.mark.parametrize("channel", [name for name in CHANNELS if name != "genesys"])
def test_frames_of_30_40_and_200_ms_that_only_come_while_somebody_speaks(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, channel: str
) -> None:
    simulate(simulator, monkeypatch, channel, frames_of(30, 40, 200), while_spoken)


@pytest.mark.parametrize("channel", CHANNELS)
def test_audio_that_is_held_up_and_has_holes(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, channel: str
) -> None:
    simulate(simulator, monkeypatch, channel, every(25, lambda _: []), stalled)


@pytest.mark.parametrize(
    "habit", [shuffled, every(10, lambda message: [message, message])], ids=["shuffled", "twice"]
)
def test_where_messages_are_numbered_their_order_and_copies_do_not_count(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, habit: Habit
) -> None:
    simulate(simulator, monkeypatch, "telnyx", habit)
