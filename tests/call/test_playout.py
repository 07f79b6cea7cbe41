"""Rules of a call: Playout. Frames, slots, marks, positions."""

from __future__ import annotations

import pytest

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.call.events import (
    LoadAudio,
    RuntimeAudio,
    SendAudio,
    Source,
    Synthesize,
    UtteranceEnd,
)
from gateway.call.playout import FRAME_S, Playout
from gateway.call.policy import Policy
from gateway.call.profile import CallProfile
from gateway.call.utterance import Utterance
from gateway.channels.base import MarkReached, SendMark, Started
from gateway.channels.capabilities import Capabilities, Marks
from gateway.errors import SpeechError
from tests.call.harness import (
    EMULATED,
    LINEAR_8K,
    NATIVE,
    RATE_HZ,
    Line,
    Platform,
    tone,
    value_of,
)


def playout(**changes: object) -> Playout:
    settings: dict[str, object] = {
        "origin": 0.0,
        "lead_s": 0.1,
        "native_marks": False,
        "native_clear": True,
        "mark_grace_s": 2.0,
        "continuous": False,
    }
    return Playout(LINEAR_8K, **{**settings, **changes})  # type: ignore[arg-type]


def spoken(number: int, seconds: float, **policy: object) -> Utterance:
    utterance = Utterance(number, Source.SPEECH, Policy(**policy), 1, 320)  # type: ignore[arg-type]
    utterance.append("word " * 10, tone(number, seconds))
    utterance.finish()
    return utterance


def frames(queue: Playout, now: float) -> list[int]:
    out: list[object] = []
    queue.frames(now, out)  # type: ignore[arg-type]
    return [value_of(a.data) for a in out if isinstance(a, SendAudio)]


# ---- pacing


def test_a_stream_starts_with_its_lead_and_goes_on_one_frame_a_tick() -> None:
    queue = playout()
    queue.add(spoken(1, 1.0))
    assert len(frames(queue, 0.0)) == 6  # the slot that is due now, and five of lead
    for tick in range(1, 20):
        assert len(frames(queue, tick * FRAME_S)) == 1


def test_after_idle_a_stream_starts_on_the_calls_grid() -> None:
    queue = playout()
    frames(queue, 0.0)
    queue.add(spoken(1, 0.1))
    frames(queue, 3.013)
    assert queue.queue[0].start_slot == 151
    assert queue.due(151) == pytest.approx(3.02)


def test_a_late_tick_sends_what_is_overdue_at_once_and_the_grid_stays() -> None:
    queue = playout()
    queue.add(spoken(1, 2.0))
    frames(queue, 0.0)
    assert len(frames(queue, 0.14)) == 7
    assert len(frames(queue, 0.16)) == 1
    assert [run.slot for run in queue.queue[0].runs] == [0]


def test_a_very_late_tick_does_not_flood_the_platform() -> None:
    queue = playout()
    queue.add(spoken(1, 30.0))
    frames(queue, 0.0)
    assert len(frames(queue, 20.0)) == 6
    assert [run.slot for run in queue.queue[0].runs] == [0, 1000]
    assert queue.queue[0].position == 12 * 320


def test_ten_minutes_of_ticks_do_not_drift() -> None:
    queue = playout()
    queue.add(spoken(1, 605.0))
    sent = sum(len(frames(queue, tick * FRAME_S)) for tick in range(30_000))
    assert sent == 30_005


def test_the_tail_is_padded_with_silence_to_a_whole_frame() -> None:
    queue = playout()
    queue.add(spoken(7, 0.03))
    out: list[object] = []
    queue.frames(0.0, out)  # type: ignore[arg-type]
    assert [a.data for a in out] == [tone(7, 0.02), tone(7, 0.01) + bytes(160)]  # type: ignore[attr-defined]
    (_, end) = queue.advance(0.04)
    assert end.utterance.seconds(end.heard, RATE_HZ) == pytest.approx(0.03)


def test_a_gap_in_the_speech_moves_no_position() -> None:
    queue = playout()
    utterance = Utterance(1, Source.SPEECH, Policy(), 1, 320)
    queue.add(utterance)
    utterance.append("first.", tone(1, 0.1))
    for tick in range(50):
        frames(queue, tick * FRAME_S)
    assert queue.heard(utterance, 0.98) == 5 * 320
    assert [e.reason for e in queue.advance(0.98)] == [None]
    assert queue.sounding(0.98) is utterance
    utterance.append("second.", tone(1, 0.1))
    utterance.finish()
    frames(queue, 1.0)
    assert [run.slot for run in utterance.runs] == [0, 50]
    assert queue.heard(utterance, 1.05) == pytest.approx(7.5 * 320)
    assert queue.advance(1.0) == []
    (end,) = queue.advance(1.1)
    assert (end.t, end.reason) == (pytest.approx(1.1), UtteranceEnd.COMPLETED)


