"""jambonz over real sockets: from its webhook to a transfer, and clips instead of a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from gateway.errors import AdmissionError
from gateway.platform_settings import PlatformsSettings
from gateway.platforms.terms import rest_controls, terms_of
from gateway.simulate.platforms import side
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.jambonz import JambonzClipPlatform
from tests.platforms.live import Live, live
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import request

IDENTITY = Identity("9a2c-41", "+15550100", "+15550199", {"tier": "gold"})
PROOF = {"username": "jambonz", "password": "secret"}
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Live]:
    """A gateway with such settings for jambonz."""
    settings = {**PROOF, **settings}
    platforms = PlatformsSettings(jambonz=settings)  # type: ignore[arg-type]
    controls = rest_controls(platforms)
    try:
        async with live(terms_of(platforms, controls), platforms={"jambonz": settings}) as running:
            yield running
    finally:
        for control in controls.values():
            await control.aclose()


async def asked_webhook(running: Live, secret: str = "secret") -> Endpoint:
    access = Access(running.gateway.url, secret=secret, key="jambonz")
    async with aiohttp.ClientSession() as http:
        return await side("jambonz").find(access, IDENTITY, http)


def dial(endpoint: Endpoint) -> connect:
    # The public origin is elsewhere; the test comes in by the back door.
    return connect(
        endpoint.url,
        subprotocols=[Subprotocol(name) for name in endpoint.subprotocols],
        compression=None,
        ping_interval=None,
        close_timeout=2,
    )


def local(running: Live, endpoint: Endpoint) -> Endpoint:
    """The endpoint at this machine's address instead of the public one."""
    here = urlsplit(running.gateway.url).netloc
    return Endpoint(
        f"ws://{here}{urlsplit(endpoint.url).path}", endpoint.platform, {}, ("audio.jambonz.org",)
    )


async def speak(client: ClientConnection, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Be the platform until the gateway closes or the call is over; its text messages."""
    said: list[dict[str, Any]] = []
    far_side = endpoint.platform
    try:
        async with asyncio.timeout(10):
            async for message in client:
                for reply in far_side.receive(message):
                    await client.send(reply)
                if isinstance(message, str):
                    said.append(json.loads(message))
                while isinstance(far_side, JambonzClipPlatform) and far_side._clips:
                    for reply in far_side.play().replies:
                        await client.send(reply)
                if far_side.finished:
                    await client.close()
    except ConnectionClosed:
        pass
    return said


async def begin(running: Live, client: ClientConnection, endpoint: Endpoint) -> None:
    assert client.subprotocol == "audio.jambonz.org"
    for message in endpoint.platform.open():
        await client.send(message)
    await until(lambda: running.agents and running.agents[0].inputs("variables"))


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


async def test_from_the_webhook_to_the_end_of_the_verb() -> None:
    async with serving() as running:
        endpoint = await asked_webhook(running)
        async with dial(endpoint) as client:
            await begin(running, client, endpoint)
            assert running.agents[0].inputs("variables") == [{"tier": "gold"}]
            running.agents[0].end()
            assert await speak(client, endpoint) == [{"type": "disconnect"}]
        await until(lambda: running.ends("9a2c-41") == ["completed"])
        with pytest.raises(InvalidStatus):
            async with dial(endpoint):
                pass


async def test_the_webhook_asks_for_user_and_password() -> None:
    async with serving() as running:
        with pytest.raises(AdmissionError) as caught:
            await asked_webhook(running, "wrong")
        assert caught.value.status == 401


async def test_a_transfer_leads_back_to_our_own_verbs(server: RestServer) -> None:
    rest = {"api_secret": "token", "rest_url": server.url, "public_origin": "https://voice.example"}
    async with serving(**rest) as running:
        endpoint = local(running, await asked_webhook(running))
        async with dial(endpoint) as client:
            await begin(running, client, endpoint)
            running.agents[0].end(**TARGET)
            await speak(client, endpoint)
        (asked,) = server.asked
        assert (asked.method, asked.authorization) == ("PUT", "Bearer token")
        assert asked.path.endswith("/Calls/9a2c-41")
        hook: Mapping[str, str] = json.loads(asked.body)["call_hook"]
        assert hook["url"].startswith("https://voice.example/jambonz/transfer?")
        parts = urlsplit(hook["url"])
        status, _, body = await request(
            running.gateway,
            hook["method"],
            f"{parts.path}?{parts.query}",
            headers={
                "Authorization": aiohttp.encode_basic_auth(hook["username"], hook["password"])
            },
        )
        assert status == 200
        assert json.loads(body)[0] == {
            "verb": "dial",
            "target": [{"type": "phone", "number": "+15550123"}],
        }
        await until(lambda: running.ends("9a2c-41") == ["transferred"])


async def test_without_streaming_the_agent_is_heard_in_clips() -> None:
    async with serving(streaming=False, clip_ms=100) as running:
        endpoint = await asked_webhook(running)
        assert isinstance(endpoint.platform, JambonzClipPlatform)
        async with dial(endpoint) as client:
            await begin(running, client, endpoint)
            agent = running.agents[0]
            text = {"text": "Hello.", "turnIndex": 1, "turnCompleted": True}
            agent._say.put_nowait({"sessionOutput": text})
            agent.end()
            said = await speak(client, endpoint)
        kinds = [body["type"] for body in said]
        assert set(kinds) == {"playAudio", "disconnect"}
        assert kinds[-1] == "disconnect", "the farewell is heard first"
        assert endpoint.platform.received_bytes == 1600
        ended = [one for one in running.timeline("9a2c-41") if one["kind"] == "utterance_ended"]
        assert [one["reason"] for one in ended] == ["completed"]
