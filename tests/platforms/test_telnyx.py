"""Telnyx over real sockets: TeXML, call control, audio out of order, and REST."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access, Endpoint
from gateway.simulate.platforms.telnyx import TelnyxPlatform, signed
from tests.channels.test_telnyx import CALL_ID as TELNYX_ID
from tests.channels.test_telnyx import KEY, PUBLIC
from tests.platforms import live as harness
from tests.platforms.calling import calling, dial, found, identity, serving
from tests.platforms.live import Live
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import request

PRIVATE = base64.b64encode(KEY.private_bytes_raw()).decode()
CALL_ID = identity("telnyx").call_id
PATH = f"/v2/calls/{CALL_ID}/actions"
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


def rest(server: RestServer) -> dict[str, Any]:
    return {"rest_url": server.url, "api_secret": "KEY1"}


async def test_from_texml_to_the_close() -> None:
    async with serving("telnyx", public_keys=[PUBLIC], codec="L16", rate_hz=16000) as running:
        access = Access(running.gateway.url, secret=PRIVATE)
        async with calling(running, "telnyx", access, tier="gold") as caller:
            assert caller.platform.in_format != caller.platform.out_format
            assert caller.platform.out_format.rate_hz == 16000
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end()
            assert await caller.talk() == 1000
            assert caller.platform.received_bytes == 5 * 640
        await until(lambda: running.ends(CALL_ID) == ["completed"])


async def test_audio_that_was_shuffled_is_heard_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = bytearray()
    monkeypatch.setattr(harness._Deaf, "feed", lambda _self, pcm: heard.extend(pcm))
    async with serving("telnyx") as running, calling(running, "telnyx") as caller:
        for number in range(1, 21):
            level = (number * 1000).to_bytes(2, "little") * 160
            await caller.send(caller.platform.media(level))
        await until(lambda: len(heard) >= 19 * 320)
        levels = [int.from_bytes(heard[at : at + 2], "little") for at in range(0, len(heard), 320)]
        assert levels == sorted(levels)


async def test_a_webhook_must_be_signed() -> None:
    async with serving("telnyx", public_keys=[PUBLIC]) as running:
        other = base64.b64encode(bytes(32)).decode()
        for secret, status in (("", 401), (other, 403)):
            access = Access(running.gateway.url, secret=secret)
            with pytest.raises(AdmissionError) as caught:
                await found("telnyx", access, identity("telnyx"))
            assert caught.value.status == status


async def test_ends_keys_and_transfers_by_rest(server: RestServer) -> None:
    server.will(200)
    server.will(422, '{"errors":[{"code":"90018","title":"Call has already ended"}]}')
    async with serving("telnyx", **rest(server)) as running, calling(running, "telnyx") as caller:
        caller.agent.payload({"sendDtmf": "12#"})
        await caller.talk(0.2)
        await until(lambda: server.asked)
        caller.agent.end()
        assert await caller.talk() == 1000
        assert [one.path for one in server.asked] == [f"{PATH}/send_dtmf", f"{PATH}/hangup"]
        assert json.loads(server.asked[0].body) == {"digits": "12#"}
        assert server.asked[0].authorization == "Bearer KEY1"
        await until(lambda: running.ends(CALL_ID) == ["completed"])
        assert running.codes(CALL_ID) == [], "a call that had ended already is no failure"


async def test_a_transfer_by_rest(server: RestServer) -> None:
    async with serving("telnyx", **rest(server)) as running, calling(running, "telnyx") as caller:
        caller.agent.end(**TARGET)
        assert await caller.talk() == 1000
        (asked,) = server.asked
        assert asked.path == f"{PATH}/transfer"
        assert json.loads(asked.body)["to"] == "+15550123"


async def called(running: Live, event: str = "call.initiated") -> tuple[int, dict[str, Any]]:
    payload = {"call_control_id": TELNYX_ID, "direction": "incoming", "from": "+1", "to": "+2"}
    body = json.dumps({"data": {"event_type": event, "payload": payload}}).encode()
    headers = {"Content-Type": "application/json", **signed(PRIVATE, body)}
    status, _, answer = await request(
        running.gateway, "POST", "/telnyx/call-control", data=body, headers=headers
    )
    return status, json.loads(answer)


async def test_a_call_control_call_is_answered_by_rest_and_its_stream_comes(
    server: RestServer,
) -> None:
    async with serving("telnyx", public_keys=[PUBLIC], **rest(server)) as running:
        assert await called(running) == (200, {})
        (asked,) = server.asked
        told = json.loads(asked.body)
        assert asked.path.endswith("/actions/answer")
        assert told["stream_bidirectional_mode"] == "rtp"
        platform = TelnyxPlatform(identity("telnyx"))
        platform.identity = type(platform.identity)(TELNYX_ID)
        async with dial(Endpoint(told["stream_url"], platform)) as client:
            for message in platform.open():
                await client.send(message)
            await until(lambda: running.agents)
        assert await called(running, "call.hangup") == (200, {})
        assert len(server.asked) == 1


async def test_a_webhook_that_comes_again_makes_no_second_call(server: RestServer) -> None:
    async with serving("telnyx", public_keys=[PUBLIC], **rest(server)) as running:
        payload = {"call_control_id": TELNYX_ID, "direction": "incoming"}
        event = {"event_type": "call.initiated", "payload": payload}
        # The platform counts its attempts; each is signed anew.
        bodies = [json.dumps({"data": event, "meta": {"attempt": n}}).encode() for n in (1, 2)]
        headers = [{"Content-Type": "application/json", **signed(PRIVATE, b)} for b in bodies]

        async def send(attempt: int) -> tuple[int, bytes]:
            status, _, answer = await request(
                running.gateway,
                "POST",
                "/telnyx/call-control",
                data=bodies[attempt],
                headers=headers[attempt],
            )
            return status, answer

        assert await send(0) == await send(1) == (200, b"{}")
        first, second = (json.loads(one.body) for one in server.asked)
        assert first["command_id"] == second["command_id"], "which the platform carries out once"
        # Somebody else who has seen one is refused, and asks the platform for nothing.
        status, answer = await send(0)
        assert (status, json.loads(answer)["error"]["code"]) == (401, "auth.replayed")
        assert len(server.asked) == 2


async def test_a_call_that_cannot_be_answered_is_a_failed_webhook(server: RestServer) -> None:
    async with serving("telnyx", public_keys=[PUBLIC]) as running:
        status, body = await called(running)
        assert (status, body["error"]["code"]) == (502, "admission.no_rest")
    server.will(403)
    async with serving("telnyx", public_keys=[PUBLIC], **rest(server)) as running:
        status, body = await called(running)
        assert (status, body["error"]["code"]) == (502, "admission.platform")
