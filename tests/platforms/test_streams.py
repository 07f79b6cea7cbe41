"""Exotel, Sinch and Infobip over real sockets: they have no REST, a close is their end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access
from tests.platforms.calling import (
    Caller,
    calling,
    dial,
    found,
    identity,
    said_goodbye,
    serving,
)
from tests.server.echo import until

PROOF = {"username": "key", "password": "secret"}
ALL = pytest.mark.parametrize(
    ("dialect", "settings"),
    [("exotel", {"rate_hz": 8000}), ("exotel", {"rate_hz": 24000}), ("sinch", {}), ("infobip", {})],
)


@ALL
async def test_from_the_start_to_the_close(dialect: str, settings: dict[str, Any]) -> None:
    call_id = identity(dialect).call_id
    async with serving(dialect, **PROOF, **settings) as running:
        access = Access(running.gateway.url, secret="secret", key="key")
        async with calling(running, dialect, access, tier="gold") as caller:
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end()
            assert await caller.talk() == 1000
            assert caller.platform.received_bytes == 5 * caller.platform.out_format.frame_bytes
        await until(lambda: running.ends(call_id) == ["completed"], 10)


@pytest.mark.parametrize("dialect", ["exotel", "sinch", "infobip"])
async def test_user_and_password_open_and_nothing_else(dialect: str) -> None:
    async with serving(dialect, **PROOF) as running:
        access = Access(running.gateway.url, secret="wrong", key="key")
        with pytest.raises((AdmissionError, InvalidStatus)) as caught:
            async with dial(await found(dialect, access, identity(dialect))):
                pass
        refused = caught.value
        status = (
            refused.status if isinstance(refused, AdmissionError) else refused.response.status_code
        )
        assert status == 401


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"auth_tokens": ["secret"]}, ""), (PROOF, "key")],
    ids=["bearer", "basic"],
)
async def test_audio_stream_is_opened_by_either_header(settings: dict[str, Any], key: str) -> None:
    async with serving("audio_stream", **settings) as running:
        access = Access(running.gateway.url, secret="secret", key=key)
        async with calling(running, "audio_stream", access) as caller:
            caller.agent.end()
            assert await caller.talk() == 1000


@pytest.mark.parametrize("dialect", ["exotel", "sinch", "infobip"])
async def test_the_caller_hangs_up(dialect: str) -> None:
    call_id = identity(dialect).call_id
    async with serving(dialect) as running:
        async with calling(running, dialect) as caller:
            await caller.send(caller.platform.hangup())
            await caller.client.close()
            await said_goodbye(running)
        await until(lambda: running.ends(call_id) == ["remote_hangup"], 10)


async def test_an_account_without_room_is_busy() -> None:
    async with (
        serving("sinch", max_calls_per_account=1) as running,
        calling(running, "sinch") as first,
    ):
        endpoint = await found("sinch", Access(running.gateway.url), identity("sinch"))
        async with dial(endpoint) as client:
            second = Caller(running, endpoint.platform, client)
            other = json.loads(str(endpoint.platform.open()[0]))
            await second.send([json.dumps({**other, "callId": "another"})])
            assert await client.recv() == '{"command":"busy"}'
            with pytest.raises(ConnectionClosed):
                await client.recv()
        assert running.ends("another") == ["limit"]
        assert first.client.close_code is None
