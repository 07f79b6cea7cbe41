"""A whole call in this process and in virtual time: real codec, engine, speech and agent.

Only the platform, the caller and the clock are made up. Two runs of the same inputs are identical.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway import demo
from gateway.agent.app import App, read_app
from gateway.agent.build import build_engine
from gateway.agent.link import MemoryLink, memory_links
from gateway.agent.session import serve_link
from gateway.assets import AudioAssets, run_inline
from gateway.audio.formats import Pcm
from gateway.bidi import session_part
from gateway.channels.base import EndReason, Wire
from gateway.channels.dialects import open_channel
from gateway.config import Settings
from gateway.errors import ProtocolError
from gateway.platforms.terms import terms_of
from gateway.records.inline import InlineRecords
from gateway.records.plan import make_plan
from gateway.runtime.client import RuntimeClient
from gateway.runtime.profile import call_profile
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.simulate.caller import FRAME_S, Caller
from gateway.simulate.clips import ClipMaker
from gateway.simulate.judge import judge
from gateway.simulate.platforms import call_id, side
from gateway.simulate.platforms.base import Identity, Platform
from gateway.simulate.result import CallLog, RunResult, at_one_rate, timeline_record
from gateway.simulate.scenario import ExpectEnded, Scenario
from gateway.simulate.stand_ins import LateLink, LateSynthesiser, ScriptedRecogniser
from gateway.simulate.view import CallView
from gateway.simulate.virtual_code import EPOCH_S, VirtualCodeRunner, virtual_clock
from gateway.simulate.virtual_loop import SimulationError, VirtualLoop
from gateway.simulate.waited_model import waited
from gateway.speech import inline
from gateway.speech.base import SpeechServices
from gateway.ticker import Ticker

LINGER_S = 60.0
"""How long a caller whose script is over waits for the agent to end the call."""
END_S = 30.0
"""How long a call may take to end once nobody is on the line."""
SEED = 0
"""App code that leaves things to chance does so the same way in every run."""

Observe = Callable[[float, Mapping[str, Any]], None]
"""(seconds since the call began, a message of the agent)."""


def linger_s(scenario: Scenario) -> float | None:
    """Whether the caller waits for the agent's end of the call; None: hangs up when all is said."""
    for expectation in scenario.expect:
        if isinstance(expectation, ExpectEnded):
            return None if expectation.reason is EndReason.REMOTE_HANGUP else LINGER_S
    return None


class Simulator:
    """Simulates calls one after the other; engines are loaded once and apps read once."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._speech = inline(self.settings)
        self._clips = ClipMaker(self._speech.synthesiser)
        self._apps: dict[Path, App] = {}

    def run(
        self,
        scenario: Scenario,
        app_path: Path | None = None,
        channel: str | None = None,
        observe: Observe | None = None,
    ) -> RunResult:
        """Simulate one call and judge it. Raises ScenarioError, AppError, SimulationError.

        `observe` is told each message of the agent and when in the call it came.
        """
        app = self.app_of(scenario, app_path)
        # Sockets and signals, the abstract rest, are what a virtual loop does not have.
        loop = VirtualLoop()  # type: ignore[abstract]
        chance = random.getstate()
        random.seed(SEED)
        try:
            with virtual_clock():
                call = _Call(self, app, scenario, channel or scenario.channel, observe)
                try:
                    log = loop.run_until_complete(call.run())
                finally:
                    loop.cancel_all()
        finally:
            random.setstate(chance)
            loop.close()
        return RunResult(log, judge(log))

    def app_of(self, scenario: Scenario, app_path: Path | None = None) -> App:
        """The app that answers the scenario. Raises AppError."""
        path = app_path or scenario.app or self.settings.app or demo.APP_PATH
        resolved = path.resolve()
        if resolved not in self._apps:
            self._apps[resolved] = read_app(resolved)
        return self._apps[resolved]

    @property
    def speech(self) -> SpeechServices:
        """The engines that all calls share."""
        return self._speech

    @property
    def clips(self) -> ClipMaker:
        """The caller's voice."""
        return self._clips


