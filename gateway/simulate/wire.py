"""The same scenario over the real wire and in real time: one caller on a websocket.

The platform sides and the caller are those of the simulator; the server's timeline is followed over
HTTP, so the caller observes the same records.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

import aiohttp
import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from gateway.audio.formats import Pcm
from gateway.config import Settings
from gateway.errors import ProtocolError, RuntimeFailure
from gateway.simulate.caller import FRAME_S, Caller
from gateway.simulate.clips import ClipMaker, at_rate
from gateway.simulate.judge import judge
from gateway.simulate.platforms import call_id, platform, side
from gateway.simulate.platforms.access import Access, Endpoint, refused, unreachable
from gateway.simulate.platforms.base import Identity, Platform, Wire
from gateway.simulate.result import CallLog, RunResult, at_one_rate
from gateway.simulate.run import linger_s
from gateway.simulate.scenario import Scenario
from gateway.simulate.view import CallView
from gateway.speech import inline

CONNECT_S = 10.0
SEND_S = 5.0
CLOSE_S = 10.0
MAX_MESSAGE_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 20


async def call(
    access: Access,
    scenario: Scenario,
    channel: str | None = None,
    settings: Settings | None = None,
) -> RunResult:
    """Make one call and judge it. Raises ScenarioError, AdmissionError, RuntimeFailure."""
    dialect = channel or scenario.channel
    speech = inline(settings or Settings())
    # A server remembers calls by their id, so each real call has its own.
    identity = Identity(
        call_id(dialect, f"{scenario.name} {secrets.token_hex(8)}"),
        scenario.from_,
        scenario.to,
        scenario.variables,
    )
    # First the voice: the token of a media address is short-lived.
    rate_hz = platform(dialect, identity).in_format.rate_hz
    clips = await ClipMaker(speech.synthesiser).clips(scenario, rate_hz)
    async with aiohttp.ClientSession() as http:
        endpoint = await side(dialect).find(access, identity, http)
        connection = await _connect(endpoint, access.url)
        try:
            spoken = at_rate(clips, rate_hz, endpoint.platform.in_format.rate_hz)
            running = _WireCall(access, scenario, identity, endpoint.platform, spoken)
            log = await running.run(connection, http, dialect)
        finally:
            await connection.close()
    return RunResult(log, judge(log))


async def _connect(endpoint: Endpoint, called: str) -> ClientConnection:
    try:
        return await connect(
            endpoint.url,
            additional_headers=dict(endpoint.headers),
            subprotocols=[Subprotocol(name) for name in endpoint.subprotocols] or None,
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            open_timeout=CONNECT_S,
            close_timeout=2.0,
            ping_interval=None,
            proxy=None,
        )
    except InvalidStatus as error:
        raise refused(
            "the socket", error.response.status_code, error.response.body or b""
        ) from None
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as error:
        raise unreachable(endpoint.url, error, called) from None


class _WireCall:
    """One caller on an open socket."""

    def __init__(
        self,
        access: Access,
        scenario: Scenario,
        identity: Identity,
        platform: Platform,
        clips: dict[int, Pcm],
    ) -> None:
        self._access = access
        self._scenario = scenario
        self._identity = identity
        self._platform = platform
        self._view = CallView()
        self._caller = Caller(
            scenario.caller,
            clips,
            platform.in_format.rate_hz,
            self._view,
            linger_s=linger_s(scenario),
        )
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._timeline: list[dict[str, Any]] = []
        self._complaints: list[str] = []
        self._closed = asyncio.Event()
        self._sent: list[Pcm] = []
        self._heard: list[Pcm] = []

    async def run(
        self, connection: ClientConnection, http: aiohttp.ClientSession, channel: str
    ) -> CallLog:
        """The call from the first message to the last record."""
        self._start = self._loop.time()
        for message in self._platform.open():
            await self._send(connection, message)
        reading = asyncio.create_task(self._read(connection), name="wire-reader")
        following = asyncio.create_task(self._follow(http), name="wire-timeline")
        try:
            await self._converse(connection, following)
            await connection.close()
            async with asyncio.timeout(CLOSE_S):
                await following
        except TimeoutError:
            raise RuntimeFailure(
                "runtime.endless", f"the call's timeline did not end {CLOSE_S:g} s after the call"
            ) from None
        finally:
            for task in (reading, following):
                task.cancel()
            await asyncio.gather(reading, following, return_exceptions=True)
        return self._log(channel)

    def _now(self) -> float:
        return self._loop.time() - self._start

    async def _send(self, connection: ClientConnection, message: Wire) -> None:
        try:
            async with asyncio.timeout(SEND_S):
                await connection.send(message)
        except ConnectionClosed:
            self._closed.set()
        except TimeoutError:
            raise RuntimeFailure("runtime.not_reading", "the server does not read") from None

    async def _read(self, connection: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for message in connection:
                try:
                    replies = self._platform.receive(message)
                except ProtocolError as error:
                    if error.message not in self._complaints:
                        self._complaints.append(error.message)
                    continue
                for reply in replies:
                    await self._send(connection, reply)
        self._closed.set()

    async def _follow(self, http: aiohttp.ClientSession) -> None:
        url = self._access.http(f"/calls/{self._identity.call_id}/timeline?follow=1")
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        try:
            async with http.get(url, headers=self._access.headers, timeout=timeout) as response:
                if response.status != 200:
                    raise RuntimeFailure(
                        "runtime.timeline",
                        f"the server does not show this call's timeline ({response.status})",
                        where=url,
                        hint="start it with --set server.share_timeline=true, and give its token",
                    )
                await self._lines(response)
        except aiohttp.ClientError as error:
            raise unreachable(url, error) from None

    async def _lines(self, response: aiohttp.ClientResponse) -> None:
        rest = b""
        async for chunk in response.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE_BYTES:
                raise RuntimeFailure("runtime.timeline", "a timeline record is too large")
            for line in lines:
                if line.strip():
                    record = orjson.loads(line)
                    self._timeline.append(record)
                    self._view.record(record, self._now())

    async def _converse(self, connection: ClientConnection, following: asyncio.Task[None]) -> None:
        """The platform's 20 ms clock, until one side has closed the socket."""
        silence = bytes(self._platform.in_format.pcm_frame_bytes)
        frame = 0
        while not self._closed.is_set():
            if following.done():
                # It ends with the call; earlier it can only have failed, and then says why.
                following.result()
            played = self._platform.play()
            self._heard.append(played.pcm)
            for reply in played.replies:
                await self._send(connection, reply)
            if self._platform.finished:
                return
            output = self._caller.frame(self._now())
            if output.hangup:
                await self._hang_up(connection)
                return
            if output.digit:
                pressed = self._platform.digit(output.digit)
                for message in pressed:
                    await self._send(connection, message)
                if not pressed:
                    self._caller.keyless()
            self._sent.append(output.pcm if output.pcm is not None else silence)
            for message in self._platform.media(output.pcm):
                await self._send(connection, message)
            frame += 1
            await self._until(frame * FRAME_S)

    async def _until(self, moment: float) -> None:
        """Wait for a moment of the call; at once where it is past, so that no drift builds up."""
        left = moment - self._now()
        if left > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._closed.wait()

    async def _hang_up(self, connection: ClientConnection) -> None:
        for message in self._platform.hangup():
            await self._send(connection, message)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._platform.hangup_wait_s):
                await self._closed.wait()

    def _log(self, channel: str) -> CallLog:
        sent, heard, rate_hz = at_one_rate(
            b"".join(self._sent),
            self._platform.in_format.rate_hz,
            b"".join(self._heard),
            self._platform.out_format.rate_hz,
        )
        return CallLog(
            scenario=self._scenario,
            channel=channel,
            call_id=self._identity.call_id,
            timeline=self._timeline,
            steps=self._caller.spans,
            missed=[] if self._caller.failed else self._caller.missed(),
            sent=sent,
            heard=heard,
            rate_hz=rate_hz,
            complaints=self._complaints,
        )
