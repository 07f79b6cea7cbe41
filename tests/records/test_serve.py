"""A live gateway records its calls: over a real socket, through SIGTERM and through a kill."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from gateway.config import RecordSettings
from gateway.records.couriers import couriers
from gateway.records.keeper import Records
from gateway.records.plan import Plan
from tests.platforms.rest_server import rest_server
from tests.records.makers import SESSION, found, tone, wav

PATH = "/ws/google.cloud.ces.v1.SessionService/BidiRunSession/locations/eu"
LIGHT = {
    "speech.tts": "nanotts",
    "speech.stt": "none",
    "speech.vad": "energy",
    "speech.turn": "silence",
    "server.shutdown_s": "0.2",
}
WAIT_S = 30.0


@asynccontextmanager
async def serving(
    folder: Path, more: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`voice-gateway serve` on a free port, with engines that load fast; its websocket URL."""
    options = {**LIGHT, "records.save_to": str(folder), **(more or {})}
    sets = [word for k, v in options.items() for word in ("--set", f"{k}={v}")]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway.cli", "serve", "--port", "0", *sets),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if not k.startswith("VOICE_GATEWAY_")},
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(WAIT_S):
            assert (await child.stdout.readline()).startswith(b"voice-gateway")
            url = (await child.stdout.readline()).decode().split()[0]
        yield child, url.replace("http", "ws", 1)
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


async def call(client: ClientConnection) -> None:
    """Start a voice session; breathe until most of a second of the agent were heard."""
    audio = {"audioEncoding": "LINEAR16", "sampleRateHertz": 8000}
    await client.send(
        json.dumps(
            {"config": {"session": SESSION, "inputAudioConfig": audio, "outputAudioConfig": audio}}
        )
    )
    await client.send(json.dumps({"realtimeInput": {"event": {"event": "session start"}}}))
    message = json.dumps({"realtimeInput": {"audio": base64.b64encode(tone(5)).decode()}})
    heard = 0
    async with asyncio.timeout(WAIT_S):
        while heard < 40:
            await client.send(message)
            answer = json.loads(await client.recv())
            heard += "audio" in answer.get("sessionOutput", {})


def transcript(folder: Path) -> dict[str, Any]:
    (path,) = found(folder, ".json")
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def both_sides_sound(folder: Path) -> bool:
    samples = wav(found(folder, ".wav")[0])[1]
    return bool(np.count_nonzero(samples[:, 0]) and np.count_nonzero(samples[:, 1]))


async def test_sigterm_loses_no_call(tmp_path: Path) -> None:
    async with serving(tmp_path) as (child, url), connect(url + PATH, compression=None) as client:
        await call(client)
        child.send_signal(signal.SIGTERM)
        async for _ in client:
            pass
        async with asyncio.timeout(WAIT_S):
            assert await child.wait() == 0
    assert transcript(tmp_path)["reason"] == "shutdown"
    assert transcript(tmp_path)["session"] == SESSION
    assert both_sides_sound(tmp_path)
    assert list((tmp_path / ".spool").iterdir()) == []


async def test_sigterm_loses_no_notice(tmp_path: Path) -> None:
    async with rest_server() as receiver:
        # A receiver that is away for a moment, while the server closes.
        receiver.will(503)
        settings = {"notices.url": f"{receiver.url}/ended", "notices.secret": "0123456789abcdef"}
        async with (
            serving(tmp_path, {**settings, "notices.retry_s": "0.01"}) as (child, url),
            connect(url + PATH, compression=None) as client,
        ):
            await call(client)
            child.send_signal(signal.SIGTERM)
            async for _ in client:
                pass
            async with asyncio.timeout(WAIT_S):
                assert await child.wait() == 0
    first, second = (json.loads(one.body) for one in receiver.asked)
    assert first == second
    assert (second["reason"], second["session"], second["dialect"]) == ("shutdown", SESSION, "ces")


async def test_a_kill_loses_at_most_the_last_moment(tmp_path: Path) -> None:
    async with serving(tmp_path) as (child, url), connect(url + PATH, compression=None) as client:
        await call(client)
        async with asyncio.timeout(WAIT_S):
            while not any(p.stat().st_size > 8000 for p in tmp_path.rglob("call.spool")):
                await client.recv()
        child.kill()
        await child.wait()
    assert found(tmp_path, ".wav") == []
    settings = RecordSettings(save_to=tmp_path)
    keeper = Records(settings, Plan(), lambda _call, _config: "", couriers(settings, None))
    keeper.start()
    try:
        async with asyncio.timeout(WAIT_S):
            while not keeper.figures["delivered"]:
                await asyncio.sleep(0.005)
    finally:
        await keeper.aclose()
    assert transcript(tmp_path)["reason"] == "gateway_lost"
    assert transcript(tmp_path)["lines"][0]["text"].startswith("Welcome to")
    assert both_sides_sound(tmp_path)
