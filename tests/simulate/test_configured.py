"""Settings of the operator that have a counterpart on the platform's side."""

from __future__ import annotations

import pytest

from gateway.audio.formats import AudioFormat, Encoding
from gateway.config import load
from gateway.demo import SCENARIOS_PATH
from gateway.simulate.clips import at_rate
from gateway.simulate.platforms import side
from gateway.simulate.platforms.base import Identity
from gateway.simulate.run import Simulator
from gateway.simulate.scenario import read_scenario


def linear(rate_hz: int) -> AudioFormat:
    return AudioFormat(Encoding.LINEAR16, rate_hz)


def test_the_far_side_is_set_up_as_the_settings_ask_for() -> None:
    platforms = load(
        flags=[
            "platforms.jambonz.in_rate_hz=16000",
            "platforms.jambonz.out_rate_hz=24000",
            "platforms.audio_stream.rate_hz=16000",
        ]
    ).platforms
    jambonz = side("jambonz").simulated(Identity("x"), platforms)
    assert (jambonz.in_format, jambonz.out_format) == (linear(16000), linear(24000))
    stream = side("audio_stream").simulated(Identity("x"), platforms)
    assert stream.in_format == stream.out_format == linear(16000)
    assert side("twilio").simulated(Identity("x"), platforms).in_format.rate_hz == 8000


def test_clips_follow_the_rate_that_was_agreed_on() -> None:
    clips = {1: bytes(1600)}
    assert at_rate(clips, 8000, 8000) == clips
    assert {index: len(pcm) for index, pcm in at_rate(clips, 8000, 16000).items()} == {1: 3200}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "flags"),
    [
        ("jambonz", ["platforms.jambonz.streaming=false"]),
        ("jambonz", ["platforms.jambonz.in_rate_hz=16000", "platforms.jambonz.out_rate_hz=24000"]),
        ("audio_fork", ["platforms.audio_fork.out_rate_hz=16000"]),
        ("audio_stream", ["platforms.audio_stream.playback=binary"]),
    ],
)
def test_a_call_holds_with_them(channel: str, flags: list[str]) -> None:
    scenario = read_scenario(SCENARIOS_PATH / "greeting.yaml")
    result = Simulator(load(flags=flags)).run(scenario, channel=channel)
    assert [str(verdict) for verdict in result.verdicts if not verdict.ok] == []
