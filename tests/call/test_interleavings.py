"""Whatever happens in whatever order: what must hold of every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.call.events import (
    Action,
    CallEnded,
    RuntimeEndSession,
    RuntimeInterruption,
    SendAudio,
)
from gateway.call.machine import CallMachine
from gateway.call.profile import BargeIn, CallProfile, ProtectedKeys
from gateway.channels.base import Ended, EndReason, MarkReached, TextIn
from gateway.errors import RuntimeFailure
from tests.call.harness import EMULATED, NATIVE, Line, Platform, tone, value_of

SENTENCES = ["Yes.", "One moment please.", "This is a longer sentence of the agent."]


class Story:
    """Performs random steps on a line and remembers what was protected."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.turn = 1

    def text(self, n: int) -> None:
        self.line.text(SENTENCES[n % 3], self.turn)

    def terms(self, n: int) -> None:
        content = SENTENCES[n % 3]
        self.line.payload(
            self.turn,
            customizedResponse={"content": content, "disableBargeIn": True, "enableDtmf": n > 2},
        )

    def file(self, n: int) -> None:
        self.line.files["f.wav"] = tone(200 + n, 0.3 * (n + 1))
        self.line.payload(self.turn, audioUri="f.wav", interruptable=n % 2 == 0)

    def music(self, n: int) -> None:
        self.line.files["m.wav"] = tone(300, 1.0)
        self.line.payload(self.turn, audioUri="m.wav", cancellable=True, loop=n % 2 == 0)

    def missing(self, n: int) -> None:
        self.line.files["x.wav"] = "asset.not_found"
        self.line.payload(self.turn, audioUri="x.wav", transcript="Lost." if n % 2 else "")

    def complete(self, n: int) -> None:
        self.line.completed(self.turn)
        self.turn += 1

    def new_turn(self, n: int) -> None:
        self.turn += 1

    def speak(self, n: int) -> None:
        self.line.speak(0.2 + 0.3 * n, "words" if n % 3 else "")

    def keys(self, n: int) -> None:
        self.line.keys("1#"[n % 2])

    def typed(self, n: int) -> None:
        self.line.do(self.line.machine.channel(TextIn("typed"), self.line.now))

    def interruption(self, n: int) -> None:
        self.line.output(RuntimeInterruption(n % 2 == 0))

    def wrong_mark(self, n: int) -> None:
        self.line.do(self.line.machine.channel(MarkReached(f"{n}.{n % 2}"), self.line.now))

    def wait(self, n: int) -> None:
        self.line.run((0.02, 0.06, 0.2, 0.5, 1.0, 3.0)[n])


STEPS: list[Callable[[Story, int], None]] = [
    Story.text,
    Story.terms,
    Story.file,
    Story.music,
    Story.missing,
    Story.complete,
    Story.new_turn,
    Story.speak,
    Story.keys,
    Story.typed,
    Story.interruption,
    Story.wait,
    Story.wait,
    Story.wait,
    Story.wait,
]
STORY = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5)), max_size=30)


def utterances(line: Line) -> dict[int, dict[str, object]]:
    found = {r.fields["id"]: dict(r.fields) for r in line.find("utterance_queued")}
    for record in line.find("utterance_ended"):
        found[record.fields["id"]].update(record.fields)
    return found


def check_utterances(line: Line) -> None:
    """Order, protection and honesty of all utterances of a call that has come to rest."""
    known = utterances(line)
    assert all("reason" in u for u in known.values()), "an utterance never ended"
    started = [r.fields["id"] for r in line.find("utterance_started")]
    assert started == sorted(started), "order was not kept"
    for number, u in known.items():
        if not u["interruptable"] and not u["cancellable"]:
            assert u["reason"] in ("completed", "failed"), f"protected utterance was cut: {u}"
        if u["reason"] in ("dropped",):
            assert u["heard_text"] == ""
            assert number not in started
        if u["reason"] in ("barge_in", "cancelled", "dropped") and u["source"] == "speech":
            # What was cut never counts for more than what came out of the loudspeaker.
            assert float(str(u["heard_s"])) <= line.heard_s(number) + 0.021
        if u["reason"] == "completed" and u["source"] == "speech":
            assert line.heard_s(number) >= float(str(u["heard_s"])) - 1e-6
            assert u["heard_text"] == u["text"]


STRATEGIES = st.fixed_dictionaries(
    {
        "barge_in": st.sampled_from(BargeIn),
        "barge_in_words": st.sampled_from([1, 2]),
        "resume_after_noise": st.booleans(),
        "resume_wait_s": st.sampled_from([0.5, 3.0]),
        "echo_guard_windows": st.sampled_from([0, 2]),
        "keys_under_protection": st.sampled_from(ProtectedKeys),
        "disable_barge_in": st.booleans(),
    }
)


