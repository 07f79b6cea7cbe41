"""The load generator: many callers in one process, paced by one ticker."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp
import picows

from gateway.audio.formats import Pcm
from gateway.config import Settings
from gateway.errors import AdmissionError, GatewayError, RuntimeFailure, ScenarioError
from gateway.load.caller import LoadCaller
from gateway.load.result import LoadResult, Tally
from gateway.simulate.caller import Caller
from gateway.simulate.clips import ClipMaker, at_rate
from gateway.simulate.platforms import call_id, platform, side
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.base import Identity
from gateway.simulate.run import linger_s
from gateway.simulate.scenario import Scenario
from gateway.simulate.view import CallView
from gateway.speech import inline
from gateway.ticker import Ticker

CONNECT_S = 10.0
MAX_CALL_S = 900.0
"""A call that is longer is hung up; its script waits for something that never comes."""
END_S = 10.0
MAX_CALLS = 5000
PROGRESS_S = 1.0

Progress = Callable[[Tally], None]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How many calls, how fast they begin, and for how long so many are kept up.

    `duration_s` None: each of the `calls` is made once; else those that end are replaced until
    then. Raises ScenarioError where one process cannot do it.
    """

    calls: int
    rate_per_s: float = 10.0
    duration_s: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.calls <= MAX_CALLS:
            raise ScenarioError(
                "scenario.calls", f"calls must be within 1 and {MAX_CALLS}", hint="--calls 50"
            )
        if self.rate_per_s <= 0:
            raise ScenarioError("scenario.rate", "the rate must be above 0", hint="--rate 10")
        if self.duration_s is not None and self.duration_s <= 0:
            raise ScenarioError(
                "scenario.duration", "the duration must be above 0", hint="--duration 60s"
            )


async def load(
    access: Access,
    scenario: Scenario,
    plan: LoadPlan,
    channel: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> LoadResult:
    """Run the plan. Raises ScenarioError; what happens to single calls is counted."""
    dialect = channel or scenario.channel
    identity = Identity("any", scenario.from_, scenario.to, scenario.variables)
    rate_hz = platform(dialect, identity).in_format.rate_hz
    speech = inline(settings or Settings())
    clips = await ClipMaker(speech.synthesiser).clips(scenario, rate_hz)
    async with aiohttp.ClientSession() as http:
        run = _Run(access, scenario, plan, dialect, clips, rate_hz, http)
        return await run.run(progress)


class _Run:
    """One load run."""

    def __init__(
        self,
        access: Access,
        scenario: Scenario,
        plan: LoadPlan,
        channel: str,
        clips: Mapping[int, Pcm],
        clips_hz: int,
        http: aiohttp.ClientSession,
    ) -> None:
        self._access = access
        self._scenario = scenario
        self._plan = plan
        self._channel = channel
        self._clips_hz = clips_hz
        self._clips = {clips_hz: clips}
        """By rate: what the server asks for may not be the dialect's usual one."""
        self._http = http
        self._loop = asyncio.get_running_loop()
        self._ticker = Ticker(self._loop)
        self._tally = Tally()
        self._over = asyncio.Event()
        self._callers: set[LoadCaller] = set()

    async def run(self, progress: Progress | None) -> LoadResult:
        """All calls; returns when the last one is gone."""
        begun = self._loop.time()
        cpu_begun = time.process_time()
        slots = [
            asyncio.create_task(self._slot(begun + n / self._plan.rate_per_s), name=f"load-{n}")
            for n in range(self._plan.calls)
        ]
        watch = asyncio.create_task(self._watch(begun, progress), name="load-watch")
        try:
            await asyncio.gather(*slots)
        finally:
            for task in (*slots, watch):
                task.cancel()
            await asyncio.gather(*slots, watch, return_exceptions=True)
            for caller in tuple(self._callers):
                caller.abort()
            self._ticker.close()
        seconds = self._loop.time() - begun
        cpu_share = (time.process_time() - cpu_begun) / seconds if seconds > 0 else 0.0
        return LoadResult.of(self._tally, self._channel, self._plan.calls, seconds, cpu_share)

    async def _watch(self, begun: float, progress: Progress | None) -> None:
        """Tell how it goes, and end a run of limited length."""
        while True:
            if progress is not None:
                progress(self._tally)
            elapsed = self._loop.time() - begun
            if self._plan.duration_s is not None and elapsed >= self._plan.duration_s:
                self._over.set()
                for caller in tuple(self._callers):
                    caller.hang_up()
            await asyncio.sleep(PROGRESS_S)

    async def _slot(self, begin: float) -> None:
        """One place in the load: a call, and the next one while the run lasts."""
        await asyncio.sleep(max(0.0, begin - self._loop.time()))
        while not self._over.is_set():
            ended_well = await self._one()
            if self._plan.duration_s is None:
                return
            if not ended_well:
                # A server that refuses is not asked again at once.
                await asyncio.sleep(PROGRESS_S)

    async def _one(self) -> bool:
        tally = self._tally
        tally.started += 1
        name = call_id(self._channel, secrets.token_hex(16))
        identity = Identity(name, self._scenario.from_, self._scenario.to, self._scenario.variables)
        begun = self._loop.time()
        try:
            endpoint = await side(self._channel).find(self._access, identity, self._http)
            caller = await self._connect(endpoint)
        except AdmissionError as error:
            tally.refused[str(error.status)] += 1
            return False
        except GatewayError as error:
            tally.failed[error.code] += 1
            return False
        tally.connect_s.append(self._loop.time() - begun)
        return await self._live(caller)

    async def _live(self, caller: LoadCaller) -> bool:
        tally = self._tally
        tally.active += 1
        tally.most_active = max(tally.most_active, tally.active)
        self._callers.add(caller)
        key = self._ticker.add(caller.tick)
        try:
            try:
                async with asyncio.timeout(MAX_CALL_S):
                    await caller.done.wait()
            except TimeoutError:
                caller.problem = f"longer than {MAX_CALL_S:g} s"
                caller.hang_up()
                async with asyncio.timeout(END_S):
                    await caller.done.wait()
        finally:
            self._ticker.remove(key)
            self._callers.discard(caller)
            tally.active -= 1
        if caller.problem:
            tally.failed[caller.problem] += 1
            return False
        tally.completed += 1
        return True

    async def _connect(self, endpoint: Endpoint) -> LoadCaller:
        view = CallView(timeline=False)
        rate_hz = endpoint.platform.in_format.rate_hz
        if rate_hz not in self._clips:
            self._clips[rate_hz] = at_rate(self._clips[self._clips_hz], self._clips_hz, rate_hz)
        script = Caller(
            self._scenario.caller,
            self._clips[rate_hz],
            rate_hz,
            view,
            linger_s=linger_s(self._scenario),
        )
        caller = LoadCaller(endpoint.platform, script, view, self._tally)
        headers = dict(endpoint.headers)
        if endpoint.subprotocols:
            headers["Sec-WebSocket-Protocol"] = ", ".join(endpoint.subprotocols)
        try:
            await picows.ws_connect(
                lambda: caller,
                endpoint.url,
                websocket_handshake_timeout=CONNECT_S,
                extra_headers=headers,
                enable_auto_pong=True,
                max_redirects=0,
            )
        except picows.WSInvalidStatusError as error:
            status = int(error.response.status) if error.response is not None else 0
            raise AdmissionError(
                "admission.refused", "the call was refused", status=status
            ) from None
        except (picows.WSError, OSError, TimeoutError) as error:
            raise RuntimeFailure("runtime.unreachable", f"cannot connect: {error}") from None
        return caller
