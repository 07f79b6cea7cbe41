"""A worker ends with its input, and what a library prints never garbles its answers."""

from __future__ import annotations

import io
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import SpeechError
from gateway.speech.jobs import (
    Failed,
    JudgeTurn,
    Ready,
    Recognise,
    Synthesise,
    Words,
    body_length,
    pack,
    read_answer,
    read_job,
)
from gateway.speech.worker import serve
from tests.speech.conftest import VOICE
from tests.speech.test_pool import SMALL


def test_a_worker_ends_by_itself_when_its_input_ends() -> None:
    plan = msgspec.json.encode(SMALL).decode()
    done = subprocess.run(
        [sys.executable, "-m", "gateway.speech.worker", plan],
        input=pack(JudgeTurn(b"", 8000)),
        capture_output=True,
        timeout=50,
        check=True,
    )
    ready = pack(Ready())
    assert done.stdout[: len(ready)] == ready
    assert done.stderr == b""


def test_jobs_are_answered_in_order_and_half_a_message_ends_the_worker() -> None:
    jobs = [Recognise(b"", 8000, "en"), Recognise(b"", 8000, "en")]
    out = io.BytesIO()
    serve(io.BytesIO(b"".join(map(pack, jobs)) + b"\x00\x00"), out, SMALL)
    assert out.getvalue() == pack(Ready()) + 2 * pack(Words(""))


@given(st.text(), st.binary(max_size=100), st.integers(8000, 48000))
def test_messages_survive_the_pipe(text: str, pcm: bytes, rate_hz: int) -> None:
    for job in (
        Synthesise(text, VOICE, "en-US", rate_hz),
        Recognise(pcm, rate_hz, text),
        JudgeTurn(pcm, rate_hz),
    ):
        packed = pack(job)
        assert body_length(packed[:4]) == len(packed) - 4
        assert read_job(packed[4:]) == job


@given(st.binary(max_size=60))
def test_garbage_from_a_worker_is_a_lost_worker(body: bytes) -> None:
    code = None
    try:
        read_answer(body)
    except SpeechError as error:
        code = error.code
    assert code in (None, "speech.worker_lost")


def test_an_absurd_length_is_refused() -> None:
    with pytest.raises(SpeechError):
        body_length(b"\xff\xff\xff\xff")


def test_a_failure_keeps_its_code_on_the_way() -> None:
    answer = read_answer(pack(Failed("speech.empty", "no sound", "say more"))[4:])
    assert isinstance(answer, Failed)
    error = answer.error()
    assert (error.code, error.message, error.hint) == ("speech.empty", "no sound", "say more")