@settings(max_examples=80)
@given(STORY, STRATEGIES, st.booleans(), st.sampled_from([0.0, 0.3]))
def test_any_strategy_keeps_the_rules_and_loses_no_words(
    story: list[tuple[Callable[[Story, int], None], int]],
    strategy: dict[str, Any],
    native: bool,
    stt_s: float,
) -> None:
    line = Line(CallProfile(**strategy), NATIVE if native else EMULATED, stt_s=stt_s).run(0.1)
    teller = Story(line)
    teller.complete(0)
    for step, n in story:
        step(teller, n)
    teller.complete(0)
    line.text("The end.", teller.turn)
    line.completed(teller.turn)
    line.until(lambda: line.quiet, 200.0)
    line.run(10.0)
    check_utterances(line)
    line.check()
    held, resumed = len(line.find("held")), len(line.find("resumed"))
    assert resumed <= held
    final = [r.fields["text"] for r in line.find("user_text", final=True)]
    given_words = " ".join(line.texts()).split()
    # Every word that was understood was given, but for words of attention (there are none here).
    assert given_words.count("words") + given_words.count("typed") == len(final)


@settings(max_examples=60)
@given(STORY, st.booleans(), st.sampled_from([0.0, 0.12]), st.sampled_from([60, 100, 700]))
def test_any_story_keeps_the_rules_and_comes_to_rest(
    story: list[tuple[Callable[[Story, int], None], int]],
    native: bool,
    tts_s: float,
    lead_ms: int,
) -> None:
    profile = CallProfile(lead_ms=lead_ms, barge_in_awareness=True)
    line = Line(profile, NATIVE if native else EMULATED, tts_s=tts_s).run(0.1)
    teller = Story(line)
    teller.complete(0)
    for step, n in story:
        step(teller, n)
    teller.complete(0)
    line.text("The end.", teller.turn)
    line.completed(teller.turn)
    line.until(lambda: line.quiet, 200.0)
    check_utterances(line)
    line.check()
    line.output(RuntimeEndSession({}))
    line.until(lambda: line.machine.ended)
    line.check()


ENDINGS: list[Callable[[Line], list[Action]]] = [
    lambda line: line.machine.channel(Ended(), line.now),
    lambda line: line.machine.transport_lost(line.now),
    lambda line: line.machine.runtime(RuntimeEndSession({"session_escalated": True}), line.now),
    lambda line: line.machine.runtime_lost(RuntimeFailure("runtime.closed", "gone"), line.now),
    lambda line: line.machine.shutdown("Closing.", line.now),
    lambda line: line.machine.end(EndReason.ERROR, line.now),
]


@settings(max_examples=60)
@given(STORY, st.lists(st.tuples(st.sampled_from(ENDINGS), st.integers(0, 60)), min_size=1))
def test_any_ending_ends_once_and_leaves_nothing(
    story: list[tuple[Callable[[Story, int], None], int]],
    endings: list[tuple[Callable[[Line], list[Action]], int]],
) -> None:
    line = Line(capabilities=NATIVE, tts_s=0.1).run(0.1)
    teller = Story(line)
    for step, n in story:
        step(teller, n)
    for ending, ticks in endings:
        line.do(ending(line))
        line.run(ticks * 0.02)
    line.run(65.0 if not line.machine.ended else 0.1)
    assert line.machine.ended
    assert sum(isinstance(a, CallEnded) for a in line.actions) == 1
    assert line.quiet
    line.check()


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=40),
    st.integers(1, 3000),
    st.sampled_from([60, 100, 500]),
)
def test_late_and_uneven_ticks_lose_and_repeat_no_frame(
    steps_ms: list[int], length_ms: int, lead_ms: int
) -> None:
    line = Line(CallProfile(lead_ms=lead_ms), NATIVE, platform=Platform()).run(0.1)
    ramp = b"".join(n.to_bytes(2, "little") for n in range(length_ms * 8))
    line.payload(1, audioUri="ramp.wav")
    line.do(line.machine.audio_loaded(1, ramp, line.now))
    line.completed(1)
    now = line.now
    sent: list[bytes] = []
    for step_ms in steps_ms * (1 + length_ms // sum(steps_ms)) + [20] * 10:
        now += step_ms / 1000
        sent += [a.data for a in line.machine.tick(now) if isinstance(a, SendAudio)]
    heard = b"".join(sent)
    assert heard[: len(ramp)] == ramp
    assert not any(heard[len(ramp) :])
    assert len(heard) % 320 == 0


@given(st.lists(st.floats(0, 1, width=32), max_size=50), st.floats(-1e3, 1e9))
def test_any_windows_and_positions_are_survived(
    probabilities: list[float], position_s: float
) -> None:
    machine: CallMachine = Line().machine
    for n, probability in enumerate(probabilities):
        machine.vad(probability, position_s + n * 0.032, 101.0 + n * 0.032)
    assert not machine.ended


def test_two_runs_of_one_story_are_identical() -> None:
    def run() -> list[Action]:
        line = Line(CallProfile(inactivity_s=2.0), NATIVE, tts_s=0.13, stt_s=0.21).run(0.1)
        teller = Story(line)
        for n, step in enumerate(STEPS * 2):
            step(teller, n % 6)
        return line.run(20.0).actions

    assert run() == run()


def test_time_that_runs_backwards_a_little_is_taken_as_standing_still() -> None:
    line = Line().greeted()
    line.say("A sentence of two seconds or even more.", 2)
    line.run(0.5)
    line.machine.vad(0.0, 1.0, line.now + 0.015)
    late = line.machine.tick(line.now + 0.005)
    assert all(value_of(a.data) == 2 for a in late if isinstance(a, SendAudio))
    line.run(3.0)
    line.check()
