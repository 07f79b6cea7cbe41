"""Limits on calls, per dialect and over real sockets: who is above one is told as early as the
dialect allows, and a call that is admitted feels nothing of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from gateway.channels.dialects import DIALECTS
from gateway.errors import AdmissionError
from gateway.simulate.platforms import CHANNELS
from gateway.simulate.platforms.access import Access, Endpoint
from tests.platforms.calling import dial, found, identity, serving
from tests.platforms.live import Live
from tests.server.echo import until

SECRET = "a signature secret"

SETTINGS: dict[str, dict[str, Any]] = {"vonage": {"auth_tokens": [SECRET]}}
"""Vonage tells the account in its signed token."""
VARIABLES: dict[str, dict[str, Any]] = {"raw": {"account": "A"}}
QUERY = {"audio_fork": "?accountSid=A", "audio_stream": "?accountSid=A"}

BY_WEBHOOK = ("twilio", "signalwire", "telnyx", "plivo", "vonage", "jambonz", "bandwidth", "sinch")
BY_UPGRADE = ("genesys", "raw", "audio_fork", "audio_stream")
AT_START = ("exotel",)
NEVER = ("ces", "asterisk", "infobip", "audiocodes")
"""Nothing that these say names an account."""


def test_every_dialect_has_its_place() -> None:
    assert sorted((*BY_WEBHOOK, *BY_UPGRADE, *AT_START, *NEVER)) == sorted(CHANNELS)


async def endpoint_of(running: Live, dialect: str, name: str) -> Endpoint:
    secret = SECRET if dialect in SETTINGS else ""
    access = Access(running.gateway.url, secret=secret)
    who = identity(dialect, name, **VARIABLES.get(dialect, {}))
    endpoint = await found(dialect, access, who)
    return replace(endpoint, url=endpoint.url + QUERY.get(dialect, ""))


async def begin(running: Live, endpoint: Endpoint, client: ClientConnection) -> None:
    for message in endpoint.platform.open():
        await client.send(message)
    for message in endpoint.platform.media(None):
        await client.send(message)
    await until(lambda: running.agents)


async def goes_on(running: Live, endpoint: Endpoint, client: ClientConnection) -> None:
    """The admitted call is as it was: it hears its agent, who then ends it."""
    running.agents[0].say("One moment.")
    async with asyncio.timeout(5):
        while not endpoint.platform.received_bytes:
            for reply in endpoint.platform.receive(await client.recv()):
                await client.send(reply)
    running.agents[0].end()


def assert_busy(caught: pytest.ExceptionInfo[InvalidStatus], words: bytes) -> None:
    response = caught.value.response
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert words in response.body


@pytest.mark.parametrize("dialect", [*BY_WEBHOOK, *BY_UPGRADE])
async def test_an_account_above_its_calls_is_refused_before_the_upgrade(dialect: str) -> None:
    settings = SETTINGS.get(dialect, {})
    async with serving(dialect, max_calls_per_account=1, **settings) as running:
        first, second = [await endpoint_of(running, dialect, name) for name in "ab"]
        async with dial(first) as client:
            await begin(running, first, client)
            with pytest.raises(InvalidStatus) as caught:
                async with dial(second):
                    pass
            assert_busy(caught, b"this account")
            if dialect in BY_WEBHOOK:
                with pytest.raises(AdmissionError, match="this account") as refused:
                    await endpoint_of(running, dialect, "c")
                assert refused.value.status == 503
            await goes_on(running, first, client)
        assert len(running.agents) == 1


@pytest.mark.parametrize("dialect", AT_START)
async def test_an_account_that_only_the_start_names_is_refused_there(dialect: str) -> None:
    async with serving(dialect, max_calls_per_account=1) as running:
        first, second = [await endpoint_of(running, dialect, name) for name in "ab"]
        async with dial(first) as client, dial(second) as other:
            await begin(running, first, client)
            for message in second.platform.open():
                await other.send(message)
            await other.wait_closed()
            call_id = second.platform.identity.call_id  # type: ignore[attr-defined]
            await until(lambda: running.ends(call_id))
            assert running.codes(call_id) == ["admission.account"]
            assert running.ends(call_id) == ["limit"]
            await goes_on(running, first, client)
        assert len(running.agents) == 1


@pytest.mark.parametrize("limit", ["max_calls", "max_calls_per_source"])
@pytest.mark.parametrize("dialect", CHANNELS)
async def test_one_call_too_many_is_refused_before_the_upgrade(dialect: str, limit: str) -> None:
    async with serving(dialect, server={limit: 1}, **SETTINGS.get(dialect, {})) as running:
        first, second = [await endpoint_of(running, dialect, name) for name in "ab"]
        async with dial(first) as client:
            await begin(running, first, client)
            with pytest.raises(InvalidStatus) as caught:
                async with dial(second):
                    pass
            assert_busy(caught, b"busy" if limit == "max_calls" else b"from this address")
            await goes_on(running, first, client)
        await until(lambda: running.gateway.active == 0)
        # There is room again, and what opened the door was not used up.
        async with dial(second):
            pass


@pytest.mark.parametrize("dialect", CHANNELS)
async def test_who_breaks_a_limit_is_closed_alone(dialect: str) -> None:
    server = {"max_messages_per_s": 100}
    async with serving(dialect, server=server, **SETTINGS.get(dialect, {})) as running:
        first, large, fast = [await endpoint_of(running, dialect, name) for name in "abc"]
        async with dial(first) as client:
            await begin(running, first, client)
            async with dial(large) as other:
                await other.send("x" * (DIALECTS[dialect].capabilities.max_message_bytes + 1))
                await other.wait_closed()
                assert other.close_code == 1009
            async with dial(fast) as other:
                pongs = [await other.ping() for _ in range(101)]
                await asyncio.gather(*pongs, return_exceptions=True)
                await other.wait_closed()
                assert other.close_code == 1008
            await goes_on(running, first, client)
