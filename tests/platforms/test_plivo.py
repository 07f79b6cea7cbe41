"""Plivo over real sockets: the signed answer, the end that has no message, REST."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from plivo.utils.signature_v3 import construct_post_url, get_signature_v3
from websockets.exceptions import InvalidStatus
from yarl import URL

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access, Endpoint
from tests.platforms.calling import calling, dial, found, identity, said_goodbye, serving
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until

CALL_ID = identity("plivo").call_id
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}
PATH = f"/v1/Account/MA1/Call/{CALL_ID}/"


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


def rest(server: RestServer) -> dict[str, Any]:
    return {"rest_url": server.url, "account": "MA1", "api_secret": "s"}


@pytest.mark.parametrize("content_type", ["audio/x-mulaw;rate=8000", "audio/x-l16;rate=16000"])
async def test_from_the_answer_to_the_close(content_type: str) -> None:
    async with (
        serving("plivo", content_type=content_type) as running,
        calling(running, "plivo", tier="gold") as caller,
    ):
        assert caller.agent.inputs("variables") == [{"tier": "gold"}]
        caller.agent.say("One moment.")
        caller.agent.end()
        assert await caller.talk() == 1000
        assert caller.platform.received_bytes == 5 * caller.platform.out_format.frame_bytes
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_a_caller_who_hangs_up_only_closes_the_socket(server: RestServer) -> None:
    async with serving("plivo", **rest(server)) as running:
        async with calling(running, "plivo") as caller:
            await caller.send(caller.platform.hangup())
            await caller.client.close()
            await said_goodbye(running)
        await until(lambda: running.ends(CALL_ID) == ["remote_hangup"], 10)
        assert not server.asked


async def test_keys_hang_up_and_transfer_by_rest(server: RestServer) -> None:
    settings = rest(server)
    async with serving("plivo", **settings) as running, calling(running, "plivo") as caller:
        caller.agent.payload({"sendDtmf": "12#"})
        await caller.talk(0.2)
        await until(lambda: server.asked)
        server.will(404)
        caller.agent.end()
        assert await caller.talk() == 1000
        told = [(one.method, one.path) for one in server.asked]
        assert told == [("POST", f"{PATH}DTMF/"), ("DELETE", PATH)]
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_a_transfer_leads_back_to_our_own_page(server: RestServer) -> None:
    settings = {**rest(server), "public_origin": "http://127.0.0.1:1"}
    async with serving("plivo", **settings) as running:
        who = identity("plivo")
        endpoint = await found("plivo", Access(running.gateway.url), who)
        assert endpoint.url.startswith("ws://127.0.0.1:1/plivo/media/")
        path = endpoint.url.removeprefix("ws://127.0.0.1:1")
        here = Endpoint(running.gateway.url.replace("http", "ws", 1) + path, endpoint.platform)
        async with dial(here) as client:
            for message in endpoint.platform.open():
                await client.send(message)
            await until(lambda: running.agents)
            running.agents[0].end(**TARGET)
            await until(lambda: server.asked)
            (asked,) = server.asked
            assert (asked.method, asked.path) == ("POST", PATH)
            assert json.loads(asked.body)["aleg_url"] == (
                "http://127.0.0.1:1/plivo/transfer?target=%2B15550123"
            )
        await until(lambda: running.ends(CALL_ID) == ["transferred"], 10)


async def test_only_the_platform_s_signature_opens_and_one_socket_only() -> None:
    async with serving("plivo", auth_tokens=["t"], public_origin="http://h") as running:
        with pytest.raises(AdmissionError) as caught:
            await found("plivo", Access(running.gateway.url), identity("plivo"))
        assert caught.value.status == 403
    async with serving("plivo") as running:
        endpoint = await found("plivo", Access(running.gateway.url), identity("plivo"))
        async with dial(endpoint):
            pass
        # A stream that reconnects for a call that is over finds no door.
        with pytest.raises(InvalidStatus):
            async with dial(endpoint):
                pass


@pytest.mark.parametrize(("target", "status"), [("%2B15550123", 200), ("%2B15550124", 403)])
async def test_the_page_that_dials_is_signed_too(target: str, status: int) -> None:
    form = {"CallUUID": CALL_ID, "From": "15550100"}
    url = "http://voice.example/plivo/transfer?target=%2B15550123"
    signature = get_signature_v3("t", construct_post_url(url, dict(form)), "n1").decode()
    headers = {"X-Plivo-Signature-V3": signature, "X-Plivo-Signature-V3-Nonce": "n1"}
    origin = "http://voice.example"
    async with serving("plivo", auth_tokens=["t"], public_origin=origin) as running:
        asked = URL(f"{running.gateway.url}/plivo/transfer?target={target}", encoded=True)
        async with (
            aiohttp.ClientSession() as http,
            http.post(asked, data=form, headers=headers) as response,
        ):
            assert response.status == status
            body = await response.text()
    assert ("<Number>+15550123</Number>" in body) == (status == 200)
