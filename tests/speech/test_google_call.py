"""A whole call over real sockets with both of Google's services, and with neither of them left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.config import Settings
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.result import RunResult
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call
from gateway.speech.aside import Aside
from gateway.speech.local import shared_engines
from tests.speech.conftest import PLAN
from tests.speech.google_ears import RATE_HZ, GoogleEars, say
from tests.speech.google_voices import GoogleVoices, wav

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

SCENARIO = """
caller:
  - wait: agent_quiet
  - say: Tell me about your prices.
  - wait: {event: {kind: utterance_started}}
  - silence: 1s
  - play: stop.wav
  - wait: {event: {kind: user_text, text: "w[0-9]+", final: true}}
  - hangup: true
expect:
  - event: {kind: user_text, text: "(?i)prices", final: true}
  # The recording pauses between its words: a turn that ends there is followed by another.
  - event: {kind: barge_in, by: speech}
  - event: {kind: utterance_ended, reason: barge_in}
  - ended: remote_hangup
"""


@asynccontextmanager
async def services() -> AsyncIterator[tuple[GoogleVoices, GoogleEars]]:
    voices, ears, aside = GoogleVoices(), GoogleEars(), Aside("ear")

    async def ear(pcm: Pcm) -> str:
        engines = shared_engines(PLAN)
        return await aside.run(lambda: engines.recognise(pcm, RATE_HZ, "en-US"))

    ears.ear = ear
    await voices.start()
    await ears.start()
    try:
        yield voices, ears
    finally:
        await voices.stop()
        await ears.stop()
        aside.close()


def settings(voices: GoogleVoices, ears: GoogleEars, **google: Any) -> Settings:
    return Settings.model_validate(
        {
            "server": {"port": 0},
            "call": {"barge_in": "words"},
            "speech": {
                "tts": "google",
                "stt": "google",
                "google": {
                    "plaintext": True,
                    "project": "p",
                    "tts_endpoint": voices.endpoint,
                    "stt_endpoint": ears.endpoint,
                    **google,
                },
            },
        }
    )


async def called(wanted: Settings, folder: Path, scenario: str) -> RunResult:
    shared_engines(PLAN)
    stop = say(900, word_s=0.6, gap_s=1.0)
    (folder / "stop.wav").write_bytes(wav(stop, AudioFormat(Encoding.LINEAR16, RATE_HZ)))
    async with running(wanted) as gateway:
        access = Access(f"http://127.0.0.1:{gateway.port}")
        return await call(access, parse_scenario(scenario, folder / "x.yaml"), "twilio")


def kinds(result: RunResult, kind: str) -> list[dict[str, Any]]:
    return [record for record in result.log.timeline if record["kind"] == kind]


async def test_interim_words_interrupt_the_streamed_voice(tmp_path: Path) -> None:
    async with services() as (voices, ears):
        result = await called(settings(voices, ears), tmp_path, SCENARIO)
    assert result.ok, [str(v) for v in result.verdicts] + result.log.timeline
    assert len(voices.streams) >= 2
    assert voices.whole == []
    assert all(stream.languages == ["en-US"] for stream in ears.streams)
    assert kinds(result, "error") == []
    cut = kinds(result, "utterance_ended")[1]
    queued = kinds(result, "utterance_queued")[1]
    assert queued["text"].startswith(cut["heard_text"])
    assert 0 < len(cut["heard_text"]) < len(queued["text"])


async def test_without_the_services_the_call_goes_on_offline(tmp_path: Path) -> None:
    scenario = SCENARIO[: SCENARIO.index("  - wait: {event: {kind: utterance_started")] + (
        "  - wait: {heard: tariff}\n  - hangup: true\n"
        "expect:\n"
        '  - event: {kind: user_text, text: "(?i)prices", final: true}\n'
        "  - ended: remote_hangup\n"
    )
    async with services() as (voices, ears):
        voices.faults.extend(["unavailable"] * 100)
        ears.faults.extend(["unavailable"] * 1000)
        result = await called(settings(voices, ears), tmp_path, scenario)
    assert result.ok, [str(v) for v in result.verdicts] + result.log.timeline
    assert {record["code"] for record in kinds(result, "error")} == {"speech.unavailable"}
