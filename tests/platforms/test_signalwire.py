"""SignalWire over real sockets: its XML, keys on the stream, transfer by a page of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.signalwire import SignalWirePlatform, signature
from tests.platforms.calling import calling, dial, found, identity, serving
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import request, ws_url

KEY = "PSK_1"
CALL_ID = identity("signalwire").call_id
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}
ORIGIN = "https://voice.example.com"


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


def rest(server: RestServer) -> dict[str, Any]:
    return {"rest_url": server.url, "account": "project-1", "api_secret": "PT1"}


@pytest.mark.parametrize("codec", ["PCMU@8000h", "L16@16000h"])
async def test_from_the_answer_to_the_close(codec: str) -> None:
    async with (
        serving("signalwire", codec=codec) as running,
        calling(running, "signalwire", tier="gold") as caller,
    ):
        assert caller.agent.inputs("variables") == [{"tier": "gold"}]
        caller.agent.say("One moment.")
        caller.agent.end()
        assert await caller.talk() == 1000
        assert caller.platform.received_bytes == 5 * caller.platform.out_format.frame_bytes
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_keys_are_pressed_on_the_stream() -> None:
    async with serving("signalwire") as running, calling(running, "signalwire") as caller:
        caller.agent.payload({"sendDtmf": "12#"})
        await caller.talk(0.3)
        assert isinstance(caller.platform, SignalWirePlatform)
        assert caller.platform.keys == "12#"
        assert caller.platform.received_bytes == 0, "not as tones"


async def test_the_webhook_must_be_signed() -> None:
    async with serving("signalwire", auth_tokens=[KEY], public_origin=ORIGIN) as running:
        for secret, status in (("", 401), ("another", 403), (KEY, 403)):
            access = Access(running.gateway.url, secret=secret)
            with pytest.raises(AdmissionError) as caught:
                await found("signalwire", access, identity("signalwire"))
            assert caught.value.status == status, "the address that is signed is the public one"
        form = {"CallSid": CALL_ID, "From": "+1", "To": "+2"}
        signed = signature(f"{ORIGIN}/signalwire/voice", form, KEY)
        headers = {"X-SignalWire-Signature": signed}
        status, _, body = await request(
            running.gateway, "POST", "/signalwire/voice", data=form, headers=headers
        )
        assert status == 200
        assert b'url="wss://voice.example.com/signalwire/media/' in body


async def test_streams_of_other_xml_come_with_their_token() -> None:
    async with serving("signalwire", auth_tokens=[KEY], public_origin=ORIGIN) as running:
        platform = SignalWirePlatform(identity("signalwire"))
        headers = {"Authorization": f"Bearer {KEY}"}
        url = ws_url(running.gateway, "/signalwire/media")
        async with dial(Endpoint(url, platform, headers)) as client:
            for message in platform.open():
                await client.send(message)
            await until(lambda: running.agents)


async def test_a_hang_up_by_rest(server: RestServer) -> None:
    async with (
        serving("signalwire", **rest(server)) as running,
        calling(running, "signalwire") as caller,
    ):
        caller.agent.end()
        assert await caller.talk() == 1000
        (asked,) = server.asked
        assert asked.form == {"Status": "completed"}
        assert asked.authorization.startswith("Basic ")


async def test_a_transfer_leads_to_a_page_of_ours_that_dials(server: RestServer) -> None:
    async with serving("signalwire", public_origin=ORIGIN, **rest(server)) as running:
        access = Access(running.gateway.url)
        endpoint = await found("signalwire", access, identity("signalwire"))
        path = urlsplit(endpoint.url).path
        local = Endpoint(ws_url(running.gateway, path), endpoint.platform)
        async with dial(local) as client:
            for message in endpoint.platform.open():
                await client.send(message)
            await until(lambda: running.agents)
            running.agents[0].end(**TARGET)
            await until(lambda: server.asked)
            url = server.asked[0].form["Url"]
        assert url.startswith(ORIGIN)
        parts = urlsplit(url)
        status, _, body = await request(
            running.gateway, "POST", f"{parts.path}?{parts.query}", data={"CallSid": CALL_ID}
        )
        assert (status, body) == (200, b"<Response><Dial>+15550123</Dial></Response>")
        await until(lambda: running.ends(CALL_ID) == ["transferred"])