def test_pieces_of_runtime_audio_are_joined_without_padding() -> None:
    line = Line(capabilities=EMULATED).run(0.1)
    for _ in range(10):
        line.output(RuntimeAudio(tone(5, 0.013), 1))
    line.completed(1)
    line.run(0.5)
    assert line.one("utterance_ended").fields["heard_s"] == pytest.approx(0.13)
    heard = b"".join(p.frame for p in line.platform.played)
    assert heard == tone(5, 0.13) + bytes(len(heard) - 2080)
    assert line.one("runtime_output", type="audio").fields["turn"] == 1


def test_frames_are_encoded_in_the_calls_output_format() -> None:
    for wire in (MULAW_8K, ALAW_8K, AudioFormat(Encoding.LINEAR16, 24000)):
        check_encoding(wire)


def check_encoding(wire: AudioFormat) -> None:
    start = Started(call_id="c", in_format=MULAW_8K, out_format=wire)
    line = Line(start=start, begin=False)
    line.begin()
    line.run(0.1)
    line.text("Hi.", 1)
    sent = next(a for a in line.actions if isinstance(a, Synthesize))
    pcm = tone(800, 0.1, wire.rate_hz)
    assert line.machine.output_format == wire
    line.do(line.machine.speech_audio(sent.utterance_id, "Hi.", pcm, line.now))
    out = line.machine.tick(line.now)
    data = [a.data for a in out if isinstance(a, SendAudio)]
    assert data
    assert all(d == g711.encode(tone(800, 0.02, wire.rate_hz), wire.encoding) for d in data)
    assert all(len(d) == wire.frame_bytes for d in data)


def test_utterances_sound_in_the_runtimes_order() -> None:
    line = Line(tts_s=0.3)
    line.files["jingle.wav"] = tone(2, 0.5)
    line.run(0.1)
    line.text("First.", 1)
    line.payload(1, audioUri="jingle.wav")
    line.text("Last.", 1)
    line.completed(1)
    line.run(4.0)
    values = [value_of(p.frame) for p in line.platform.played]
    assert values == sorted(values)
    assert [r.fields["id"] for r in line.find("utterance_ended")] == [1, 2, 3]


# ---- marks


def test_a_mark_follows_the_last_frame_of_an_utterance() -> None:
    line = Line(capabilities=NATIVE).run(0.1)
    line.say("Hello.", 1)
    line.run(1.0)
    wire = [a for a in line.actions if isinstance(a, SendAudio) or "SendMark" in str(a)]
    assert sum(isinstance(a, SendAudio) for a in wire) == 15
    assert line.sent(SendMark) == [SendMark("1.0")]
    assert not isinstance(wire[-1], SendAudio)


def test_an_utterance_is_over_when_its_mark_comes_back() -> None:
    line = Line(capabilities=NATIVE, platform=Platform(delay_s=0.3)).run(0.1)
    line.say("Hello.", 1)
    line.run(2.0)
    assert line.t("utterance_started") == pytest.approx(0.12)
    assert line.t("utterance_ended") == pytest.approx(0.12 + 0.3 + 0.3)


def test_a_mark_that_never_comes_back_counts_after_its_grace() -> None:
    line = Line(CallProfile(mark_grace_s=1.0), NATIVE, echo_marks=False).run(0.1)
    line.say("Hello.", 1)
    line.run(2.0)
    assert line.t("utterance_ended") == pytest.approx(0.12 + 0.3 + 1.0)
    assert line.one("utterance_ended").fields["reason"] == "completed"


def test_a_mark_that_is_back_too_early_is_held_to_the_clock() -> None:
    line = Line(capabilities=NATIVE, echo_marks=False).run(0.1)
    line.say("A somewhat longer sentence.", 1)
    line.run(1.3)
    line.do(line.machine.channel(MarkReached("1.0"), line.now))
    line.run(1.0)
    assert line.t("utterance_ended") == pytest.approx(0.12 + 27 * 0.05, abs=0.021)


