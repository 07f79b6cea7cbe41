"""What a worker is asked and what it answers: typed messages, each behind a four-byte length."""

from __future__ import annotations

import msgspec

from gateway.audio.formats import Pcm
from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError
from gateway.speech.engines import Engines

LENGTH_BYTES = 4
MAX_MESSAGE_BYTES = 64 << 20


class Synthesise(msgspec.Struct, frozen=True, tag=True):
    """Speak one sentence; answered with PCM."""

    text: str
    voice: VoiceConfig
    language: str
    rate_hz: int


class Recognise(msgspec.Struct, frozen=True, tag=True):
    """Recognise a clip; answered with text."""

    pcm: Pcm
    rate_hz: int
    language: str


class JudgeTurn(msgspec.Struct, frozen=True, tag=True):
    """Is the turn over? Answered with a bool."""

    pcm: Pcm
    rate_hz: int


Job = Synthesise | Recognise | JudgeTurn


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has loaded its engines."""


class Speech(msgspec.Struct, frozen=True, tag=True):
    """Result of Synthesise."""

    pcm: Pcm


class Words(msgspec.Struct, frozen=True, tag=True):
    """Result of Recognise."""

    text: str


class Verdict(msgspec.Struct, frozen=True, tag=True):
    """Result of JudgeTurn."""

    complete: bool


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The job, or the start of the worker, failed."""

    code: str
    message: str
    hint: str | None = None

    def error(self) -> SpeechError:
        """The failure as the caller meets it."""
        return SpeechError(self.code, self.message, hint=self.hint)


Answer = Ready | Speech | Words | Verdict | Failed

_encoder = msgspec.msgpack.Encoder()
_job_decoder: msgspec.msgpack.Decoder[Job] = msgspec.msgpack.Decoder(Job)
_answer_decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def pack(message: Job | Answer) -> bytes:
    """A message with its length in front."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(head: bytes) -> int:
    """Bytes that follow the head. Raises SpeechError where no message is that long."""
    length = int.from_bytes(head, "big")
    if length > MAX_MESSAGE_BYTES:
        raise SpeechError("speech.worker_lost", "a worker's answer cannot be read")
    return length


def read_job(body: bytes) -> Job:
    """The job in a message's body."""
    return _job_decoder.decode(body)


def read_answer(body: bytes) -> Answer:
    """The answer in a message's body. Raises SpeechError."""
    try:
        return _answer_decoder.decode(body)
    except msgspec.DecodeError:
        raise SpeechError("speech.worker_lost", "a worker's answer cannot be read") from None


def perform(job: Job, engines: Engines) -> Answer:
    """Do a job; an expected failure is an answer as well."""
    try:
        match job:
            case Synthesise():
                return Speech(engines.synthesise(job.text, job.voice, job.language, job.rate_hz))
            case Recognise():
                return Words(engines.recognise(job.pcm, job.rate_hz, job.language))
            case JudgeTurn():
                return Verdict(engines.complete(job.pcm, job.rate_hz))
    except SpeechError as error:
        return Failed(error.code, error.message, error.hint)
