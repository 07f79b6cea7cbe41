"""The two directions of a call in formats of their own: a tone keeps its pitch on both ways."""

from __future__ import annotations

import math
from array import array
from itertools import pairwise

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.audio import g711
from gateway.audio.formats import Encoding
from tests.platforms import live as harness
from tests.platforms.live import live
from tests.platforms.test_asterisk import dial
from tests.server.echo import until

CALLER_HZ = 1000
AGENT_HZ = 500
PEAK = 8000
SECONDS = 0.5


def tone(tone_hz: int, rate_hz: int) -> array[int]:
    step = 2 * math.pi * tone_hz / rate_hz
    return array("h", (round(PEAK * math.sin(n * step)) for n in range(int(SECONDS * rate_hz))))


def pitch_hz(samples: array[int], rate_hz: int) -> float:
    """By the zero crossings between the first and the last one."""
    rising = [n for n, (one, two) in enumerate(pairwise(samples)) if one < 0 <= two]
    return (len(rising) - 1) * rate_hz / (rising[-1] - rising[0])


def on_the_wire(samples: array[int], encoding: str) -> bytes:
    if encoding == "l16be":
        samples = samples[:]
        samples.byteswap()
    if encoding.startswith("l16"):
        return samples.tobytes()
    return g711.encode(samples.tobytes(), Encoding[encoding.upper()])


def off_the_wire(data: bytes, encoding: str) -> array[int]:
    linear = encoding.startswith("l16")
    samples = array("h", data if linear else g711.decode(data, Encoding[encoding.upper()]))
    if encoding == "l16be":
        samples.byteswap()
    return samples


@pytest.mark.parametrize(
    ("comes", "goes"),
    [
        (("mulaw", 8000), ("l16", 48000)),
        (("l16", 48000), ("alaw", 8000)),
        (("l16be", 16000), ("l16", 24000)),
        (("alaw", 8000), ("l16be", 16000)),
    ],
)
async def test_each_direction_is_converted_by_its_own_rate(
    monkeypatch: pytest.MonkeyPatch, comes: tuple[str, int], goes: tuple[str, int]
) -> None:
    heard = bytearray()
    said = bytearray()
    monkeypatch.setattr(harness._Deaf, "feed", lambda _self, pcm: heard.extend(pcm))

    async def synthesise(
        _self: object, _text: str, _voice: object, _language: str, rate_hz: int
    ) -> bytes:
        return tone(AGENT_HZ, rate_hz).tobytes()

    monkeypatch.setattr(harness._Nothing, "synthesise", synthesise)
    query = f"encoding={comes[0]}&rate={comes[1]}&out_encoding={goes[0]}&out_rate={goes[1]}"
    async with live() as running, dial(running, f"/raw/media?{query}") as client:
        await client.send(on_the_wire(tone(CALLER_HZ, comes[1]), comes[0]))
        await until(lambda: len(heard) == SECONDS * 8000 * 2)
        running.agents[0].say("One moment.")
        running.agents[0].end()
        try:
            while True:
                message = await client.recv()
                assert isinstance(message, bytes)
                said += message
        except ConnectionClosed:
            pass
    agent = off_the_wire(bytes(said), goes[0])
    assert len(agent) == SECONDS * goes[1]
    for samples, tone_hz, rate_hz in (
        (array("h", bytes(heard)), CALLER_HZ, 8000),
        (agent, AGENT_HZ, goes[1]),
    ):
        # The filters' delay and the ends are left out.
        middle = samples[len(samples) // 10 : -len(samples) // 10]
        assert pitch_hz(middle, rate_hz) == pytest.approx(tone_hz, rel=0.002)
        assert max(middle) == pytest.approx(PEAK, rel=0.05)