def test_marks_that_are_not_ours_mean_nothing() -> None:
    line = Line(capabilities=NATIVE, echo_marks=False).run(0.1)
    line.say("Hello.", 1)
    line.run(0.5)
    for name in ("", "1", "1.1", "x.0", "9.0", "1.0.0", "².0"):
        line.do(line.machine.channel(MarkReached(name), line.now))
    line.run(0.5)
    assert not line.find("utterance_ended")


def test_a_mark_of_audio_that_was_cleared_does_not_count_for_its_repetition() -> None:
    queue = playout(native_marks=True, lead_s=1.0)
    first, second = spoken(1, 0.1), spoken(2, 0.1)
    queue.add(first)
    queue.add(second)
    frames(queue, 0.0)
    assert second.sent
    queue.cut([(first, UtteranceEnd.BARGE_IN)], 0.04, by_caller=True)
    frames(queue, 0.04)
    assert second.sent
    queue.mark("2.0", 0.05)
    assert not second.marked_back
    queue.mark("2.1", 0.05)
    assert second.marked_back


def test_a_later_mark_vouches_for_earlier_utterances() -> None:
    line = Line(capabilities=NATIVE, echo_marks=False).run(0.1)
    line.text("Hello.", 1)
    line.say("You.", 1)
    line.run(0.7)
    line.do(line.machine.channel(MarkReached("2.0"), line.now))
    assert [r.fields["id"] for r in line.find("utterance_ended")] == [1, 2]


def test_emulated_marks_send_none_and_end_by_the_clock() -> None:
    line = Line(capabilities=EMULATED).run(0.1)
    line.say("Hello.", 1)
    line.run(1.0)
    assert not line.sent(SendMark)
    assert line.t("utterance_ended") == pytest.approx(0.12 + 0.3)


# ---- failures


def test_a_failed_synthesis_is_recorded_and_the_turn_goes_on() -> None:
    line = Line().run(0.1)
    line.tts_fails = True
    line.text("Lost.", 1)
    line.run(0.1)
    line.tts_fails = False
    line.say("Heard.", 1)
    line.run(1.0)
    assert line.one("error").fields["code"] == "speech.failed"
    assert [r.fields["reason"] for r in line.find("utterance_ended")] == ["failed", "completed"]


def test_speech_that_fails_half_way_plays_what_there_is() -> None:
    line = Line().run(0.1)
    line.tts_silent = True
    line.say("One. Two.", 1)
    line.do(line.machine.speech_audio(1, "One.", tone(1, 0.2), line.now))
    line.do(line.machine.speech_failed(1, SpeechError("speech.failed", "broke"), line.now))
    line.run(1.0)
    ended = line.one("utterance_ended").fields
    assert (ended["reason"], ended["heard_text"], ended["heard_s"]) == ("failed", "One.", 0.2)


def test_a_file_that_cannot_be_played_is_spoken_by_its_transcript() -> None:
    line = Line().run(0.1)
    line.files["gone.wav"] = "asset.not_found"
    line.payload(1, audioUri="gone.wav", transcript="Welcome.", interruptable=False)
    line.run(1.0)
    assert line.one("error").fields["code"] == "asset.not_found"
    ended = line.one("utterance_ended").fields
    assert (ended["reason"], ended["heard_text"], ended["uri"]) == (
        "completed",
        "Welcome.",
        "gone.wav",
    )


def test_a_file_without_transcript_is_skipped_and_the_turn_goes_on() -> None:
    line = Line().run(0.1)
    line.files["gone.wav"] = "asset.not_found"
    line.payload(1, audioUri="gone.wav")
    line.say("Anyway.", 1)
    line.run(1.0)
    assert [r.fields["reason"] for r in line.find("utterance_ended")] == ["failed", "completed"]
    assert len(line.find("utterance_started")) == 1


def test_an_empty_file_counts_as_a_failure() -> None:
    line = Line().run(0.1)
    line.files["empty.wav"] = b""
    line.payload(1, audioUri="empty.wav")
    line.run(0.5)
    assert line.one("error").fields["code"] == "asset.empty"
    assert line.one("utterance_ended").fields["reason"] == "failed"


def test_audio_that_never_comes_does_not_block_the_queue_for_ever() -> None:
    line = Line().run(0.1)
    line.payload(1, audioUri="never.wav")
    line.text("Anyway.", 1)
    line.completed(1)
    line.run(29.0)
    assert not line.find("utterance_ended")
    line.run(3.0)
    assert line.one("error").fields["code"] == "playout.starved"
    assert [r.fields["reason"] for r in line.find("utterance_ended")] == ["failed", "completed"]


