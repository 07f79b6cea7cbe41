"""Simulated calls are recorded as live ones: the same session, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway import config
from gateway.demo import SCENARIOS_PATH
from gateway.errors import RecordError
from gateway.simulate.result import RunResult
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import read_scenario
from tests.records.makers import found, wav

FRAME_S = 0.02

SECRET = """
caller:
  - wait: agent_quiet
  - say: My name is Anna Smith and my account number is 4 7 1 1 2 2 3 3.
    as: My name is Anna Smith and my account number is 4711 2233.
  - wait: agent_quiet
  - dtmf: "4711#"
  - wait: agent_quiet
  - hangup: true
"""


def simulate(scenario: Path, channel: str, **records: Any) -> RunResult:
    settings = config.load(overrides={"records": {k: str(v) for k, v in records.items()}})
    return Simulator(settings).run(read_scenario(scenario), channel=channel)


@pytest.fixture(scope="module")
def barge_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunResult, Path]:
    folder = tmp_path_factory.mktemp("records")
    return simulate(SCENARIOS_PATH / "barge_in.yaml", "ces", save_to=folder), folder


def test_the_caller_s_side_is_what_the_caller_sent_to_the_sample(
    barge_in: tuple[RunResult, Path],
) -> None:
    result, folder = barge_in
    rate, samples = wav(found(folder, ".wav")[0])
    sent = np.frombuffer(result.log.sent, "<i2")
    assert rate == result.log.rate_hz
    count = min(len(sent), len(samples))
    assert abs(len(sent) - len(samples)) <= FRAME_S * rate
    assert np.array_equal(sent[:count], samples[:count, 0])


def test_the_agent_s_side_is_what_the_caller_heard_within_a_frame(
    barge_in: tuple[RunResult, Path],
) -> None:
    result, folder = barge_in
    rate, samples = wav(found(folder, ".wav")[0])
    heard = np.frombuffer(result.log.heard, "<i2")
    frame = round(FRAME_S * rate)
    ours = samples[: len(heard) - frame, 1]
    assert np.array_equal(heard[frame : frame + len(ours)], ours)


def test_the_transcript_holds_both_sides_as_they_were_heard(
    barge_in: tuple[RunResult, Path],
) -> None:
    result, folder = barge_in
    transcript = json.loads(found(folder, ".json")[0].read_bytes())
    ended = [r for r in result.log.timeline if r["kind"] == "utterance_ended"]
    agent = [line for line in transcript["lines"] if line["speaker"] == "agent"]
    assert [line["text"] for line in agent] == [r["heard_text"] for r in ended]
    assert [line["end"] for line in agent] == [r["t"] for r in ended]
    said = [r["text"] for r in result.log.timeline if r["kind"] == "user_text" and r["final"]]
    assert [line["text"] for line in transcript["lines"] if line["speaker"] == "caller"] == said
    assert transcript["reason"] == result.log.ended
    assert transcript["barge_ins"] == 1


def test_the_same_call_makes_the_same_files(
    barge_in: tuple[RunResult, Path], tmp_path: Path
) -> None:
    _, folder = barge_in
    simulate(SCENARIOS_PATH / "barge_in.yaml", "ces", save_to=tmp_path)
    for ending in (".wav", ".json"):
        (one,), (two,) = found(folder, ending), found(tmp_path, ending)
        assert one.read_bytes() == two.read_bytes()
        assert one.relative_to(folder) == two.relative_to(tmp_path)
    assert not (tmp_path / ".spool").exists()


def test_redaction_masks_words_and_mutes_sound(tmp_path: Path) -> None:
    scenario = tmp_path / "secret.yaml"
    scenario.write_text(SECRET)
    result = simulate(scenario, "twilio", save_to=tmp_path / "kept", redact=True)
    text = found(tmp_path / "kept", ".json")[0].read_text()
    assert "Anna" not in text
    assert "4711" not in text
    assert "My name is [name] and my account number is [number]." in text
    assert "[digits]" in text
    transcript = json.loads(text)
    muted = transcript["recording"]["muted"]["caller"]
    rate, samples = wav(found(tmp_path / "kept", ".wav")[0])
    for first, last in muted:
        assert not samples[round(first * rate) + 1 : round(last * rate) - 1, 0].any()
    (spoken,) = [s for s in result.log.steps if s.kind == "say"]
    assert spoken.end is not None
    covered = sum(last - first for first, last in muted if first < spoken.end)
    assert 0.3 < covered / (spoken.end - spoken.start) < 1.3
    keys = [s for s in result.log.steps if s.kind == "dtmf"]
    assert any(first < keys[0].start < last for first, last in muted)


def test_nothing_is_recorded_unless_settings_say_where(tmp_path: Path) -> None:
    scenario = tmp_path / "secret.yaml"
    scenario.write_text("caller: [{wait: agent_quiet}, {hangup: true}]")
    simulate(scenario, "ces", spool=tmp_path / "spool")
    assert not (tmp_path / "spool").exists()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    scenario = tmp_path / "short.yaml"
    scenario.write_text("caller: [{wait: agent_quiet}, {hangup: true}]")
    with pytest.raises(RecordError) as caught:
        simulate(scenario, "ces", save_to=tmp_path / "file")
    assert caught.value.code == "records.spool_folder"
