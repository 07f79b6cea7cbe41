"""Calls with a runtime that listens and speaks itself, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from gateway.assets import AudioAssets, run_inline
from gateway.call.profile import CallProfile
from gateway.channels.base import EndReason, Wire
from gateway.channels.dialects import open_channel
from gateway.config import AssetSettings, load
from gateway.runtime.client import RuntimeClient
from gateway.runtime.link import RuntimeLink, WebsocketLink
from gateway.server.compose import running
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.ces import PATH
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call
from gateway.speech.base import OnWindow, SpeechServices
from gateway.ticker import Ticker

SESSION = "projects/p/locations/l/apps/a/sessions/call-0001"
FRAME = 160


class Mute:
    """Speech engines that must not be asked for anything."""

    name = "mute"

    async def synthesise(self, *_: Any) -> bytes:
        raise AssertionError("the runtime speaks itself")

    async def recognise(self, *_: Any) -> str:
        raise AssertionError("the runtime listens itself")

    async def complete(self, *_: Any) -> bool:
        raise AssertionError("the runtime finds turns itself")


class Unheard:
    """Voice activity that must not be opened."""

    name = "unheard"

    def open(self, on_window: OnWindow) -> Any:
        raise AssertionError("the runtime finds speech itself")


class Phone:
    """Twilio's end of the socket: what it was sent, in order."""

    buffered_bytes = 0
    close_code = None

    def __init__(self) -> None:
        self.audio = b""
        self.events: list[str] = []
        self.closed: int | None = None
        self._news = asyncio.Event()

    def send(self, message: Wire) -> None:
        body = json.loads(message)
        self.events.append(body["event"])
        if body["event"] == "media":
            self.audio += base64.b64decode(body["media"]["payload"])
        self._news.set()

    def close(self, code: int, reason: str) -> None:
        self.closed = code
        self._news.set()

    def abort(self) -> None:
        self.close(1006, "")

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self._news.clear()
                await self._news.wait()


