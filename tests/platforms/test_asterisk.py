"""Asterisk and its kin over real sockets: ends by ARI, early audio, halves of samples."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.platform_settings import PlatformsSettings
from gateway.platforms.terms import rest_controls, terms_of
from tests.platforms import live as harness
from tests.platforms.live import Live, live
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import ws_url

START = {
    "event": "MEDIA_START",
    "connection_id": "voice",
    "channel": "WebSocket/voice/0x7f01",
    "channel_id": "17.2",
    "format": "ulaw",
    "optimal_frame_size": 160,
    "ptime": 20,
    "channel_variables": {"CALLER_CHANNEL": "17.1", "tier": "gold"},
}
FORMAT_8K = "encoding=l16&rate=8000&call_id=c1"


class Asterisk:
    """The far end of one socket: keeps the commands, and closes when it is told to hang up."""

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.commands: list[str] = []

    async def until_hung_up(self) -> list[str]:
        """The commands, up to and with HANGUP."""
        try:
            async with asyncio.timeout(5):
                async for message in self.client:
                    if isinstance(message, str):
                        self.commands.append(json.loads(message)["command"])
                    if self.commands[-1:] == ["HANGUP"]:
                        await self.client.close()
        except ConnectionClosed:
            pass
        return self.commands


def dial(running: Live, path: str) -> connect:
    return connect(
        ws_url(running.gateway, path),
        subprotocols=[Subprotocol("media")],
        compression=None,
        ping_interval=None,
        close_timeout=2,
    )


@asynccontextmanager
async def calling(**settings: Any) -> AsyncIterator[tuple[Live, Asterisk]]:
    """A gateway with such settings for Asterisk, and one call."""
    platforms = PlatformsSettings(asterisk=settings)  # type: ignore[arg-type]
    controls = rest_controls(platforms)
    try:
        async with (
            live(terms_of(platforms, controls), platforms={"asterisk": settings}) as running,
            dial(running, "/asterisk/media") as client,
        ):
            assert client.subprotocol == "media"
            await client.send(json.dumps(START))
            await until(lambda: running.agents)
            yield running, Asterisk(client)
    finally:
        for control in controls.values():
            await control.aclose()


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


def ari(server: RestServer, **more: Any) -> dict[str, Any]:
    return {"rest_url": server.url, "account": "voice", "api_secret": "s", **more}


def asked(server: RestServer) -> list[tuple[str, str]]:
    return [(one.method, one.path) for one in server.asked]


async def test_without_ari_a_hang_up_ends_our_leg_and_asterisk_closes() -> None:
    async with calling() as (running, asterisk):
        assert running.agents[0].inputs("variables") == [{"tier": "gold"}]
        running.agents[0].end()
        assert await asterisk.until_hung_up() == ["HANGUP"]
        assert asterisk.client.close_code == 1000
        await until(lambda: running.ends("17.2") == ["completed"])


async def test_plain_control_is_answered_in_plain() -> None:
    async with live() as running, dial(running, "/asterisk/media") as client:
        fields = " ".join(f"{name}:{START[name]}" for name in ("channel", "channel_id", "format"))
        await client.send(f"MEDIA_START {fields} optimal_frame_size:160 ptime:20")
        await until(lambda: running.agents)
        text = {"text": "Hello.", "turnIndex": 1, "turnCompleted": True}
        running.agents[0]._say.put_nowait({"sessionOutput": text})
        running.agents[0].end()
        heard, said = b"", []
        async with asyncio.timeout(5):
            async for message in client:
                if isinstance(message, bytes):
                    assert len(message) % 160 == 0
                    heard += message
                    continue
                said.append(message)
                if message.startswith("MARK_MEDIA "):
                    await client.send(message.replace("MARK_MEDIA", "MEDIA_MARK_PROCESSED"))
                elif message == "HANGUP":
                    await client.close()
        assert len(heard) == 800
        assert said[-1] == "HANGUP"
        assert {word.split()[0] for word in said} == {"MARK_MEDIA", "HANGUP"}
        await until(lambda: running.ends("17.2") == ["completed"])


async def test_with_ari_the_callers_channel_ends_first(server: RestServer) -> None:
    async with calling(**ari(server)) as (running, asterisk):
        running.agents[0].end()
        assert await asterisk.until_hung_up() == ["HANGUP"]
        assert asked(server) == [("DELETE", "/ari/channels/17.1")]
        assert server.asked[0].authorization.startswith("Basic ")


async def test_a_transfer_moves_a_channel_in_stasis(server: RestServer) -> None:
    target = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "200"}, "tier": "gold"}}
    async with calling(**ari(server, stasis=True)) as (running, asterisk):
        # A variable that is refused does not keep the caller here.
        server.will(409)
        running.agents[0].end(**target)
        assert await asterisk.until_hung_up() == ["HANGUP"]
        variable = server.asked.pop(0)
        assert (variable.path, variable.body) == (
            "/ari/channels/17.1/variable",
            '{"variable":"VG_tier","value":"gold"}',
        )
        assert asked(server) == [
            ("POST", "/ari/channels/17.1/continue?context=default&extension=200")
        ]
        await until(lambda: running.ends("17.2") == ["transferred"])


async def test_out_of_stasis_a_transfer_leaves_the_caller_to_the_dialplan(
    server: RestServer,
) -> None:
    target = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "200"}}}
    async with calling(**ari(server)) as (running, asterisk):
        running.agents[0].end(**target)
        assert await asterisk.until_hung_up() == ["HANGUP"]
        assert asked(server) == []
        await until(lambda: running.ends("17.2") == ["transferred"])


async def test_keys_are_pressed_on_the_callers_leg(server: RestServer) -> None:
    async with calling(**ari(server, stasis=True)) as (running, _):
        running.agents[0].payload({"sendDtmf": "12#"})
        await asyncio.wait_for(server.arrived.wait(), 5)
        assert asked(server) == [("POST", "/ari/channels/17.1/dtmf?dtmf=12%23")]


async def test_a_socket_that_closes_before_its_start_holds_nothing() -> None:
    async with live() as running:
        async with dial(running, "/asterisk/media") as client:
            await client.send(b"\xff" * 160)
        await until(lambda: running.gateway.active == 0)
        assert running.calls[0].ended
        assert not running.agents


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> bytearray:
    """All that voice activity gets to hear, as PCM at 8 kHz."""
    got = bytearray()
    monkeypatch.setattr(harness._Deaf, "feed", lambda _self, pcm: got.extend(pcm))
    return got


async def test_audio_before_the_start_is_kept(heard: bytearray) -> None:
    async with live() as running, dial(running, "/asterisk/media") as client:
        for code in (0x10, 0x20):
            await client.send(bytes([code]) * 160)
        await client.send(json.dumps(START))
        await client.send(b"\x30" * 160)
        await until(lambda: len(heard) == 960)
        expected = g711.decode(b"\x10" * 160 + b"\x20" * 160 + b"\x30" * 160, Encoding.MULAW)
        assert heard == expected


async def test_what_comes_while_the_agent_does_not_listen_is_silence(heard: bytearray) -> None:
    async with live() as running, dial(running, "/asterisk/media") as client:
        await client.send(json.dumps(START))
        await until(lambda: running.agents)
        for frames, code, wanted in ((1, 0x10, False), (2, 0x20, True), (3, 0x30, False)):
            await client.send(bytes([code]) * 160)
            await until(lambda count=frames: len(heard) == 320 * count)
            running.agents[0].payload({"listen": wanted})
            told = json.loads(await client.recv())
            assert told["direction"] == ("both" if wanted else "out")
    silence = g711.decode(b"\xff" * 160, Encoding.MULAW)
    loud = [g711.decode(bytes([code]) * 160, Encoding.MULAW) for code in (0x10, 0x30)]
    assert heard == loud[0] + silence + loud[1]


async def test_a_sample_that_two_messages_share_is_not_lost(heard: bytearray) -> None:
    pcm = array("h", range(-400, 400)).tobytes()
    async with live() as running, dial(running, f"/raw/media?{FORMAT_8K}") as client:
        at = 0
        for size in (1, 320, 333, 2, 1, 0, 7, len(pcm)):
            await client.send(pcm[at : at + size])
            at += size
        await until(lambda: len(heard) == len(pcm))
    assert bytes(heard) == pcm


@pytest.mark.parametrize(
    ("name", "encoding", "rate_hz"),
    [
        ("ulaw", Encoding.MULAW, 8000),
        ("alaw", Encoding.ALAW, 8000),
        ("slin", Encoding.LINEAR16, 8000),
        ("slin16", Encoding.LINEAR16, 16000),
        ("slin24", Encoding.LINEAR16, 24000),
        ("slin48", Encoding.LINEAR16, 48000),
    ],
)
async def test_a_tone_keeps_its_pitch_in_every_format(
    heard: bytearray, name: str, encoding: Encoding, rate_hz: int
) -> None:
    seconds, tone_hz = 0.5, 1000
    samples = [
        round(8000 * math.sin(2 * math.pi * tone_hz * n / rate_hz + 0.1))
        for n in range(round(seconds * rate_hz))
    ]
    audio = g711.encode(array("h", samples).tobytes(), encoding)
    frame = len(audio) // 25
    start = {**START, "format": name, "optimal_frame_size": frame}
    async with live() as running, dial(running, "/asterisk/media") as client:
        await client.send(json.dumps(start))
        for at in range(0, len(audio), frame):
            await client.send(audio[at : at + frame])
        await until(lambda: len(heard) == 8000)
    # The filter's delay is silence at the beginning.
    got = array("h", bytes(heard))[400:]
    crossings = sum(1 for one, two in pairwise(got) if one < 0 <= two)
    assert crossings / (len(got) / 8000) == pytest.approx(tone_hz, rel=0.01)
    assert max(got) == pytest.approx(8000, rel=0.05)
