"""Vonage over real sockets: the NCCO, exact frames, and the end by REST."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import jwt as pyjwt
import pytest
from websockets.exceptions import InvalidStatus

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.vonage import signed_token
from tests.channels.test_jwt import KEY, pem
from tests.platforms.calling import calling, dial, found, identity, serving
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import request, ws_url

SECRET = "a signature secret of thirty-two characters"
CALL_ID = identity("vonage").call_id
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


def rest(server: RestServer) -> dict[str, Any]:
    return {"rest_url": server.url, "account": "app-1", "api_secret": pem(KEY)}


def asked(server: RestServer) -> list[tuple[str, str, Any]]:
    return [(one.method, one.path, json.loads(one.body)) for one in server.asked]


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000])
async def test_from_the_answer_to_the_close(rate_hz: int) -> None:
    async with serving("vonage", auth_tokens=[SECRET], rate_hz=rate_hz) as running:
        access = Access(running.gateway.url, secret=SECRET)
        async with calling(running, "vonage", access, tier="gold") as caller:
            assert caller.platform.in_format.rate_hz == rate_hz
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end()
            assert await caller.talk() == 1000
            frames = caller.platform.received_bytes / caller.platform.out_format.frame_bytes
            assert frames == 5, "100 ms of speech in frames of 20 ms"
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_the_call_itself_is_hung_up_by_rest(server: RestServer) -> None:
    async with serving("vonage", **rest(server)) as running, calling(running, "vonage") as caller:
        caller.agent.end()
        assert await caller.talk() == 1000
        assert asked(server) == [("PUT", f"/v1/calls/{CALL_ID}", {"action": "hangup"})]
        token = server.asked[0].authorization.removeprefix("Bearer ")
        claims = pyjwt.decode(token, KEY.public_key(), algorithms=["RS256"])
        assert claims["application_id"] == "app-1"


async def test_keys_and_transfer_by_rest(server: RestServer) -> None:
    async with serving("vonage", **rest(server)) as running, calling(running, "vonage") as caller:
        caller.agent.payload({"sendDtmf": "12#"})
        await caller.talk(0.2)
        await until(lambda: server.asked)
        caller.agent.end(**TARGET)
        assert await caller.talk() == 1000
        (keys, transfer) = asked(server)
        assert keys == ("PUT", f"/v1/calls/{CALL_ID}/dtmf", {"digits": "12#"})
        (connect,) = transfer[2]["destination"]["ncco"]
        assert connect["endpoint"] == [{"type": "phone", "number": "15550123"}]
        await until(lambda: running.ends(CALL_ID) == ["transferred"])


async def test_only_the_platform_s_token_opens() -> None:
    async with serving("vonage", auth_tokens=[SECRET]) as running:
        for secret in ("", "another"):
            access = Access(running.gateway.url, secret=secret)
            with pytest.raises(AdmissionError) as caught:
                await found("vonage", access, identity("vonage"))
            assert caught.value.status == 401
        endpoint = await found(
            "vonage", Access(running.gateway.url, secret=SECRET), identity("vonage")
        )
        async with dial(endpoint):
            pass
        with pytest.raises(InvalidStatus):
            async with dial(endpoint):
                pass


async def test_an_application_is_asked_for_where_the_account_says_which() -> None:
    async with serving("vonage", auth_tokens=[SECRET], account="app-1") as running:
        who, url = identity("vonage"), running.gateway.url
        await found("vonage", Access(url, secret=SECRET, key="app-1"), who)
        with pytest.raises(AdmissionError, match="another application"):
            await found("vonage", Access(url, secret=SECRET), who)


async def test_an_endpoint_of_another_ncco_comes_with_a_token_of_its_own() -> None:
    async with serving("vonage", auth_tokens=[SECRET]) as running:
        headers = {"Authorization": f"Bearer {signed_token(SECRET, b'')}"}
        url = ws_url(running.gateway, "/vonage/media")
        platform = (
            await found("vonage", Access(running.gateway.url, secret=SECRET), identity("vonage"))
        ).platform
        async with dial(Endpoint(url, platform, headers)) as client:
            for message in platform.open():
                await client.send(message)
            await until(lambda: running.agents)
        with pytest.raises(InvalidStatus) as caught:
            async with dial(Endpoint(url, platform)):
                pass
        assert caught.value.response.status_code == 401


async def test_call_events_are_taken() -> None:
    async with serving("vonage") as running:
        told = {"uuid": CALL_ID, "status": "completed"}
        status, _, _ = await request(running.gateway, "POST", "/vonage/event", json=told)
        assert status == 200
