"""Google's Text-to-Speech on loopback: the published service definition, its rules, its faults.

Its voice is made up: a sawtooth for each character. Whatever the real service refuses is refused.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections import deque
from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import grpc.aio
from google.cloud.texttospeech_v1.types import cloud_tts

from gateway.audio import g711
from gateway.audio.formats import AudioFormat, Encoding, Pcm

# Its one thread lives as long as the process: no test of a service leaves it behind.
grpc.aio.init_grpc_aio()

SERVICE = "google.cloud.texttospeech.v1.TextToSpeech"
CHARACTER_S = 0.04
PIECE_S = 0.1
_TAGS = {Encoding.LINEAR16: 1, Encoding.ALAW: 6, Encoding.MULAW: 7}
_KINDS = {
    cloud_tts.AudioEncoding.LINEAR16: Encoding.LINEAR16,
    cloud_tts.AudioEncoding.PCM: Encoding.LINEAR16,
    cloud_tts.AudioEncoding.MULAW: Encoding.MULAW,
    cloud_tts.AudioEncoding.ALAW: Encoding.ALAW,
}
_STATUS = {
    "quota": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "unavailable": grpc.StatusCode.UNAVAILABLE,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
    "refused": grpc.StatusCode.INVALID_ARGUMENT,
    "unimplemented": grpc.StatusCode.UNIMPLEMENTED,
}


def voice_of(text: str, rate_hz: int) -> Pcm:
    """The sound of a text: each character its own slope."""
    count = round(CHARACTER_S * rate_hz)
    return b"".join(
        struct.pack(
            f"<{count}h", *((n * (ord(char) % 61 + 60)) % 8000 - 4000 for n in range(count))
        )
        for char in text
    )


def wav(data: bytes, made: AudioFormat, rate_hz: int | None = None) -> bytes:
    """With the header that the service puts before it."""
    rate_hz, size = rate_hz or made.rate_hz, made.sample_bytes
    head = struct.pack("<HHIIHH", _TAGS[made.encoding], 1, rate_hz, rate_hz * size, size, 8 * size)
    chunks = b"fmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


class GoogleVoices:
    """The service. `faults`: what befalls the next requests, one each; "" is none.

    Besides names of gRPC statuses: silent (never answers), empty, text, wrong_rate, header (a
    stream with a header), cut (a stream breaks off after two pieces).
    """

    def __init__(self) -> None:
        self.port = 0
        self.whole: list[cloud_tts.SynthesizeSpeechRequest] = []
        self.streams: list[list[cloud_tts.StreamingSynthesizeRequest]] = []
        self.faults: deque[str] = deque()
        self.streaming_voices = re.compile(r"Chirp3-HD")
        self.gate: asyncio.Event | None = None
        """Holds streams back after their first piece, until it is set."""
        self._server: Any = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def requests(self) -> int:
        return len(self.whole) + len(self.streams)

    async def start(self) -> None:
        self._server = grpc.aio.server()
        handlers = {
            "SynthesizeSpeech": grpc.unary_unary_rpc_method_handler(
                self._synthesize,
                cloud_tts.SynthesizeSpeechRequest.deserialize,
                cloud_tts.SynthesizeSpeechResponse.serialize,
            ),
            "StreamingSynthesize": grpc.stream_stream_rpc_method_handler(
                self._stream,
                cloud_tts.StreamingSynthesizeRequest.deserialize,
                cloud_tts.StreamingSynthesizeResponse.serialize,
            ),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(None)

    # ---- the two methods

    async def _synthesize(
        self, request: cloud_tts.SynthesizeSpeechRequest, context: Any
    ) -> cloud_tts.SynthesizeSpeechResponse:
        self.whole.append(request)
        fault = await self._fault(context)
        text = request.input.text or request.input.ssml
        await self._check(request.voice, request.input, context)
        encoding = request.audio_config.audio_encoding
        if encoding is cloud_tts.AudioEncoding.PCM:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "encoding")
        if request.input.ssml:
            try:
                ElementTree.fromstring(request.input.ssml)
            except ElementTree.ParseError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "SSML")
        made = AudioFormat(_KINDS[encoding], request.audio_config.sample_rate_hertz)
        content = wav(g711.encode(voice_of(text, made.rate_hz), made.encoding), made)
        if fault == "empty":
            content = wav(b"", made)
        elif fault == "text":
            content = b'{"error": {"code": 503, "message": "try again later"}}'
        elif fault == "wrong_rate":
            content = wav(g711.encode(voice_of(text, 24000), made.encoding), made, 24000)
        return cloud_tts.SynthesizeSpeechResponse(audio_content=content)

    async def _stream(
        self, requests: AsyncIterator[cloud_tts.StreamingSynthesizeRequest], context: Any
    ) -> AsyncIterator[cloud_tts.StreamingSynthesizeResponse]:
        taken: list[cloud_tts.StreamingSynthesizeRequest] = []
        self.streams.append(taken)
        taken.extend([request async for request in requests])
        fault = await self._fault(context)
        config = taken[0].streaming_config
        given = taken[1].input
        await self._check(config.voice, given, context)
        audio = config.streaming_audio_config
        streams = self.streaming_voices.search(config.voice.name) or config.voice.model_name
        if not streams or audio.audio_encoding is cloud_tts.AudioEncoding.LINEAR16:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "streaming")
        made = AudioFormat(_KINDS[audio.audio_encoding], audio.sample_rate_hertz)
        data = g711.encode(voice_of(given.text, made.rate_hz), made.encoding)
        if fault == "empty":
            data = b""
        elif fault == "text":
            data = b"<html><body>Bad gateway, try again later</body></html>"
        elif fault == "header":
            data = wav(data, made)
        # An odd length: samples are cut in two.
        size = int(PIECE_S * made.rate_hz) * made.sample_bytes + 1
        for number, at in enumerate(range(0, len(data), size)):
            if number == 1 and self.gate is not None:
                await self.gate.wait()
            if number == 2 and fault == "cut":
                await context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
            yield cloud_tts.StreamingSynthesizeResponse(audio_content=data[at : at + size])

    async def _fault(self, context: Any) -> str:
        fault = self.faults.popleft() if self.faults else ""
        if fault == "silent":
            await asyncio.Event().wait()
        if fault in _STATUS:
            await context.abort(_STATUS[fault], "as you wish")
        return fault

    @staticmethod
    async def _check(voice: cloud_tts.VoiceSelectionParams, given: Any, context: Any) -> None:
        named = re.match(r"([a-z]+-[A-Z]+)-", voice.name)
        promptable = voice.model_name.startswith("gemini")
        wrong = (
            not voice.language_code
            or (named and named[1] != voice.language_code)
            or (promptable and "-" in voice.name)
            or (given.prompt and not promptable)
            or len(given.text.encode()) > 5000
        )
        if wrong:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "voice or input")
