"""Live calls over real sockets: the server's front, the session and the engine, with an agent that
the test speaks for and a caller who is never understood."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.assets import AudioAssets, run_inline
from gateway.audio.formats import MULAW_8K
from gateway.call.profile import CallProfile, VoiceConfig
from gateway.channels.base import (
    AudioIn,
    Channel,
    ChannelCommand,
    ChannelEvent,
    Close,
    Codec,
    Ended,
    Hangup,
    Rejoin,
    Rejoined,
    Reply,
    Started,
    Transfer,
    Wire,
)
from gateway.channels.capabilities import Capabilities
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.config import AssetSettings, load
from gateway.notices import CallNotices
from gateway.platform_settings import PlatformSettings
from gateway.platforms.rest import RestControl
from gateway.platforms.terms import Terms
from gateway.runtime.client import RuntimeClient
from gateway.server.app import Gateway
from gateway.server.contract import Call, MediaTransport
from gateway.server.metrics import Metrics
from gateway.server.observers import CallObservers
from gateway.server.timelines import Timelines
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.speech.base import OnWindow, SpeechServices
from gateway.ticker import Ticker

PROBE = Capabilities(dialect="probe", binary_in=True, subprotocols=("new.probe", "probe"))


class Probe(Codec):
    """A dialect that can do everything: JSON for words, binary for audio."""

    able = PROBE
    starts_when_opened = False

    def __init__(self, opening: Opening[PlatformSettings]) -> None:
        super().__init__(self.able)
        self.opening = opening

    def _started(self, call_id: str, **more: Any) -> Started:
        return Started(call_id, in_format=MULAW_8K, out_format=MULAW_8K, **more)

    def opened(self) -> list[ChannelEvent]:
        request = self.opening.request
        if not self.starts_when_opened:
            return []
        custom = {**request.values, **{name: request.query_value(name) for name in request.query}}
        return [self._started("opened-1", custom={**custom, "agent": request.header("user-agent")})]

    def overdue(self) -> list[ChannelEvent]:
        return [self._started("assumed-1")]

    def receive(self, message: Wire) -> list[ChannelEvent]:
        if isinstance(message, bytes):
            return [AudioIn(message)]
        body = json.loads(message)
        match body["t"]:
            case "start":
                more = {key: body[key] for key in ("account", "custom") if key in body}
                return [self._started(body["id"], **more)]
            case "rejoin":
                return [Rejoin(body["id"])]
            case "bye":
                return [Reply('{"t":"bye-bye"}'), Ended()]
        return []

    def audio(self, data: bytes, turn: int) -> Wire:
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        body: dict[str, Any] = {"t": type(command).__name__}
        if isinstance(command, Hangup):
            body["reason"] = command.reason.value
        if isinstance(command, Hangup | Transfer):
            body["outputs"] = command.outputs
        if isinstance(command, Rejoined):
            body["accepted"] = command.accepted
        return [json.dumps(body)]


def probe(**over: Any) -> Dialect[PlatformSettings]:
    """The entry of a probe whose record is changed so."""
    opened = over.pop("starts_when_opened", False)

    class Changed(Probe):
        able = replace(PROBE, **over)
        starts_when_opened = opened

    return Dialect(
        capabilities=Changed.able,
        open=Changed,
        settings=lambda platforms: platforms.ces,
        routes=(MediaRoute("/probe/{room}", Proof.BEARER),),
    )


@dataclass
class Agent:
    """The far side of the runtime: the test says what it answers."""

    heard: list[dict[str, Any]] = field(default_factory=list)
    _say: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)

    async def send(self, message: Mapping[str, Any]) -> None:
        self.heard.append(dict(message))

    async def receive(self) -> dict[str, Any] | None:
        return await self._say.get()

    async def aclose(self) -> None:
        pass

    def end(self, **metadata: Any) -> None:
        """End the session."""
        self._say.put_nowait({"endSession": {"metadata": metadata}})

    def say(self, text: str, turn: int = 1) -> None:
        """A turn with one sentence."""
        output = {"text": text, "turnIndex": turn, "turnCompleted": True}
        self._say.put_nowait({"sessionOutput": output})

    def payload(self, payload: dict[str, Any]) -> None:
        """A turn with one payload."""
        output = {"payload": payload, "turnIndex": 1, "turnCompleted": True}
        self._say.put_nowait({"sessionOutput": output})

    def inputs(self, kind: str) -> list[Any]:
        """What it was told of one kind of realtime input."""
        told = [message.get("realtimeInput", {}) for message in self.heard]
        return [message[kind] for message in told if kind in message]


class _Nothing:
    name = "none"

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> bytes:
        return bytes(rate_hz // 5)

    async def recognise(self, pcm: bytes, rate_hz: int, language: str) -> str:
        return ""

    async def complete(self, pcm: bytes, rate_hz: int) -> bool:
        return True


class _Deaf:
    name = "none"

    def open(self, on_window: OnWindow) -> _Deaf:
        return self

    def feed(self, pcm_8k: bytes) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Live:
    """A running gateway, its calls and their agents."""

    gateway: Gateway
    observers: CallObservers
    calls: list[LiveCall]
    agents: list[Agent]

    def ends(self, call_id: str) -> list[str]:
        """The reasons with which this call ended."""
        return [line["reason"] for line in self.timeline(call_id) if line["kind"] == "call_ended"]

    def timeline(self, call_id: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.observers.timelines.lines(call_id) or []]

    def codes(self, call_id: str) -> list[str]:
        return [line["code"] for line in self.timeline(call_id) if line["kind"] == "error"]


@asynccontextmanager
async def live(
    terms: Mapping[str, Terms] | None = None,
    *,
    profile: CallProfile | None = None,
    platforms: Mapping[str, Any] | None = None,
    controls: Mapping[str, RestControl] | None = None,
    server: Mapping[str, Any] | None = None,
    bearer: Sequence[str] = (),
    notices: CallNotices | None = None,
) -> AsyncIterator[Live]:
    """A gateway on a free port of loopback."""
    ticker = Ticker(asyncio.get_running_loop())
    observers = CallObservers(Metrics(), Timelines())
    calls: list[LiveCall] = []
    agents: list[Agent] = []
    nothing = _Nothing()

    async def open_runtime(call_id: str, config: Mapping[str, Any]) -> RuntimeClient:
        agent = Agent()
        agents.append(agent)

        async def connect() -> Agent:
            return agent

        name = f"projects/p/locations/l/apps/a/sessions/{call_id}-12345"
        client = RuntimeClient(name, config, connect)
        await client.open()
        return client

    services = CallServices(
        profile=profile or CallProfile(variables=frozenset({"tier", "room"})),
        speech=SpeechServices(nothing, nothing, nothing, _Deaf()),
        assets=AudioAssets(AssetSettings(), lambda _: b"", run_inline),
        open_runtime=open_runtime,
        ticker=ticker,
        observer=observers,
        terms=terms or {},
        notices=notices,
    )

    def make_call(
        channel: Channel, transport: MediaTransport, *, remote: str, path: str, custom: Any
    ) -> Call:
        call = LiveCall(channel, transport, services, custom=custom)
        calls.append(call)
        return call

    settings = load(
        overrides={
            "server": {"port": 0, "shutdown_s": 0.5, **(server or {})},
            "platforms": platforms or {},
            "auth": {"tokens": list(bearer)},
        }
    )
    gateway = Gateway(
        settings, make_call, observers=observers, controls=controls, accounts=services.accounts
    )
    await gateway.start()
    try:
        yield Live(gateway, observers, calls, agents)
    finally:
        await gateway.stop()
        ticker.close()
        await services.assets.aclose()
        assert not services.resumable
