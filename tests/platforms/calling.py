"""A caller of any dialect on a live gateway: finds its socket and speaks the platform's side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.bidi import REMOTE_DISCONNECTED
from gateway.notices import CallNotices
from gateway.platform_settings import PlatformsSettings
from gateway.platforms.terms import rest_controls, terms_of
from gateway.simulate.platforms import call_id, side
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.base import Identity, Platform, Wire
from tests.platforms.live import Agent, Live, live
from tests.server.echo import until

FRAME_S = 0.02


@asynccontextmanager
async def serving(
    dialect: str,
    *,
    server: Mapping[str, Any] | None = None,
    bearer: Sequence[str] = (),
    notices: CallNotices | None = None,
    **settings: Any,
) -> AsyncIterator[Live]:
    """A gateway with such settings for one dialect, such ones of the server, and bearer tokens."""
    sections = {dialect: settings}
    platforms = PlatformsSettings.model_validate(sections)
    controls = rest_controls(platforms)
    try:
        async with live(
            terms_of(platforms, controls),
            platforms=sections,
            controls=controls,
            server=server,
            bearer=bearer,
            notices=notices,
        ) as running:
            yield running
    finally:
        for control in controls.values():
            await control.aclose()


def identity(dialect: str, name: str = "test", **variables: Any) -> Identity:
    """Who calls; `name` tells calls apart."""
    return Identity(call_id(dialect, name), "+15550100", "+15550199", variables)


async def found(dialect: str, access: Access, who: Identity) -> Endpoint:
    """The socket that the platform would be sent to. Raises AdmissionError."""
    async with aiohttp.ClientSession() as http:
        return await side(dialect).find(access, who, http)


def dial(endpoint: Endpoint) -> connect:
    """The platform's connection to it."""
    return connect(
        endpoint.url,
        additional_headers=dict(endpoint.headers),
        subprotocols=[Subprotocol(name) for name in endpoint.subprotocols] or None,
        compression=None,
        ping_interval=None,
        close_timeout=2,
    )


@dataclass
class Caller:
    """One call; all complaints of the platform are failures of the test."""

    running: Live
    platform: Platform
    client: ClientConnection
    heard: bytearray = field(default_factory=bytearray)
    told: list[str] = field(default_factory=list)
    """Text messages of the server."""

    @property
    def agent(self) -> Agent:
        return self.running.agents[-1]

    async def send(self, messages: list[Wire] | tuple[Wire, ...]) -> None:
        for message in messages:
            await self.client.send(message)

    async def talk(self, seconds: float = 5.0) -> int | None:
        """Be the platform for so long, or until either side closes; the server's close code."""
        reading = asyncio.create_task(self._read())
        try:
            async with asyncio.timeout(seconds):
                while not reading.done():
                    played = self.platform.play()
                    self.heard += played.pcm
                    await self.send(played.replies)
                    await self.send(self.platform.media(None))
                    if self.platform.finished:
                        await self.client.close()
                    await asyncio.sleep(FRAME_S)
        except (TimeoutError, ConnectionClosed):
            pass
        finally:
            if self.client.close_code is None:
                reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            raise error
        return self.client.close_code

    async def _read(self) -> None:
        try:
            async for message in self.client:
                if isinstance(message, str):
                    self.told.append(message)
                await self.send(self.platform.receive(message))
        except ConnectionClosed:
            pass


@asynccontextmanager
async def calling(
    running: Live, dialect: str, access: Access | None = None, **variables: Any
) -> AsyncIterator[Caller]:
    """One call whose agent is there."""
    who = identity(dialect, **variables)
    endpoint = await found(dialect, access or Access(running.gateway.url), who)
    before = len(running.agents)
    async with dial(endpoint) as client:
        caller = Caller(running, endpoint.platform, client)
        await caller.send(endpoint.platform.open())
        await until(lambda: len(running.agents) > before)
        yield caller


async def said_goodbye(running: Live) -> None:
    """The caller has hung up: the agent was told, and has nothing to add."""
    await until(lambda: {"event": REMOTE_DISCONNECTED} in running.agents[-1].inputs("event"))
    running.agents[-1].end()
