"""Bandwidth over real sockets: BXML, Basic credentials, and REST behind a token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access
from tests.platforms.calling import calling, found, identity, said_goodbye, serving
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until

CALL_ID = identity("bandwidth").call_id
PROOF = {"username": "bw", "password": "secret"}


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


@pytest.mark.parametrize(("codec", "rate_hz"), [("PCMU", 8000), ("PCM", 24000)])
async def test_from_the_bxml_to_the_close(codec: str, rate_hz: int) -> None:
    async with serving("bandwidth", **PROOF, codec=codec, rate_hz=rate_hz) as running:
        access = Access(running.gateway.url, secret="secret", key="bw")
        async with calling(running, "bandwidth", access, tier="gold") as caller:
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end()
            assert await caller.talk() == 1000
            assert caller.platform.out_format.rate_hz == rate_hz
            assert caller.platform.received_bytes == 5 * caller.platform.out_format.frame_bytes
        await until(lambda: running.ends(CALL_ID) == ["completed"])


def rest(server: RestServer) -> dict[str, str]:
    server.will(200, '{"access_token": "fetched", "expires_in": 3600}')
    return {
        **{"account": "a1", "api_key": "id", "api_secret": "s"},
        **{"rest_url": server.url, "token_url": f"{server.url}/token"},
    }


async def test_the_call_is_hung_up_by_rest_with_a_fetched_token(server: RestServer) -> None:
    async with (
        serving("bandwidth", **rest(server)) as running,
        calling(running, "bandwidth") as caller,
    ):
        caller.agent.end()
        assert await caller.talk() == 1000
        token, end = server.asked
        assert token.form == {"grant_type": "client_credentials"}
        assert (end.path, end.authorization) == (
            f"/api/v2/accounts/a1/calls/{CALL_ID}",
            "Bearer fetched",
        )
        assert json.loads(end.body) == {"state": "completed"}


async def test_keys_and_a_transfer_are_new_bxml_beside_the_stream(server: RestServer) -> None:
    async with (
        serving("bandwidth", **rest(server)) as running,
        calling(running, "bandwidth") as caller,
    ):
        caller.agent.payload({"sendDtmf": "12#"})
        await until(lambda: len(server.asked) == 2)
        caller.agent.end(params={"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}})
        assert await caller.talk() == 1000
        _, keys, moved = server.asked
        path = f"/api/v2/accounts/a1/calls/{CALL_ID}/bxml"
        assert (keys.method, keys.path) == (moved.method, moved.path) == ("PUT", path)
        assert "<SendDtmf>12#</SendDtmf><Pause " in keys.body
        assert "<Transfer><PhoneNumber>+15550123</PhoneNumber></Transfer>" in moved.body


async def test_a_stop_is_the_caller_s() -> None:
    async with serving("bandwidth") as running:
        async with calling(running, "bandwidth") as caller:
            await caller.send(caller.platform.hangup())
            await said_goodbye(running)
        await until(lambda: running.ends(CALL_ID) == ["remote_hangup"], 10)


async def test_the_webhook_asks_for_user_and_password() -> None:
    async with serving("bandwidth", **PROOF) as running:
        access = Access(running.gateway.url, secret="wrong", key="bw")
        with pytest.raises(AdmissionError) as caught:
            await found("bandwidth", access, identity("bandwidth"))
        assert caught.value.status == 401
