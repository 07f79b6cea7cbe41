"""Google's voices through the library of Text-to-Speech: streamed where the voice can, else whole.

Audio is asked for in the encoding and at the rate of the line, so that G.711 lines get what the
service made, to the byte. SSML goes out as it is, which only the unstreamed call takes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.call.profile import VoiceConfig
from gateway.config import SpeechSettings
from gateway.errors import SpeechError
from gateway.speech import google_client
from gateway.speech.cache import SpeechCache, SpeechKey
from gateway.speech.google_audio import ServiceAudio
from gateway.speech.google_client import TRANSIENT
from gateway.speech.phrase_folder import PhraseFolder
from gateway.speech.phrases import Phrases
from gateway.speech.text import is_ssml

MAX_TEXT_BYTES = 5000
"""The service takes no longer text in one request."""
MAX_SENTENCE_S = 300.0
"""Audio of one request beyond which something is wrong."""
MAX_UNARY = 1000
"""Voices that are remembered as not streaming."""

_NAMED_LANGUAGE = re.compile(r"[a-z]{2,3}-(?:[A-Z]{2}|[0-9]{3})(?=-)")
_STREAMING_VOICE = re.compile(r"-Chirp\d*-HD-", re.IGNORECASE)


def is_promptable(voice: VoiceConfig) -> bool:
    """Whether the voice's model takes an instruction."""
    return voice.model.lower().startswith("gemini")


def can_stream(voice: VoiceConfig, text: str) -> bool:
    """Whether the service streams this voice, and this text."""
    able = is_promptable(voice) or _STREAMING_VOICE.search(voice.voice) is not None
    return able and not is_ssml(text)


class GoogleSynthesiser:
    """Speech by the service; see `gateway.speech.base.StreamingSynthesiser`."""

    name = "google"

    def __init__(self, settings: SpeechSettings) -> None:
        google_client.check_endpoint(settings.google)
        self._settings = settings.google
        self._client: Any = None
        self._unary: set[tuple[str, str]] = set()
        folder = (
            PhraseFolder(settings.cache_folder, settings.cache_folder_bytes)
            if settings.cache_folder is not None
            else None
        )
        self._phrases = Phrases(
            self._attempt,
            SpeechCache(settings.cache_bytes),
            folder=folder,
            attempts=self._settings.attempts,
            worth_retrying=TRANSIENT,
        )

    async def start(self) -> None:
        """Load the library and find credentials. Raises SpeechError, ConfigError."""
        await self._phrases.start()
        self._client, _ = await google_client.open_client(
            _library, self._settings.tts_endpoint, self._settings
        )

    async def aclose(self) -> None:
        """Break off what is under way and close the connection."""
        await self._phrases.aclose()
        client, self._client = self._client, None
        if client is not None:
            await client.transport.close()

    @staticmethod
    def unsupported(voice: VoiceConfig) -> tuple[str, ...]:
        """Fields of the app's entry that this engine cannot honour, by their name in the app."""
        missing = ["voiceSampleGcsUri"] if voice.sample_uri else []
        if voice.instruction and not is_promptable(voice):
            missing.append("instruction")
        return tuple(missing)

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """Speech of one sentence at `rate_hz`. Raises SpeechError."""
        wanted = AudioFormat(Encoding.LINEAR16, rate_hz)
        return await self._phrases.whole(self._key(text, voice, language, wanted))

    def stream(
        self, text: str, voice: VoiceConfig, language: str, audio_format: AudioFormat
    ) -> AsyncGenerator[Pcm, None]:
        """Speech of one sentence or SSML document, as it comes. Raises SpeechError."""
        return self._phrases.stream(self._key(text, voice, language, audio_format))

    def _key(
        self, text: str, voice: VoiceConfig, language: str, audio_format: AudioFormat
    ) -> SpeechKey:
        # What is not asked of the service makes no other sound.
        instruction = voice.instruction if is_promptable(voice) else ""
        voice = replace(voice, instruction=instruction, sample_uri="")
        return SpeechKey(self.name, voice, language, text, audio_format)

    # ---- one attempt

    async def _attempt(self, key: SpeechKey) -> AsyncIterator[Pcm]:
        if self._client is None:
            raise SpeechError("speech.closed", "the speech service is not connected")
        if len(key.text.encode()) > MAX_TEXT_BYTES:
            raise SpeechError("speech.too_long", f"over {MAX_TEXT_BYTES} bytes of text at once")
        name = (key.voice.voice, key.voice.model)
        if can_stream(key.voice, key.text) and name not in self._unary:
            given = False
            try:
                async for pcm in self._streamed(key):
                    given = True
                    yield pcm
                return
            except SpeechError as error:
                # The service knows better than the name which voices it streams.
                if given or error.code not in ("speech.refused", "speech.not_supported"):
                    raise
            async for pcm in self._whole(key):
                yield pcm
            if len(self._unary) < MAX_UNARY:
                self._unary.add(name)
            return
        async for pcm in self._whole(key):
            yield pcm

    async def _whole(self, key: SpeechKey) -> AsyncIterator[Pcm]:
        from google.api_core.exceptions import GoogleAPICallError

        request = unary_request(key)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                response = await self._client.synthesize_speech(
                    request=request, retry=None, timeout=self._settings.timeout_s
                )
        except TimeoutError:
            raise google_client.late(self._settings.timeout_s) from None
        except GoogleAPICallError as error:
            raise google_client.in_our_words(error) from None
        audio = ServiceAudio(key.format)
        pcm = audio.feed(response.audio_content) + audio.flush()
        if not pcm:
            raise _empty()
        yield pcm

    async def _streamed(self, key: SpeechKey) -> AsyncIterator[Pcm]:
        from google.api_core.exceptions import GoogleAPICallError

        async def requests() -> AsyncIterator[Any]:
            for request in streaming_requests(key):
                yield request

        audio = ServiceAudio(key.format)
        seconds = 0.0
        responses: Any = None
        try:
            responses = await self._client.streaming_synthesize(
                requests=requests(), retry=None, timeout=MAX_SENTENCE_S
            )
            pieces = aiter(responses)
            while True:
                async with asyncio.timeout(self._settings.timeout_s):
                    response = await anext(pieces, None)
                pcm = audio.flush() if response is None else audio.feed(response.audio_content)
                seconds += len(pcm) / 2 / key.format.rate_hz
                if pcm:
                    yield pcm
                if response is None:
                    break
                if seconds > MAX_SENTENCE_S:
                    raise SpeechError("speech.bad_audio", "a sentence that does not end")
        except TimeoutError:
            raise google_client.late(self._settings.timeout_s) from None
        except GoogleAPICallError as error:
            raise google_client.in_our_words(error) from None
        finally:
            if responses is not None:
                responses.cancel()
        if not seconds:
            raise _empty()


