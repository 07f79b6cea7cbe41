"""Google's recogniser through the library of Speech-to-Text v2."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.audio.formats import Pcm
from gateway.config import SpeechSettings
from gateway.errors import SpeechError
from gateway.speech import google_client
from gateway.speech.base import OnHeard
from gateway.speech.google_client import TRANSIENT
from gateway.speech.google_leg import best, closed, join
from gateway.speech.google_stream import GoogleStream

MAX_LANGUAGES = 3
"""The service expects no more at once."""


class GoogleRecogniser:
    """Recognition by the service; see `gateway.speech.base.StreamingRecogniser`."""

    name = "google"

    def __init__(self, settings: SpeechSettings) -> None:
        google_client.check_endpoint(settings.google)
        self.settings = settings.google
        self.word_times = True
        """Whether words are asked for with their times: not every model has them."""
        self.recognizer = ""
        self.client: Any = None
        self._streams: set[GoogleStream] = set()

    async def start(self) -> None:
        """Load the library and find credentials. Raises SpeechError."""
        settings = self.settings
        endpoint = settings.stt_endpoint
        if not endpoint and settings.location != "global":
            endpoint = f"{settings.location}-speech.googleapis.com"
        self.client, project = await google_client.open_client(_library, endpoint, settings)
        project = settings.project or project
        if not project:
            await self.aclose()
            raise SpeechError(
                "speech.project",
                "no project for the recogniser",
                where="speech.google.project",
                hint="set speech.google.project: the credentials name none",
            )
        place = f"projects/{project}/locations/{settings.location}"
        self.recognizer = f"{place}/recognizers/{settings.recognizer}"

    async def aclose(self) -> None:
        """End all streams and the connection."""
        await asyncio.gather(*(stream.aclose() for stream in tuple(self._streams)))
        client, self.client = self.client, None
        if client is not None:
            await client.transport.close()

    def open(self, rate_hz: int, languages: tuple[str, ...], on_heard: OnHeard) -> GoogleStream:
        """A new stream."""
        stream = GoogleStream(self, rate_hz, languages, on_heard)
        self._streams.add(stream)
        return stream

    def closed(self, stream: GoogleStream) -> None:
        """A stream has ended."""
        self._streams.discard(stream)

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of one segment, all of it at once. Raises SpeechError."""
        from google.api_core.exceptions import GoogleAPICallError

        if self.client is None:
            raise closed()
        settings = self.settings
        for attempt in range(1, settings.attempts + 1):
            request = {
                "recognizer": self.recognizer,
                "config": self.recognition_config(rate_hz, (language,)),
                "content": pcm,
            }
            try:
                async with asyncio.timeout(settings.timeout_s):
                    response = await self.client.recognize(
                        request=request, retry=None, timeout=settings.timeout_s
                    )
                return join(best(result) for result in response.results)
            except TimeoutError:
                error = google_client.late(settings.timeout_s)
            except GoogleAPICallError as failure:
                error = google_client.in_our_words(failure)
            if error.code == "speech.refused" and self.word_times:
                self.word_times = False
            elif attempt == settings.attempts or error.code not in TRANSIENT:
                raise error
        raise error

    def recognition_config(self, rate_hz: int, languages: tuple[str, ...]) -> dict[str, Any]:
        """`RecognitionConfig`: Linear16 at the line's rate."""
        return {
            "explicit_decoding_config": {
                "encoding": "LINEAR16",
                "sample_rate_hertz": rate_hz,
                "audio_channel_count": 1,
            },
            "model": self.settings.model,
            "language_codes": list(languages[:MAX_LANGUAGES]),
            "features": {
                "enable_automatic_punctuation": True,
                "enable_word_time_offsets": self.word_times,
            },
        }


def _library() -> tuple[Any, Any]:
    from google.cloud.speech_v2.services.speech import SpeechAsyncClient
    from google.cloud.speech_v2.services.speech.transports import SpeechGrpcAsyncIOTransport

    return SpeechAsyncClient, SpeechGrpcAsyncIOTransport
