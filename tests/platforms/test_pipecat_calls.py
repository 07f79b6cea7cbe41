"""Whole calls whose caller's side is spoken by pipecat: real gateway, real engines, the demo agent.

The handshake is the platform's, everything after it is written and read by the serializers. They
answer no marks, so the gateway is told nothing of what was played.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from gateway.audio.mixing import level_dbfs
from gateway.config import Settings, load
from gateway.server.compose import running
from gateway.simulate.clips import ClipMaker
from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.base import Identity
from gateway.simulate.scenario import parse_scenario
from gateway.speech import inline
from tests.platforms.calling import FRAME_S, dial, found, identity
from tests.platforms.test_pipecat import PEERS, RATE_HZ, Peer, frames, made

pytestmark = pytest.mark.slow

SCENARIO = "caller:\n  - say: Tell me about your prices.\n"
FRAME_BYTES = RATE_HZ // 50 * 2
LOUD_DBFS = -40.0
PAUSE_S = 3.5
"""The greeting is protected until it was heard; without a mark that takes its grace longer."""


async def question() -> bytes:
    """The caller's words."""
    maker = ClipMaker(inline(Settings()).synthesiser)
    clips = await maker.clips(parse_scenario(SCENARIO, Path("call.yaml")), RATE_HZ)
    return clips[0]


def caller(peer: Peer) -> Identity:
    """Who calls: names of their own, since Genesys and Vonage give ids of one shape."""
    return identity(peer.dialect, peer.dialect)


async def converse(peer: Peer, access: Access, words: bytes) -> None:
    """Wait for the greeting's end, ask, hear a second of the answer, hang up."""
    serializer = await made(peer)
    endpoint = await found(peer.dialect, access, caller(peer))
    loop = asyncio.get_running_loop()
    loud: list[float] = []
    """When each loud frame was heard."""

    async with dial(endpoint) as client:

        async def listen() -> None:
            async for message in client:
                frame = await serializer.deserialize(message)
                if (
                    isinstance(frame, frames.InputAudioRawFrame)
                    and level_dbfs(frame.audio) > LOUD_DBFS
                ):
                    loud.append(loop.time())

        async def speak(pcm: bytes) -> None:
            frame = frames.OutputAudioRawFrame(audio=pcm, sample_rate=RATE_HZ, num_channels=1)
            await client.send(await serializer.serialize(frame))
            await asyncio.sleep(FRAME_S)

        for message in endpoint.platform.open():
            await client.send(message)
        listening = asyncio.create_task(listen())
        try:
            async with asyncio.timeout(30):
                while not loud or loop.time() - loud[-1] < PAUSE_S:
                    await speak(bytes(FRAME_BYTES))
                for at in range(0, len(words) - FRAME_BYTES, FRAME_BYTES):
                    await speak(words[at : at + FRAME_BYTES])
                asked_s = loop.time()
                while not loud[-1] > asked_s + 1.0:
                    await speak(bytes(FRAME_BYTES))
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        for message in endpoint.platform.hangup():
            await client.send(message)


async def test_a_whole_call_with_each(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    settings = load(
        overrides={
            "server": {"port": unused_tcp_port, "public_origin": url},
            "platforms": {peer.dialect: peer.settings for peer in PEERS},
        }
    )
    words = await question()
    async with running(settings), aiohttp.ClientSession() as http:
        await asyncio.gather(*(converse(peer, Access(url), words) for peer in PEERS))
        for peer in PEERS:
            call = caller(peer).call_id
            async with http.get(f"{url}/calls/{call}/timeline?follow=1") as response:
                timeline = [json.loads(line) for line in (await response.text()).splitlines()]
            understood = [line["text"] for line in timeline if line["kind"] == "user_text"]
            assert "prices" in " ".join(understood), peer.dialect
            assert timeline[-1]["reason"] == "remote_hangup", peer.dialect
            assert not [line for line in timeline if line["kind"] == "error"], peer.dialect
