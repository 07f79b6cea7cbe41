"""The caller's voice is ready before the call, and what cannot be spoken is named by its line."""

from __future__ import annotations

import wave
from pathlib import Path

import pytest

from gateway.errors import ScenarioError
from gateway.simulate.clips import ClipMaker
from gateway.simulate.scenario import Scenario, parse_scenario
from tests.simulate.voices import ToneSynthesiser


def scenario(tmp_path: Path, *steps: str) -> Scenario:
    lines = "".join(f"  - {step}\n" for step in steps)
    return parse_scenario(f"caller:\n{lines}", tmp_path / "x.yaml")


async def test_sentences_are_joined_and_made_once(tmp_path: Path) -> None:
    voice = ToneSynthesiser()
    maker = ClipMaker(voice)
    script = scenario(tmp_path, "say: One. Two.", "wait: 1s", "say: One. Two.")
    clips = await maker.clips(script, 8000)
    assert sorted(clips) == [0, 2]
    assert clips[0] == clips[2]
    assert voice.made == ["One.", "Two."]
    assert len(clips[0]) == 2 * (2 * 4 * 800 + int(0.15 * 8000))


async def test_a_recording_is_brought_to_the_lines_rate(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "yes.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(bytes(32000))
    clips = await ClipMaker(ToneSynthesiser()).clips(scenario(tmp_path, "play: yes.wav"), 8000)
    assert len(clips[0]) == 16000


@pytest.mark.parametrize("words", ["unspeakable", "'🙂'"])
async def test_what_cannot_be_spoken(tmp_path: Path, words: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.say") as caught:
        await ClipMaker(ToneSynthesiser()).clips(scenario(tmp_path, f"say: {words}"), 8000)
    assert str(caught.value.where).endswith("x.yaml:2")


async def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "yes.wav").write_text("{}")
    with pytest.raises(ScenarioError, match=r"scenario\.play"):
        await ClipMaker(ToneSynthesiser()).clips(scenario(tmp_path, "play: yes.wav"), 8000)
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(ScenarioError, match=r"scenario\.play"):
        await ClipMaker(ToneSynthesiser()).clips(scenario(tmp_path, "play: folder.wav"), 8000)
