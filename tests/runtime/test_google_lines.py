"""Native clients whose agent is Google's service: wide lines, client functions, payloads."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection

from gateway.server.app import Gateway
from tests.agent.talk import parse_with_protos
from tests.runtime.ces_service import Connection, sound
from tests.runtime.test_google_calls import gateway
from tests.server.wire import NATIVE, SESSION, websocket

WAIT_S = 10.0
TONE_HZ = 440
SERVICE_HZ = 16000


def tone(rate_hz: int, seconds: float) -> bytes:
    at = np.arange(round(rate_hz * seconds)) / rate_hz
    return np.rint(9000 * np.sin(2 * np.pi * TONE_HZ * at)).astype("<i2").tobytes()


def pitch(pcm: bytes, rate_hz: int) -> float:
    """The strongest tone of the loud part, in hertz."""
    samples = np.frombuffer(pcm, "<i2").astype(float)
    loud = np.flatnonzero(np.abs(samples) > 3000)
    heard = samples[loud[0] : loud[-1]]
    spectrum = np.abs(np.fft.rfft(heard * np.hanning(len(heard))))
    return float(np.argmax(spectrum)) * rate_hz / len(heard)


class Client:
    """A native client's end: what it was sent, and its audio."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.audio = b""

    async def send(self, **given: Any) -> None:
        await self._socket.send(json.dumps({"realtimeInput": given}))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_S):
            message: dict[str, Any] = json.loads(await self._socket.recv())
        parse_with_protos(message)
        audio = message.get("sessionOutput", {}).get("audio")
        self.audio += base64.b64decode(audio) if audio else b""
        return message

    async def until(self, kind: str) -> dict[str, Any]:
        """The next output of a kind."""
        while True:
            output: dict[str, Any] = (await self.receive()).get("sessionOutput", {})
            if kind in output:
                return output


@asynccontextmanager
async def client(front: Gateway, session: str, rate_hz: int | None = None) -> AsyncIterator[Client]:
    """A session of text, or of Linear16 at this rate both ways."""
    wanted = {"audioEncoding": "LINEAR16", "sampleRateHertz": rate_hz}
    audio = {"inputAudioConfig": wanted, "outputAudioConfig": wanted} if rate_hz else {}
    async with websocket(front, NATIVE) as socket:
        await socket.send(json.dumps({"config": {"session": SESSION + session, **audio}}))
        caller = Client(socket)
        await caller.send(event={"event": "session_start"})
        yield caller


async def test_wide_lines_meet_the_service_at_its_own_rate(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (service, front), AsyncExitStack() as stack:
        lines = []
        for rate_hz in (16000, 24000, 48000):
            caller = await stack.enter_async_context(client(front, f"wide-{rate_hz}", rate_hz))
            lines.append((await service.next(), caller, rate_hz))
        await asyncio.gather(*(both_ways(*line) for line in lines))


async def both_ways(connection: Connection, caller: Client, rate_hz: int) -> None:
    """A tone up and a tone down, each of which keeps its pitch and its length."""
    await connection.until(lambda: bool(connection.given("event")))
    theirs = {"audioEncoding": "LINEAR16", "sampleRateHertz": SERVICE_HZ}
    assert connection.config["inputAudioConfig"] == theirs
    assert connection.config["outputAudioConfig"] == theirs
    spoken = tone(rate_hz, 0.4)
    step = rate_hz // 50 * 2
    for at in range(0, len(spoken), step):
        await caller.send(audio=sound(spoken[at : at + step]))
    await connection.until(lambda: len(connection.audio) >= SERVICE_HZ)
    assert abs(pitch(connection.audio, SERVICE_HZ) - TONE_HZ) < 5
    await connection.say(1, audio=sound(tone(SERVICE_HZ, 0.4)))
    await connection.say(1, turnCompleted=True)
    await caller.until("turnCompleted")
    assert abs(pitch(caller.audio, rate_hz) - TONE_HZ) < 5
    assert abs(len(caller.audio) / 2 / rate_hz - 0.4) < 0.15
    await connection.close(1000)


async def test_functions_and_payloads_of_the_service_are_the_clients(tmp_path: Path) -> None:
    call = {
        "id": "f-1",
        "tool": "projects/ours/locations/eu/apps/desk/tools/t",
        "displayName": "on_phone",
        "args": {"colour": "red"},
    }
    async with (
        gateway(tmp_path) as (service, front),
        client(front, "tools-0001", SERVICE_HZ) as caller,
    ):
        connection = await service.next()
        await connection.until(lambda: bool(connection.given("event")))
        await connection.say(1, toolCalls={"toolCalls": [call]})
        assert (await caller.until("toolCalls"))["toolCalls"] == {"toolCalls": [call]}
        answer = {"id": "f-1", "tool": call["tool"], "response": {"output": {"answer": "yes"}}}
        await caller.send(toolResponses={"toolResponses": [answer]})
        await connection.until(lambda: bool(connection.given("toolResponses")))
        assert connection.given("toolResponses") == [{"toolResponses": [answer]}]
        await connection.say(1, text="The phone says yes.", turnCompleted=True)
        assert (await caller.until("text"))["text"] == "The phone says yes."
        await connection.say(2, payload={"card": {"title": "Offer"}})
        assert (await caller.until("payload"))["payload"] == {"card": {"title": "Offer"}}
        await connection.close(1000)
