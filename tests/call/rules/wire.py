"""Runs a row over a real socket, in real time: the server, a call, a platform's own side.

Only the agent and the speech engines are made up, so that sounds and words are those of the row.
"""

from __future__ import annotations

import asyncio
import contextlib
import wave
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import aiohttp
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from gateway.assets import AudioAssets, run_inline
from gateway.audio.formats import Pcm
from gateway.bidi import SESSION_START
from gateway.call.events import InputType, ToRuntime
from gateway.call.profile import AmbientSound, VoiceConfig
from gateway.channels.base import Channel, EndReason
from gateway.config import AssetSettings, load
from gateway.errors import AssetError, RuntimeFailure
from gateway.runtime.client import RuntimeClient
from gateway.server.app import Gateway
from gateway.server.contract import Call, MediaTransport
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.simulate.platforms import call_id, side
from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.base import Identity, Platform
from gateway.speech.base import OnWindow, SpeechServices
from gateway.ticker import Ticker
from tests.call.rules.outcome import Outcome, told
from tests.call.rules.row import (
    CALLER_STEP,
    CALLER_VALUE,
    FRAME_S,
    KEY_S,
    RATE_HZ,
    S_PER_CHAR,
    Agent,
    Done,
    End,
    HangUp,
    Interrupt,
    Keys,
    Lose,
    Output,
    Payload,
    Row,
    Say,
    Text,
    constant,
)
from tests.call.rules.virtual import profile_of

LOUD = 1000
WINDOW_BYTES = 512
SHORTEST_S = 0.04
"""A sound that is shorter is the ringing of a filter."""
CONNECT_S = 10.0


class Tones:
    """Synthesiser, recogniser, turn detector and voice activity that know the row's sounds."""

    name = "tones"

    def __init__(self, row: Row) -> None:
        self._row = row

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        await asyncio.sleep(self._row.tts_s)
        value = self._row.speech_value(text)
        return constant(value, len(text) * S_PER_CHAR * rate_hz / RATE_HZ)

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        await asyncio.sleep(self._row.stt_s)
        samples = np.frombuffer(pcm, "<i2")
        near = (samples[samples > LOUD] - CALLER_VALUE) / CALLER_STEP
        counts = np.bincount(np.maximum(np.rint(near), 0).astype(int), minlength=1)
        heard = [n for n, count in enumerate(counts) if count > rate_hz * SHORTEST_S]
        return self._row.said[heard[-1]].words if heard else ""

    async def complete(self, pcm: Pcm, rate_hz: int) -> bool:
        return self._row.complete


class LoudIsSpeech:
    """Voice activity by level alone."""

    name = "loud"

    def open(self, on_window: OnWindow) -> _Windows:
        return _Windows(on_window)


class _Windows:
    def __init__(self, on_window: OnWindow) -> None:
        self._on_window: OnWindow | None = on_window
        self._waiting = b""
        self._position_s = 0.0

    def feed(self, pcm_8k: Pcm) -> None:
        self._waiting += pcm_8k
        while len(self._waiting) >= WINDOW_BYTES and self._on_window is not None:
            window = np.frombuffer(self._waiting[:WINDOW_BYTES], "<i2")
            self._waiting = self._waiting[WINDOW_BYTES:]
            self._position_s += WINDOW_BYTES / 2 / RATE_HZ
            loud = np.abs(window.astype(int)).mean() > LOUD
            self._on_window(0.95 if loud else 0.02, self._position_s)

    def close(self) -> None:
        self._on_window = None