class Watch:
    """The timeline of the call."""

    def __init__(self) -> None:
        self.records: list[tuple[str, Mapping[str, Any]]] = []
        self._news = asyncio.Event()

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        self.records.append((kind, fields))
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def frame_late(self, late_s: float) -> None:
        """A shared machine may be late."""

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The records have said so."""

    def find(self, kind: str) -> list[Mapping[str, Any]]:
        return [fields for name, fields in self.records if name == kind]


class FarEnd:
    """An audio runtime on a unix socket; a test is told of each connection and plays its part."""

    def __init__(self) -> None:
        self.configs: list[dict[str, Any]] = []
        self.inputs: list[dict[str, Any]] = []
        self.connections: asyncio.Queue[ServerConnection] = asyncio.Queue()
        self._news = asyncio.Event()

    async def serve(self, connection: ServerConnection) -> None:
        self.configs.append(json.loads(await connection.recv())["config"])
        self.connections.put_nowait(connection)
        try:
            async for message in connection:
                self.inputs.append(json.loads(message)["realtimeInput"])
                self._news.set()
        except ConnectionClosed:
            pass

    @property
    def audio(self) -> bytes:
        return b"".join(base64.b64decode(i["audio"]) for i in self.inputs if "audio" in i)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self._news.clear()
                await self._news.wait()


async def say(connection: ServerConnection, **output: Any) -> None:
    await connection.send(json.dumps({"sessionOutput": {"turnIndex": 1, **output}}))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Line:
    """A Twilio call in front of the far end."""

    def __init__(self, far: FarEnd, phone: Phone, watch: Watch, live: LiveCall) -> None:
        self.far, self.phone, self.watch, self.live = far, phone, watch, live

    def hear(self, data: bytes) -> None:
        media = {"track": "inbound", "payload": encoded(data)}
        self.live.message(json.dumps({"event": "media", "streamSid": "MZ1", "media": media}))

    def press(self, digit: str) -> None:
        dtmf = {"track": "inbound_track", "digit": digit}
        self.live.message(json.dumps({"event": "dtmf", "streamSid": "MZ1", "dtmf": dtmf}))


@asynccontextmanager
async def calling(folder: Path, profile: CallProfile | None = None) -> AsyncIterator[Line]:
    """A call whose runtime is the far end; it is over when the test is."""
    far, phone, watch = FarEnd(), Phone(), Watch()
    path = str(folder / "far.sock")
    ticker = Ticker(asyncio.get_running_loop())
    assets = AudioAssets(AssetSettings(), None, run_inline)

    async def link() -> RuntimeLink:
        return await WebsocketLink.open(f"unix://{path}", 2.0)

    async def open_runtime(_call: str, config: Mapping[str, Any]) -> RuntimeClient:
        client = RuntimeClient(SESSION, config, link)
        await client.open()
        return client

    mute = Mute()
    services = CallServices(
        profile=profile or CallProfile(audio_runtime=True, noise_suppression="low"),
        speech=SpeechServices(mute, mute, mute, Unheard()),  # type: ignore[arg-type]
        assets=assets,
        open_runtime=open_runtime,
        ticker=ticker,
        observer=watch,
    )
    async with unix_serve(far.serve, path, close_timeout=1.0):
        live = LiveCall(open_channel("twilio"), phone, services)
        start = {"streamSid": "MZ1", "callSid": "CA00001", "customParameters": {}}
        live.message(json.dumps({"event": "start", "streamSid": "MZ1", "start": start}))
        try:
            yield Line(far, phone, watch, live)
        finally:
            live.end(EndReason.SHUTDOWN)
            await live.wait_ended()
            ticker.close()
            await assets.aclose()


async def test_the_session_is_opened_in_the_lines_own_formats(tmp_path: Path) -> None:
    async with calling(tmp_path) as line:
        await line.far.connections.get()
        mulaw = {"audioEncoding": "MULAW", "sampleRateHertz": 8000}
        assert line.far.configs == [
            {
                "session": SESSION,
                "inputAudioConfig": {**mulaw, "noiseSuppressionLevel": "low"},
                "outputAudioConfig": mulaw,
            }
        ]


async def test_audio_goes_through_untouched_both_ways(tmp_path: Path) -> None:
    """Also the two codes of zero, which no codec keeps apart."""
    spoken = bytes(n % 256 for n in range(FRAME * 20))
    said = bytes((n * 7) % 256 for n in range(FRAME * 15))
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        for start in range(0, len(spoken), FRAME):
            line.hear(spoken[start : start + FRAME])
        await line.far.until(lambda: len(line.far.audio) >= len(spoken) - 480)
        assert spoken.startswith(line.far.audio[: len(spoken) - 480])
        # In pieces of any length, faster than they sound.
        for start in range(0, len(said), 333):
            await say(connection, audio=encoded(said[start : start + 333]))
        await say(connection, turnCompleted=True)
        await line.phone.until(lambda: len(line.phone.audio) >= len(said))
        assert line.phone.audio[: len(said)] == said


async def test_without_audio_from_the_platform_silence_flows_up(tmp_path: Path) -> None:
    async with calling(tmp_path) as line:
        await line.far.connections.get()
        await line.far.until(lambda: len(line.far.audio) >= 8000)
        assert set(line.far.audio) == {0xFF}


async def test_texts_tell_what_is_said_and_are_not_spoken(tmp_path: Path) -> None:
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        await say(connection, text="Good morning.")
        await say(connection, audio=encoded(b"\x20" * FRAME * 10))
        await say(connection, text="How are you?")
        await say(connection, audio=encoded(b"\x20" * FRAME * 10))
        await say(connection, turnCompleted=True)
        await line.phone.until(lambda: "mark" in line.phone.events)
        mark = {"event": "mark", "streamSid": "MZ1", "mark": {"name": "1.0"}}
        line.live.message(json.dumps(mark))
        await line.watch.until(lambda: bool(line.watch.find("utterance_ended")))
        (ended,) = line.watch.find("utterance_ended")
        assert ended["heard_text"] == "Good morning. How are you?"
        assert line.phone.audio[: FRAME * 20] == b"\x20" * FRAME * 20


async def test_an_interruption_clears_what_is_played_and_late_audio_is_dropped(
    tmp_path: Path,
) -> None:
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        await say(connection, text="A long answer.", audio=encoded(b"\x20" * FRAME * 200))
        await line.phone.until(lambda: len(line.phone.audio) > FRAME * 10)
        await connection.send(json.dumps({"interruptionSignal": {"bargeIn": True}}))
        await line.phone.until(lambda: "clear" in line.phone.events)
        await say(connection, audio=encoded(b"\x30" * FRAME * 5))
        await say(connection, audio=encoded(b"\x40" * FRAME * 5), turnIndex=2)
        await line.phone.until(lambda: b"\x40" * FRAME in line.phone.audio)
        assert b"\x30" * FRAME not in line.phone.audio
        (cut,) = line.watch.find("barge_in")
        assert cut["by"] == "runtime"
        assert [i for i in line.far.inputs if "text" in i] == []


async def test_a_clear_of_the_runtimes_own_goes_on_in_the_same_turn(tmp_path: Path) -> None:
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        await say(connection, audio=encoded(b"\x20" * FRAME * 200))
        await line.phone.until(lambda: len(line.phone.audio) > FRAME * 5)
        await connection.send(json.dumps({"interruptionSignal": {}}))
        await say(connection, audio=encoded(b"\x30" * FRAME * 5))
        await line.phone.until(lambda: b"\x30" * FRAME in line.phone.audio)


@pytest.mark.parametrize("nested", [True, False])
async def test_the_end_is_heard_in_both_places_and_after_the_last_audio(
    tmp_path: Path, nested: bool
) -> None:
    end = {"metadata": {"reason": "done"}}
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        await say(connection, audio=encoded(b"\x20" * FRAME * 10))
        if nested:
            await say(connection, endSession=end)
        else:
            await connection.send(json.dumps({"endSession": end}))
        # What the end has overtaken is still heard.
        await say(connection, audio=encoded(b"\x30" * FRAME * 10), turnCompleted=True)
        await line.phone.until(lambda: line.phone.closed is not None)
        heard = line.phone.audio
        assert heard.index(b"\x20" * FRAME * 10) < heard.index(b"\x30" * FRAME * 10)
        assert line.watch.find("call_ended") == [{"reason": "completed"}]


async def test_go_away_goes_on_with_the_same_session_and_loses_no_audio(tmp_path: Path) -> None:
    spoken = bytes(n % 250 for n in range(FRAME * 60))
    async with calling(tmp_path) as line:
        first = await line.far.connections.get()
        for start in range(0, FRAME * 30, FRAME):
            line.hear(spoken[start : start + FRAME])
        await line.far.until(lambda: len(line.far.audio) >= FRAME * 27)
        await first.send(json.dumps({"goAway": {}}))
        for start in range(FRAME * 30, len(spoken), FRAME):
            line.hear(spoken[start : start + FRAME])
        second = await line.far.connections.get()
        await line.far.until(lambda: len(line.far.audio) >= len(spoken) - 480)
        assert spoken.startswith(line.far.audio[: len(spoken) - 480])
        assert line.far.configs[0] == line.far.configs[1]
        assert len([i for i in line.far.inputs if "event" in i]) == 1
        await say(second, audio=encoded(b"\x20" * FRAME * 5))
        await line.phone.until(lambda: b"\x20" * FRAME * 5 in line.phone.audio)


async def test_keys_go_up_one_by_one_and_what_the_runtime_understood_is_recorded(
    tmp_path: Path,
) -> None:
    async with calling(tmp_path) as line:
        connection = await line.far.connections.get()
        for digit in "12#":
            line.press(digit)
        await line.far.until(lambda: len([i for i in line.far.inputs if "dtmf" in i]) == 3)
        assert [i["dtmf"] for i in line.far.inputs if "dtmf" in i] == ["1", "2", "#"]
        for words in ("my", "my balance"):
            await connection.send(json.dumps({"recognitionResult": {"transcript": words}}))
        await say(connection, audio=encoded(b"\x20" * FRAME * 5))
        await line.phone.until(lambda: len(line.phone.audio) >= FRAME * 5)
        told = [(r["text"], r["final"]) for r in line.watch.find("user_text")]
        assert told == [("my", False), ("my balance", False), ("my balance", True)]


SCENARIO = """
from: "+15550100"
caller:
  - wait: {heard: "how can i help you today", timeout: 20s}
  - wait: agent_quiet
  - say: Tell me about your prices.
  - wait: {event: utterance_started, timeout: 20s}
  - silence: 3s
  - say: Stop, please.
  - wait: {heard: "i stopped there", timeout: 20s}
  - hangup: true
expect:
  - event: {kind: call_started, in_format: MULAW/8000}
  - event: {kind: utterance_queued, source: audio}
  - event: {kind: utterance_queued, source: speech, count: 0}
  - event: {kind: user_text, text: "prices", final: true}
  - event: {kind: barge_in, by: runtime}
  - not_heard: "whatever the market does"
  - ended: remote_hangup
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_gateway_behind_a_gateway() -> None:
    """Ours in front, passing audio through; ours behind it, as the audio runtime."""
    far = load(overrides={"server": {"port": 0}})
    quiet = {"stt": "none", "vad": "energy", "turn": "silence"}
    scenario = parse_scenario(SCENARIO, Path("behind.yaml"))
    async with running(far) as behind:
        near = load(
            overrides={
                "server": {"port": 0},
                "speech": quiet,
                "runtime": {
                    "url": behind.url.replace("http", "ws", 1) + PATH,
                    "modality": "audio",
                },
            }
        )
        async with running(near) as front:
            result = await call(Access(front.url), scenario, "twilio", near)
    assert result.ok, "; ".join(str(v) for v in result.verdicts if not v.ok)
    assert any(result.log.heard)