def test_each_utterance_is_waited_for_in_its_turn() -> None:
    line = Line().run(0.1)
    line.payload(1, audioUri="never.wav")
    line.payload(1, audioUri="nor-this.wav")
    line.run(31.0)
    assert len(line.find("error", code="playout.starved")) == 1
    line.run(31.0)
    assert len(line.find("error", code="playout.starved")) == 2


def test_the_queue_is_bounded() -> None:
    line = Line().run(0.1)
    line.tts_silent = True
    for _ in range(300):
        line.text("More.", 1)
    assert len(line.find("utterance_queued")) == 256
    assert len(line.find("error", code="playout.full")) == 44


# ---- files, gain, loops


def test_a_transcript_is_what_was_said_in_a_file() -> None:
    line = Line().run(0.1)
    line.files["hi.wav"] = tone(900, 1.0)
    line.payload(1, audioUri="hi.wav", transcript="Welcome to us.")
    line.completed(1)
    line.run(1.5)
    assert LoadAudio(1, "hi.wav") in line.actions
    queued = line.one("utterance_queued").fields
    assert (queued["source"], queued["text"], queued["uri"]) == ("file", "Welcome to us.", "hi.wav")
    assert line.one("utterance_ended").fields["heard_text"] == "Welcome to us."
    assert [entry.text for entry in line.machine.transcript.lines] == ["Welcome to us."]


def test_gain_is_applied() -> None:
    line = Line().run(0.1)
    line.files["loud.wav"] = tone(2000, 0.1)
    line.payload(1, audioUri="loud.wav", gainDb=-6.0206)
    line.run(0.3)
    assert abs(value_of(line.platform.played[0].frame) - 1000) <= 1


def test_a_loop_repeats_without_a_gap_only_if_asked() -> None:
    ramp = b"".join(n.to_bytes(2, "little") for n in range(1, 401))
    line = Line().run(0.1)
    line.files["music.wav"] = ramp
    line.payload(1, audioUri="music.wav", cancellable=True, loop=True)
    line.run(1.0)
    heard = b"".join(p.frame for p in line.platform.played)
    assert heard == (ramp * 30)[: len(heard)]
    once = Line().run(0.1)
    once.files["music.wav"] = ramp
    once.payload(1, audioUri="music.wav", cancellable=True)
    once.run(1.0)
    assert once.one("utterance_ended").fields["heard_s"] == pytest.approx(0.05)


# ---- the ambient bed


def test_the_bed_sounds_through_silences_and_speech_alike() -> None:
    line = Line(begin=False)
    line.machine.ambience(tone(100, 1.0), line.now)
    line.begin()
    line.run(1.0)
    line.say("Hello.", 1)
    line.run(1.0)
    values = [value_of(p.frame) for p in line.platform.played]
    assert set(values) == {100, 101}
    assert values.count(101) == 15
    assert len(values) in range(100, 104)


def test_speech_comes_through_the_bed_at_once() -> None:
    line = Line(CallProfile(lead_ms=1000), NATIVE, begin=False)
    line.machine.ambience(tone(100, 1.0), line.now)
    line.begin()
    line.run(1.0)
    line.text("Hello.", 1)
    line.run(0.1)
    assert line.t("utterance_started") <= 1.02 + 0.04 + 1e-6


def test_the_bed_loops_seamlessly_whatever_its_length() -> None:
    ramp = b"".join(n.to_bytes(2, "little") for n in range(1, 251))
    queue = playout()
    queue.set_bed(ramp)
    out: list[object] = []
    for tick in range(100):
        queue.frames(tick * FRAME_S, out)  # type: ignore[arg-type]
    heard = b"".join(a.data for a in out)  # type: ignore[attr-defined]
    assert heard == (ramp * 100)[: len(heard)]


def test_a_sum_that_would_clip_is_bent_softly() -> None:
    queue = playout()
    queue.set_bed(tone(10_000, 1.0))
    utterance = Utterance(1, Source.SPEECH, Policy(), 1, 320)
    utterance.append("loud", tone(30_000, 0.02))
    utterance.finish()
    queue.add(utterance)
    assert 30_000 < frames(queue, 0.0)[0] < 32_767


def test_a_continuous_dialect_gets_silence_too() -> None:
    line = Line(capabilities=Capabilities(dialect="test", continuous=True, marks=Marks.EMULATED))
    line.run(1.0)
    assert len(line.platform.played) in range(50, 54)
    assert all(p.frame == bytes(320) for p in line.platform.played)


def test_without_a_bed_silence_is_not_sent() -> None:
    line = Line().run(1.0)
    assert line.platform.played == []
