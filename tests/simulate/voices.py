"""Speech engines that cost nothing: tones for words, and words for tones."""

from __future__ import annotations

from gateway.audio.formats import Pcm
from gateway.audio.tones import sine
from gateway.call.profile import VoiceConfig
from gateway.errors import SpeechError


class ToneSynthesiser:
    """100 ms of tone for each character; fails on words it is told to fail on."""

    name = "tones"

    def __init__(self, fails_on: str = "unspeakable") -> None:
        self.made: list[str] = []
        self._fails_on = fails_on

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        if self._fails_on in text:
            raise SpeechError("speech.failed", "no voice for that")
        self.made.append(text)
        return sine(300, 100 * len(text), rate_hz)


class EchoRecogniser:
    """Understands how long the audio is."""

    name = "length"

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        return f"{len(pcm) / 2 / rate_hz:g} s"