def _empty() -> SpeechError:
    return SpeechError("speech.empty", "the service made no sound of this text", where="google")


def _library() -> tuple[Any, Any]:
    from google.cloud.texttospeech_v1.services.text_to_speech import TextToSpeechAsyncClient
    from google.cloud.texttospeech_v1.services.text_to_speech.transports import (
        TextToSpeechGrpcAsyncIOTransport,
    )

    return TextToSpeechAsyncClient, TextToSpeechGrpcAsyncIOTransport


# ---- requests


def voice_selection(key: SpeechKey) -> dict[str, Any]:
    """`VoiceSelectionParams`: name and model of the app, language of the name before the call's.

    The service refuses a voice under another language than its own. Models with instructions know
    the persona alone, so `en-GB-Chirp3-HD-Kore` is their `Kore`.
    """
    voice = key.voice
    named = _NAMED_LANGUAGE.match(voice.voice)
    params = {"language_code": named[0] if named else key.language}
    if voice.voice:
        params["name"] = voice.voice.rpartition("-")[2] if is_promptable(voice) else voice.voice
    if voice.model:
        params["model_name"] = voice.model
    return params


def _speaking_rate(key: SpeechKey) -> dict[str, float]:
    # Left out at normal speed: some voices refuse the field itself.
    return {} if key.voice.speaking_rate == 1.0 else {"speaking_rate": key.voice.speaking_rate}


def unary_request(key: SpeechKey) -> Any:
    """A `SynthesizeSpeechRequest`."""
    from google.cloud.texttospeech_v1.types import cloud_tts

    given = {"ssml" if is_ssml(key.text) else "text": key.text}
    if key.voice.instruction:
        given["prompt"] = key.voice.instruction
    return cloud_tts.SynthesizeSpeechRequest(
        input=given,
        voice=voice_selection(key),
        audio_config={
            "audio_encoding": getattr(cloud_tts.AudioEncoding, key.format.encoding.value),
            "sample_rate_hertz": key.format.rate_hz,
            **_speaking_rate(key),
        },
    )


def streaming_requests(key: SpeechKey) -> list[Any]:
    """The `StreamingSynthesizeRequest`s of a sentence: what is wanted, then the text."""
    from google.cloud.texttospeech_v1.types import cloud_tts

    # A stream of Linear16 has no header, and another name.
    linear = key.format.encoding is Encoding.LINEAR16
    encoding = "PCM" if linear else key.format.encoding.value
    given = {"text": key.text}
    if key.voice.instruction:
        given["prompt"] = key.voice.instruction
    return [
        cloud_tts.StreamingSynthesizeRequest(
            streaming_config={
                "voice": voice_selection(key),
                "streaming_audio_config": {
                    "audio_encoding": getattr(cloud_tts.AudioEncoding, encoding),
                    "sample_rate_hertz": key.format.rate_hz,
                    **_speaking_rate(key),
                },
            }
        ),
        cloud_tts.StreamingSynthesizeRequest(input=given),
    ]