class _Socket:
    """The gateway's transport: what it sends is with the platform at once."""

    def __init__(self) -> None:
        self.platform: Platform | None = None
        self.closed = False
        self.replies: list[Wire] = []
        self.complaints: list[str] = []

    @property
    def buffered_bytes(self) -> int:
        return 0

    @property
    def close_code(self) -> int | None:
        return 1000 if self.closed else None

    def send(self, message: Wire) -> None:
        if self.closed or self.platform is None:
            return
        try:
            self.replies += self.platform.receive(message)
        except ProtocolError as error:
            self.complaints.append(error.message)

    def close(self, code: int, reason: str) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


class _Watch:
    """The observer of the one call: its timeline."""

    def __init__(self, view: CallView) -> None:
        self._view = view
        self.timeline: list[dict[str, Any]] = []

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        record = timeline_record(t, kind, fields)
        self.timeline.append(record)
        self._view.record(record, t)

    def frame_late(self, late_s: float) -> None:
        """Nothing is late in virtual time."""

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The timeline has said so."""


class _Call:
    """One simulated call."""

    def __init__(
        self,
        simulator: Simulator,
        app: App,
        scenario: Scenario,
        channel: str,
        observe: Observe | None,
    ) -> None:
        self._observe = observe
        self._start = 0.0
        self._simulator = simulator
        self._app = app
        self._scenario = scenario
        self._channel = channel
        self._call_id = call_id(channel, scenario.name)
        self._code = VirtualCodeRunner()
        self._agents: set[asyncio.Task[None]] = set()
        self._sent: list[Pcm] = []
        self._heard: list[Pcm] = []

    async def run(self) -> CallLog:
        """The call from the first message to the last record."""
        scenario = self._scenario
        simulator = self._simulator
        await simulator.speech.start()
        identity = Identity(
            self._call_id, scenario.from_, scenario.to, scenario.variables, scenario.functions
        )
        far_side = side(self._channel).simulated(identity, simulator.settings.platforms)
        view = CallView()
        rate_hz = far_side.in_format.rate_hz
        clips = await simulator.clips.clips(scenario, rate_hz)
        caller = Caller(scenario.caller, clips, rate_hz, view, linger_s=linger_s(scenario))
        watch = _Watch(view)
        socket = _Socket()
        socket.platform = far_side
        loop = asyncio.get_running_loop()
        assets = AudioAssets(simulator.settings.assets, self._app.read_file, run_inline)
        ticker = Ticker(loop)
        records = self._records()
        services = self._services(caller, assets, ticker, watch, loop.time(), records)
        channel = open_channel(
            self._channel,
            self._call_id,
            platforms=self._simulator.settings.platforms,
            request=side(self._channel).upgrade(identity),
        )
        live = LiveCall(channel, socket, services)
        try:
            await self._converse(live, far_side, socket, caller)
            await asyncio.wait_for(live.wait_ended(), END_S)
        except TimeoutError:
            raise SimulationError(
                "simulate.endless", f"the call did not end {END_S:g} s after everybody had left"
            ) from None
        finally:
            ticker.close()
            await assets.aclose()
            if records is not None:
                records.finish()
        missed = [] if caller.failed else caller.missed()
        return self._log(far_side, watch, caller, missed, socket)

    def _services(
        self,
        caller: Caller,
        assets: AudioAssets,
        ticker: Ticker,
        watch: _Watch,
        origin_s: float,
        records: InlineRecords | None,
    ) -> CallServices:
        settings = self._simulator.settings
        latency = self._scenario.latency
        engines = self._simulator.speech
        speech = replace(
            engines,
            synthesiser=LateSynthesiser(engines.synthesiser, latency.tts_s),
            recogniser=ScriptedRecogniser(
                engines.recogniser, latency.stt_s, lambda: caller.spans, origin_s
            ),
        )
        return CallServices(
            profile=call_profile(self._app, settings),
            speech=speech,
            assets=assets,
            open_runtime=self._open_runtime,
            ticker=ticker,
            observer=watch,
            shutdown_message=settings.call.shutdown_message,
            terms=terms_of(settings.platforms),
            records=records,
        )

    def _records(self) -> InlineRecords | None:
        """Simulated calls are only recorded for this machine, and only where settings say so."""
        wanted = self._simulator.settings.records
        if not wanted.enabled or wanted.save_to is None:
            return None
        plan = make_plan(self._app, wanted)
        return InlineRecords(wanted, plan, lambda call, _config: _session(call), EPOCH_S)

    async def _open_runtime(self, call: str, config: Mapping[str, Any]) -> RuntimeClient:
        client = RuntimeClient(_session(call), config, self._connect)
        await client.open()
        return client

    async def _connect(self) -> LateLink:
        near, far = memory_links()
        task = asyncio.get_running_loop().create_task(self._serve(far), name="agent")
        self._agents.add(task)
        task.add_done_callback(self._agents.discard)
        observe = self._tell if self._observe is not None else None
        return LateLink(near, self._scenario.latency.runtime_s, observe)

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self._observe is not None
        self._observe(asyncio.get_running_loop().time() - self._start, message)

    async def _serve(self, far: MemoryLink) -> None:
        settings = self._simulator.settings
        try:
            engine = build_engine(self._app, settings, self._code)
            model = waited(engine.model)
            try:
                engine = replace(engine, model=model)
                await serve_link(
                    far, self._app, settings, self._code, engine=engine, channel=self._channel
                )
            finally:
                await model.aclose()
        finally:
            await far.aclose()

    async def _converse(
        self, live: LiveCall, far_side: Platform, socket: _Socket, caller: Caller
    ) -> None:
        """The platform's 20 ms clock, until one side has closed the socket."""
        loop = asyncio.get_running_loop()
        start = self._start = loop.time()
        silence = bytes(far_side.in_format.pcm_frame_bytes)
        for message in far_side.open():
            live.message(message)
        frame = 0
        while not socket.closed:
            for reply in self._take(socket):
                live.message(reply)
            played = far_side.play()
            self._heard.append(played.pcm)
            for reply in played.replies:
                live.message(reply)
            if far_side.finished:
                live.transport_closed()
                return
            output = caller.frame(frame * FRAME_S)
            if output.hangup:
                await self._hang_up(live, far_side, socket)
                return
            if output.digit:
                pressed = far_side.digit(output.digit)
                for message in pressed:
                    live.message(message)
                if not pressed:
                    caller.keyless()
            self._sent.append(output.pcm if output.pcm is not None else silence)
            for message in far_side.media(output.pcm):
                live.message(message)
            frame += 1
            await _until(loop, start + frame * FRAME_S)

    @staticmethod
    def _take(socket: _Socket) -> list[Wire]:
        replies, socket.replies = socket.replies, []
        return replies

    async def _hang_up(self, live: LiveCall, far_side: Platform, socket: _Socket) -> None:
        loop = asyncio.get_running_loop()
        for message in far_side.hangup():
            live.message(message)
        give_up = loop.time() + far_side.hangup_wait_s
        while not socket.closed and loop.time() < give_up:
            await _until(loop, min(give_up, loop.time() + FRAME_S))
        if not socket.closed:
            socket.closed = True
            live.transport_closed()

    def _log(
        self,
        far_side: Platform,
        watch: _Watch,
        caller: Caller,
        missed: list[Any],
        socket: _Socket,
    ) -> CallLog:
        sent, heard, rate_hz = at_one_rate(
            b"".join(self._sent),
            far_side.in_format.rate_hz,
            b"".join(self._heard),
            far_side.out_format.rate_hz,
        )
        return CallLog(
            scenario=self._scenario,
            channel=self._channel,
            call_id=self._call_id,
            timeline=watch.timeline,
            steps=caller.spans,
            missed=missed,
            sent=sent,
            heard=heard,
            rate_hz=rate_hz,
            complaints=list(dict.fromkeys(socket.complaints)),
        )


def _session(call: str) -> str:
    return f"projects/local/locations/local/apps/local/sessions/{session_part(call)}"


async def _until(loop: asyncio.AbstractEventLoop, when: float) -> None:
    """Wait for the loop's time `when`, exactly."""
    reached = loop.create_future()
    handle = loop.call_at(when, reached.set_result, None)
    try:
        await reached
    finally:
        handle.cancel()


def simulate(
    scenario: Scenario,
    app_path: Path | None = None,
    channel: str | None = None,
    settings: Settings | None = None,
) -> RunResult:
    """Simulate one call. Raises ScenarioError, AppError, SimulationError."""
    return Simulator(settings).run(scenario, app_path, channel)
