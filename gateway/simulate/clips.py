"""The caller's voice: what each `say` and `play` step sounds like, ready before the call begins."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.audio.files import decode
from gateway.audio.formats import Pcm
from gateway.audio.resample import resample_clip
from gateway.call.profile import VoiceConfig
from gateway.errors import AssetError, ScenarioError, SpeechError
from gateway.simulate.scenario import Play, Say, Scenario
from gateway.speech.base import Synthesiser
from gateway.speech.text import prepare, sentences

LANGUAGE = "en-US"
_PAUSE_S = 0.15
_VOICE = VoiceConfig()


class ClipMaker:
    """Makes clips once and keeps them: many calls of one scenario share them."""

    def __init__(self, synthesiser: Synthesiser) -> None:
        self._synthesiser = synthesiser
        self._said: dict[tuple[str, int], Pcm] = {}

    async def clips(self, scenario: Scenario, rate_hz: int) -> dict[int, Pcm]:
        """PCM at `rate_hz` by step index. Raises ScenarioError naming the step's line."""
        made: dict[int, Pcm] = {}
        for index, step in enumerate(scenario.caller):
            where = f"{scenario.file}:{step.line}"
            if isinstance(step, Say):
                made[index] = await self._speech(step.text, rate_hz, where)
            elif isinstance(step, Play):
                made[index] = _recording(step, rate_hz, where)
        return made

    async def _speech(self, text: str, rate_hz: int, where: str) -> Pcm:
        key = (text, rate_hz)
        if key not in self._said:
            pause = bytes(int(_PAUSE_S * rate_hz) * 2)
            words = [prepared for one in sentences(text) if (prepared := prepare(one))]
            if not words:
                raise ScenarioError("scenario.say", f"{text!r} holds no words", where=where)
            try:
                parts = [
                    await self._synthesiser.synthesise(one, _VOICE, LANGUAGE, rate_hz)
                    for one in words
                ]
            except SpeechError as error:
                raise ScenarioError(
                    "scenario.say",
                    f"{text!r} cannot be spoken: {error.message}",
                    where=where,
                    hint="say other words, or play a recording",
                ) from None
            self._said[key] = pause.join(parts)
        return self._said[key]


def _recording(step: Play, rate_hz: int, where: str) -> Pcm:
    try:
        clip = decode(step.path.read_bytes(), str(step.path))
    except OSError as error:
        raise ScenarioError("scenario.play", f"cannot be read: {error}", where=where) from None
    except AssetError as error:
        raise ScenarioError(
            "scenario.play",
            f"{step.path}: {error.message}",
            where=where,
            hint="play takes recordings, such as a WAV of 8 or 16 kHz",
        ) from None
    return resample_clip(clip.pcm, clip.rate_hz, rate_hz)


def at_rate(clips: Mapping[int, Pcm], made_hz: int, wanted_hz: int) -> dict[int, Pcm]:
    """The clips at the rate that the platform turned out to speak."""
    if made_hz == wanted_hz:
        return dict(clips)
    return {index: resample_clip(pcm, made_hz, wanted_hz) for index, pcm in clips.items()}