class RowAgent:
    """The runtime's end of the link: gives what the row says, and remembers what it was told."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._outputs: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._turn = 1
        self.inputs: list[ToRuntime] = []
        self.began = asyncio.Event()

    async def send(self, message: Mapping[str, Any]) -> None:
        content = message.get("realtimeInput")
        if content is None or "variables" in content:
            return
        if content.get("event") == {"event": SESSION_START} and not self.began.is_set():
            self.began.set()
            return
        kinds = {"text": InputType.TEXT, "dtmf": InputType.DTMF, "event": InputType.EVENT}
        kind = next(name for name in kinds if name in content)
        words = content[kind]["event"] if kind == "event" else content[kind]
        item = ToRuntime(kinds[kind], words, will_continue=content.get("willContinue", False))
        self.inputs.append(item)
        answer = self._row.answers.get(told([item])[0])
        if answer is not None:
            self.give([*answer, Done()], None)

    def give(self, outputs: list[Output], turn: int | None) -> None:
        for output in outputs:
            self._outputs.put_nowait(self._message(output, turn))

    def _message(self, output: Output, turn: int | None) -> dict[str, Any] | None:
        now = self._turn if turn is None else turn
        match output:
            case Text(words):
                return {"sessionOutput": {"text": words, "turnIndex": now}}
            case Payload(content):
                return {"sessionOutput": {"payload": dict(content), "turnIndex": now}}
            case Done():
                self._turn = max(self._turn, now + 1)
                return {"sessionOutput": {"turnIndex": now, "turnCompleted": True}}
            case Interrupt(barge_in):
                return {"interruptionSignal": {"bargeIn": barge_in}}
            case End(metadata):
                return {"endSession": {"metadata": dict(metadata)}}
            case Lose():
                return None

    async def receive(self) -> dict[str, Any] | None:
        message = await self._outputs.get()
        if message is None:
            raise RuntimeFailure("runtime.lost", "gone")
        return message

    async def aclose(self) -> None:
        """Nothing is held."""


class Watch:
    """The timeline of the one call."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        self.records.append({"t": t, "kind": kind, **fields})

    def frame_late(self, late_s: float) -> None:
        """A shared machine may be late."""

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The records have said so."""


def _wav(row: Row, rel: str) -> bytes:
    length = 2.0 if rel == "bed.wav" else row.files.get(rel)
    if not isinstance(length, float):
        raise AssetError(str(length), "no file", where=rel)
    value = row.bed if rel == "bed.wav" else row.file_value(rel)
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(constant(value, length))
    return out.getvalue()


async def run(row: Row, channel: str) -> Outcome:
    """The whole row over the wire, and what came of it."""
    agent, watch, tones = RowAgent(row), Watch(), Tones(row)
    ticker = Ticker(asyncio.get_running_loop())
    assets = AudioAssets(AssetSettings(), lambda rel: _wav(row, rel), run_inline)
    profile = profile_of(row)
    if row.bed:
        profile = profile_of_bed(row)

    async def open_runtime(call: str, config: Mapping[str, Any]) -> RuntimeClient:
        async def link() -> RowAgent:
            return agent

        client = RuntimeClient(f"projects/p/locations/l/apps/a/sessions/{call}", config, link)
        await client.open()
        return client

    services = CallServices(
        profile=profile,
        speech=SpeechServices(tones, tones, tones, LoudIsSpeech()),
        assets=assets,
        open_runtime=open_runtime,
        ticker=ticker,
        observer=watch,
    )

    def make_call(
        codec: Channel,
        transport: MediaTransport,
        *,
        remote: str,
        path: str,
        custom: Mapping[str, Any],
    ) -> Call:
        return LiveCall(codec, transport, services, custom=custom)

    gateway = Gateway(load(overrides={"server": {"port": 0, "shutdown_s": 0.5}}), make_call)
    await gateway.start()
    try:
        async with aiohttp.ClientSession() as http:
            identity = Identity(call_id(channel, row.name), "+15550100", "+15550199")
            endpoint = await side(channel).find(Access(gateway.url), identity, http)
            async with connect(
                endpoint.url, compression=None, ping_interval=None, close_timeout=2.0
            ) as socket:
                caller = _Caller(row, endpoint.platform, socket, agent, watch)
                return await caller.run()
    finally:
        await gateway.stop()
        ticker.close()
        await assets.aclose()


def profile_of_bed(row: Row) -> Any:
    """The row's profile, with its bed as a file of the app."""
    sound = AmbientSound("bed.wav", builtin=False)
    return profile_of(Row(row.name, row.script, {**row.profile, "ambience": sound}))


class _Caller:
    """The platform's side of the socket, and the row's clock."""

    def __init__(
        self,
        row: Row,
        platform: Platform,
        socket: ClientConnection,
        agent: RowAgent,
        watch: Watch,
    ) -> None:
        self._row = row
        self._platform = platform
        self._socket = socket
        self._agent = agent
        self._watch = watch
        self._ear: list[Pcm] = []
        self._closed = False

    async def run(self) -> Outcome:
        """The call from its first message to the row's end; then the caller is gone."""
        for message in self._platform.open():
            await self._socket.send(message)
        reading = asyncio.create_task(self._read(), name="rule-reader")
        try:
            await self._converse()
            return Outcome(
                list(self._watch.records),
                list(self._agent.inputs),
                np.frombuffer(b"".join(self._ear), "<i2")[
                    :: self._platform.out_format.rate_hz // RATE_HZ
                ],
            )
        finally:
            with contextlib.suppress(ConnectionClosed):
                for message in self._platform.hangup():
                    await self._socket.send(message)
            await self._socket.close()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for message in self._socket:
                for reply in self._platform.receive(message):
                    await self._socket.send(reply)
        self._closed = True

    async def _converse(self) -> None:
        """Every 20 ms. The row's time is that of the audio, so a late process shortens no sound."""
        loop = asyncio.get_running_loop()
        start, begun, frame = loop.time(), None, 0
        steps = self._steps()
        while True:
            if begun is None and self._agent.began.is_set():
                begun = frame
            if begun is None:
                assert frame * FRAME_S < CONNECT_S, "the agent was never told of the call"
            t = -1.0 if begun is None else (frame - begun) * FRAME_S
            if t >= self._row.seconds:
                return
            while steps and steps[0][0] <= t:
                await self._perform(steps.pop(0)[1])
            played = self._platform.play()
            self._ear.append(played.pcm)
            if not self._closed:
                with contextlib.suppress(ConnectionClosed):
                    for message in (*played.replies, *self._platform.media(self._sound(t))):
                        await self._socket.send(message)
            frame += 1
            await asyncio.sleep(max(0.0, start + frame * FRAME_S - loop.time()))

    def _steps(self) -> list[tuple[float, Agent | HangUp | str]]:
        steps: list[tuple[float, Agent | HangUp | str]] = []
        for step in self._row.script:
            if isinstance(step, Keys):
                steps += [(step.at + n * KEY_S, digit) for n, digit in enumerate(step.digits)]
            elif not isinstance(step, Say):
                steps.append((step.at, step))
        return sorted(steps, key=lambda step: step[0])

    async def _perform(self, step: Agent | HangUp | str) -> None:
        if isinstance(step, Agent):
            self._agent.give(list(step.outputs), step.turn)
            return
        messages = (
            self._platform.hangup() if isinstance(step, HangUp) else self._platform.digit(step)
        )
        if not self._closed:
            with contextlib.suppress(ConnectionClosed):
                for message in messages:
                    await self._socket.send(message)

    def _sound(self, t: float) -> Pcm:
        silence = bytes(self._platform.in_format.pcm_frame_bytes)
        speaking = [s for s in self._row.said if s.at <= t < s.at + s.seconds]
        if not speaking:
            return silence
        value = self._row.caller_value(speaking[-1])
        return value.to_bytes(2, "little", signed=True) * (len(silence) // 2)
