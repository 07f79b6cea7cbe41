"""Sinch over real sockets: a signed callback, a headerless socket with a token, REST."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access
from tests.platforms.calling import Caller, calling, dial, found, identity, said_goodbye, serving
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until

KEY = "669E367E-6BBA-48AB-AF15-266871C28135"
SECRET = base64.b64encode(b"the application's secret").decode()
CALL_ID = identity("sinch").call_id


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


@pytest.mark.parametrize("rate_hz", [8000, 48000])
async def test_from_the_callback_to_the_close(rate_hz: int) -> None:
    async with serving("sinch", rate_hz=rate_hz) as running:
        async with calling(running, "sinch", tier="gold") as caller:
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end()
            assert await caller.talk() == 1000
            assert caller.platform.out_format.rate_hz == rate_hz
            assert caller.platform.received_bytes == 5 * caller.platform.out_format.frame_bytes
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_a_signed_callback_leads_to_keys_and_a_hang_up_by_rest(server: RestServer) -> None:
    proof = {"api_key": KEY, "api_secret": SECRET, "rest_url": server.url}
    async with serving("sinch", **proof) as running:
        access = Access(running.gateway.url, secret=SECRET, key=KEY)
        async with calling(running, "sinch", access) as caller:
            caller.agent.payload({"sendDtmf": "12#"})
            await until(lambda: server.asked)
            caller.agent.end()
            assert await caller.talk() == 1000
        pressed, ended = server.asked
        path = f"/calling/v1/calls/id/{CALL_ID}"
        assert (pressed.method, pressed.path) == (ended.method, ended.path) == ("PATCH", path)
        assert json.loads(pressed.body)["instructions"] == [{"name": "sendDtmf", "value": "12#"}]
        assert json.loads(ended.body)["action"] == {"name": "hangup"}
        assert (
            ended.authorization == f"Basic {base64.b64encode(f'{KEY}:{SECRET}'.encode()).decode()}"
        )


async def test_only_the_application_s_signature_and_its_token_open(server: RestServer) -> None:
    proof = {"api_key": KEY, "api_secret": SECRET, "rest_url": server.url}
    async with serving("sinch", **proof) as running:
        wrong = Access(running.gateway.url, secret=base64.b64encode(b"wrong").decode(), key=KEY)
        with pytest.raises(AdmissionError) as refused:
            await found("sinch", wrong, identity("sinch"))
        assert refused.value.status == 401
        right = Access(running.gateway.url, secret=SECRET, key=KEY)
        endpoint = await found("sinch", right, identity("sinch"))
        assert not endpoint.headers
        async with dial(endpoint):
            pass
        bare = endpoint.url.rpartition("/")[0]
        for spoiled, status in ((endpoint, 403), (replace(endpoint, url=bare), 401)):
            with pytest.raises(InvalidStatus) as caught:
                async with dial(spoiled):
                    pass
            assert caught.value.response.status_code == status


async def test_the_caller_hangs_up() -> None:
    async with serving("sinch") as running:
        async with calling(running, "sinch") as caller:
            await caller.client.close()
            await said_goodbye(running)
        await until(lambda: running.ends(CALL_ID) == ["remote_hangup"], 10)


async def test_an_account_that_only_the_socket_names_is_busy() -> None:
    async with serving("sinch", max_calls_per_account=1) as running:
        endpoint = await found("sinch", Access(running.gateway.url), identity("sinch", "other"))
        bare = replace(endpoint, url=endpoint.url.rpartition("/")[0])
        async with calling(running, "sinch") as first, dial(bare) as client:
            second = Caller(running, endpoint.platform, client)
            await second.send(endpoint.platform.open())
            assert await client.recv() == '{"command":"busy"}'
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert running.ends(identity("sinch", "other").call_id) == ["limit"]
            assert first.client.close_code is None
