"""From a spool file to the files that are delivered, and again after any interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.errors import RecordError
from gateway.records.finished import SPOOL, TODO, finish
from gateway.records.plan import Delivery, Target
from tests.records.makers import SpoolFile, header, tone, wav

PLAIN = Delivery(Target.FOLDER, "/plain", False)
MASKED = Delivery(Target.FOLDER, "/masked", True)
ROWS = Delivery(Target.BIGQUERY, "p.d.t", False)


def call(folder: Path, *deliveries: Delivery, **over: Any) -> SpoolFile:
    spool = SpoolFile(header(deliveries, **over))
    spool.note(0.0, "call_started", channel="twilio", call_id="CA1", language="en-US")
    spool.note(1.0, "user_speech_started").note(2.0, "user_speech_ended")
    spool.note(
        2.2,
        "user_text",
        text="it is [number]",
        hidden=[[0.3, 1.0]],
        plain={"text": "it is 4711"},
    )
    spool.note(3.0, "call_ended", reason="completed")
    spool.caller(2.98, tone(1000, 3.0)).end(3.0)
    (folder / SPOOL).write_bytes(spool.data)
    return spool


def content(path: Path | None) -> dict[str, Any]:
    assert path is not None
    read: dict[str, Any] = json.loads(path.read_bytes())
    return read


def test_recording_and_transcript_in_the_form_that_is_wanted(tmp_path: Path) -> None:
    call(tmp_path, MASKED)
    made = finish(tmp_path)
    transcript = content(made.transcript(MASKED))
    assert transcript["lines"] == [
        {"start": 0.9, "end": 2.0, "speaker": "caller", "text": "it is [number]"}
    ]
    assert transcript["redacted"] is True
    assert transcript["reason"] == "completed"
    assert transcript["started_at"] == "2026-01-01T00:00:00.000+00:00"
    assert transcript["ended_at"] == "2026-01-01T00:00:03.000+00:00"
    recording = made.recording(MASKED)
    assert recording is not None
    samples = wav(recording)[1][:, 0]
    ((first, last),) = transcript["recording"]["muted"]["caller"]
    assert not samples[round(first * 8000) + 1 : round(last * 8000) - 1].any()
    assert samples[:4000].all()
    assert made.recording(PLAIN) is None
    assert "4711" not in "".join(p.read_text("latin-1") for p in tmp_path.iterdir())


def test_both_forms_where_both_are_wanted(tmp_path: Path) -> None:
    call(tmp_path, MASKED, PLAIN)
    made = finish(tmp_path)
    assert content(made.transcript(PLAIN))["lines"][0]["text"] == "it is 4711"
    assert content(made.transcript(MASKED))["lines"][0]["text"] == "it is [number]"
    plain, masked = made.recording(PLAIN), made.recording(MASKED)
    assert plain is not None
    assert masked is not None
    assert np.count_nonzero(wav(plain)[1]) == 3 * 8000
    assert np.count_nonzero(wav(masked)[1]) < 2.5 * 8000


def test_rows_alone_need_no_recording(tmp_path: Path) -> None:
    call(tmp_path, ROWS)
    made = finish(tmp_path)
    assert made.recording(ROWS) is None
    assert "recording" not in content(made.transcript(ROWS))


def test_where_words_are_not_kept_there_is_only_sound(tmp_path: Path) -> None:
    call(tmp_path, PLAIN, words=False)
    made = finish(tmp_path)
    assert made.transcript(PLAIN) is None
    assert made.recording(PLAIN) is not None


def test_a_call_in_text_has_no_recording(tmp_path: Path) -> None:
    spool = SpoolFile(header([PLAIN], in_format=None, out_format=None))
    (tmp_path / SPOOL).write_bytes(spool.note(1.0, "user_text", text="hello").end(2.0).data)
    made = finish(tmp_path)
    assert made.recording(PLAIN) is None
    assert content(made.transcript(PLAIN))["lines"][0]["text"] == "hello"


def test_working_files_are_gone_afterwards(tmp_path: Path) -> None:
    call(tmp_path, PLAIN)
    finish(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plain.json", "plain.wav", TODO]


def test_what_was_begun_and_broken_off_is_done_again(tmp_path: Path) -> None:
    call(tmp_path, PLAIN)
    (tmp_path / "caller.pcm").write_bytes(b"half")
    (tmp_path / "plain.wav").write_bytes(b"RIFF")
    (tmp_path / f"{TODO}.new").write_bytes(b"{")
    made = finish(tmp_path)
    recording = made.recording(PLAIN)
    assert recording is not None
    assert len(wav(recording)[1]) == 3 * 8000


def test_what_is_finished_is_not_made_again(tmp_path: Path) -> None:
    call(tmp_path, PLAIN, MASKED)
    first = finish(tmp_path).without(PLAIN)
    (tmp_path / SPOOL).write_bytes(b"left behind")
    again = finish(tmp_path)
    assert again == first
    assert again.left == (MASKED,)


@pytest.mark.parametrize("data", [None, b"", b"no spool file"])
def test_nothing_to_make_anything_of(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / SPOOL).write_bytes(data)
    with pytest.raises(RecordError) as caught:
        finish(tmp_path)
    assert caught.value.code == "records.spool"
