"""Google's Speech-to-Text v2 on loopback: the published service definition, its rules, its faults.

It hears made-up words: a stretch of one sample value, not zero, is the word `w` and that value.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any

import grpc.aio
from google.cloud.speech_v2.types import cloud_speech

from gateway.audio.formats import Pcm
from tests.speech import google_voices  # noqa: F401  (starts the library's one thread)

SERVICE = "google.cloud.speech.v2.Speech"
RATE_HZ = 8000
SHORTEST_WORD = 400
ENDPOINT = 4000
"""Samples of silence after which words are final."""
_STATUS = {
    "quota": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "unavailable": grpc.StatusCode.UNAVAILABLE,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
}


def say(*values: int, word_s: float = 0.3, gap_s: float = 0.2) -> Pcm:
    """Words, each followed by a gap."""
    word, gap = round(word_s * RATE_HZ), round(gap_s * RATE_HZ)
    return b"".join(struct.pack("<h", value) * word + bytes(2 * gap) for value in values)


def quiet(seconds: float) -> Pcm:
    return bytes(2 * round(seconds * RATE_HZ))


@dataclass
class Stream:
    """One request of the client: what it asked and how it went."""

    request: cloud_speech.StreamingRecognizeRequest
    audio: bytearray = field(default_factory=bytearray)
    ended: bool = False
    """The client has said that no more audio comes."""

    @property
    def config(self) -> cloud_speech.RecognitionConfig:
        return self.request.streaming_config.config

    @property
    def languages(self) -> list[str]:
        return list(self.config.language_codes)


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


def _words(audio: bytes, start: int) -> list[_Word]:
    """Words in the samples of `audio`, from sample `start` on."""
    samples = struct.unpack(f"<{len(audio) // 2 - start}h", audio[2 * start :])
    found, at = [], start
    for value, run in groupby(samples):
        length = sum(1 for _ in run)
        if value and length >= SHORTEST_WORD:
            found.append(_Word(f"w{value}", at, at + length))
        at += length
    return found


class GoogleEars:
    """The service. `faults`: what befalls the next requests, one each; "" is none.

    Besides names of gRPC statuses: silent (hears and never answers), deaf (takes no audio), and
    a number of seconds after which the stream breaks off.
    """

    def __init__(self) -> None:
        self.port = 0
        self.streams: list[Stream] = []
        self.whole: list[cloud_speech.RecognizeRequest] = []
        self.faults: deque[str | float] = deque()
        self.limit_s = 300.0
        self.limits_met = 0
        self.pieces = 0
        """Messages of audio so far."""
        self.word_times = True
        self.ear: Callable[[Pcm], Awaitable[str]] | None = None
        """Understands what holds no made-up word, once its stream has ended."""
        self.language = ""
        """What it says that it has heard."""
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        # A small fixed window: what is not read is soon not taken either.
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 1 << 16)]
        self._server = grpc.aio.server(options=options)
        handlers = {
            "StreamingRecognize": grpc.stream_stream_rpc_method_handler(
                self._stream,
                cloud_speech.StreamingRecognizeRequest.deserialize,
                cloud_speech.StreamingRecognizeResponse.serialize,
            ),
            "Recognize": grpc.unary_unary_rpc_method_handler(
                self._recognize,
                cloud_speech.RecognizeRequest.deserialize,
                cloud_speech.RecognizeResponse.serialize,
            ),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    async def _check(self, config: cloud_speech.RecognitionConfig, context: Any) -> None:
        decoding = config.explicit_decoding_config
        wrong = (
            decoding.encoding is not cloud_speech.ExplicitDecodingConfig.AudioEncoding.LINEAR16
            or decoding.sample_rate_hertz != RATE_HZ
            or not 1 <= len(config.language_codes) <= 3
            or not config.model
            or (config.features.enable_word_time_offsets and not self.word_times)
        )
        if wrong:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "config")

    async def _recognize(
        self, request: cloud_speech.RecognizeRequest, context: Any
    ) -> cloud_speech.RecognizeResponse:
        self.whole.append(request)
        await self._fault(context)
        await self._check(request.config, context)
        text = " ".join(word.text for word in _words(request.content, 0))
        result = cloud_speech.SpeechRecognitionResult(alternatives=[{"transcript": text}])
        return cloud_speech.RecognizeResponse(results=[result] if text else [])

    async def _fault(self, context: Any) -> str | float:
        fault = self.faults.popleft() if self.faults else ""
        if fault in ("silent", "deaf") and not isinstance(fault, float):
            return fault
        if fault in _STATUS:
            await context.abort(_STATUS[str(fault)], "as you wish")
        return fault

    async def _stream(
        self, requests: AsyncIterator[cloud_speech.StreamingRecognizeRequest], context: Any
    ) -> AsyncIterator[cloud_speech.StreamingRecognizeResponse]:
        first = await anext(aiter(requests))
        stream = Stream(first)
        self.streams.append(stream)
        fault = await self._fault(context)
        await self._check(stream.config, context)
        if first.audio or not first.recognizer.startswith("projects/"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "first message")
        if fault == "deaf":
            await asyncio.Event().wait()
        settled, told = 0, ""
        async for request in requests:
            if request.recognizer or not 0 < len(request.audio) <= 15_000:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "audio message")
            stream.audio += request.audio
            self.pieces += 1
            seconds = len(stream.audio) / 2 / RATE_HZ
            if seconds > self.limit_s:
                self.limits_met += 1
                await context.abort(grpc.StatusCode.ABORTED, "the stream is too old")
            if isinstance(fault, float) and seconds > fault:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
            if fault == "silent":
                continue
            words = _words(stream.audio, settled)
            if words and len(stream.audio) // 2 - words[-1].end >= ENDPOINT:
                yield self._final(stream, words, len(stream.audio) // 2)
                settled, told = len(stream.audio) // 2, ""
            elif words and (text := " ".join(word.text for word in words)) != told:
                told = text
                yield self._interim(text, words[-1].end)
        stream.ended = True
        if fault == "silent":
            await asyncio.Event().wait()
        end = len(stream.audio) // 2
        if words := _words(stream.audio, settled):
            yield self._final(stream, words, end)
        elif self.ear is not None and (text := await self.ear(bytes(stream.audio))):
            yield self._final(stream, [_Word(text, settled, end)], end)

    @staticmethod
    def _interim(text: str, end: int) -> cloud_speech.StreamingRecognizeResponse:
        return cloud_speech.StreamingRecognizeResponse(
            results=[
                {
                    "alternatives": [{"transcript": text}],
                    "result_end_offset": timedelta(seconds=end / RATE_HZ),
                    "stability": 0.5,
                }
            ]
        )

    def _final(
        self, stream: Stream, words: list[_Word], end: int
    ) -> cloud_speech.StreamingRecognizeResponse:
        timed = [
            {
                "word": word.text,
                "start_offset": timedelta(seconds=word.start / RATE_HZ),
                "end_offset": timedelta(seconds=word.end / RATE_HZ),
            }
            for word in words
        ]
        asked = stream.config.features.enable_word_time_offsets
        return cloud_speech.StreamingRecognizeResponse(
            results=[
                {
                    "alternatives": [
                        {
                            "transcript": " ".join(word.text for word in words),
                            "words": timed if asked else [],
                        }
                    ],
                    "is_final": True,
                    "result_end_offset": timedelta(seconds=end / RATE_HZ),
                    "language_code": self.language,
                }
            ]
        )
