"""What the media loop hands over: bounded, complete, in order, and cheap."""

from __future__ import annotations

import io
import threading

from gateway.records.entries import Kind, payload, scan
from gateway.records.recorder import MAX_NOTES, CallRecorder


def entries(data: bytes) -> list[tuple[int, float, bytes]]:
    file = io.BytesIO(data)
    return [(e.kind, e.t, payload(file, e)) for e in scan(file)]


def test_frames_come_out_as_they_went_in() -> None:
    recorder = CallRecorder(audio=True, max_frames=10)
    recorder.caller(b"ab", 1.0)
    recorder.agent(b"cd", 1.1)
    recorder.unheard(1.05)
    recorder.key(2.0)
    assert entries(recorder.take_audio()) == [
        (Kind.CALLER, 1.0, b"ab"),
        (Kind.AGENT, 1.1, b"cd"),
        (Kind.UNHEARD, 1.05, b""),
        (Kind.KEY, 2.0, b""),
    ]
    assert recorder.take_audio() == b""


def test_frames_beyond_the_limit_are_lost_and_counted() -> None:
    recorder = CallRecorder(audio=True, max_frames=3)
    for n in range(5):
        recorder.caller(bytes([n]), float(n))
    recorder.unheard(0.0)
    assert recorder.lost_frames == 2
    kept = entries(recorder.take_audio())
    assert [data for kind, _, data in kept if kind == Kind.CALLER] == [b"\0", b"\1", b"\2"]
    assert kept[-1][0] == Kind.UNHEARD, "what was not heard is never forgotten"
    recorder.caller(b"again", 9.0)
    assert entries(recorder.take_audio())[0][2] == b"again"


def test_where_no_thread_writes_waiting_frames_are_written_on_the_spot() -> None:
    recorder = CallRecorder(audio=True, max_frames=3)
    written = bytearray()

    def spill() -> None:
        written.extend(recorder.take_audio())

    recorder.spill = spill
    for n in range(10):
        recorder.agent(bytes([n]), float(n))
    spill()
    assert [data for _, _, data in entries(bytes(written))] == [bytes([n]) for n in range(10)]
    assert recorder.lost_frames == 0


def test_a_call_of_which_nobody_wants_the_sound_gives_none() -> None:
    recorder = CallRecorder(audio=False, max_frames=3)
    recorder.caller(b"ab", 1.0)
    recorder.agent(b"ab", 1.0)
    recorder.key(1.0)
    recorder.unheard(1.0)
    assert recorder.take_audio() == b""


def test_only_what_a_transcript_needs_is_noted_and_notes_are_bounded() -> None:
    recorder = CallRecorder(audio=True, max_frames=3)
    recorder.note(1.0, "runtime_output", {"text": "not yet heard"})
    recorder.note(1.0, "user_text", {"text": "hello"})
    assert recorder.take_notes() == [(1.0, "user_text", {"text": "hello"})]
    for _ in range(MAX_NOTES + 2):
        recorder.note(1.0, "dtmf", {})
    assert recorder.lost_notes == 2
    assert len(recorder.take_notes()) == MAX_NOTES


def test_the_end_is_told_once() -> None:
    told: list[int] = []
    recorder = CallRecorder(audio=True, max_frames=3)
    recorder.on_end = lambda: told.append(1)
    recorder.end(2.0)
    recorder.end(3.0)
    assert (told, recorder.ended_at) == ([1], 2.0)


def test_two_threads_lose_nothing_between_them() -> None:
    recorder = CallRecorder(audio=True, max_frames=1_000_000)
    count = 20_000
    taken = bytearray()
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            taken.extend(recorder.take_audio())

    writer = threading.Thread(target=write)
    writer.start()
    for n in range(count):
        recorder.caller(n.to_bytes(4, "little"), float(n))
    over.set()
    writer.join()
    taken.extend(recorder.take_audio())
    assert [int.from_bytes(data, "little") for _, _, data in entries(bytes(taken))] == list(
        range(count)
    )
