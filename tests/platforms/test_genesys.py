"""Genesys over real sockets: signed upgrades, the probe, holds, ends that the platform makes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus

from gateway.channels.genesys import NULL_ID
from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.genesys import GenesysPlatform
from tests.platforms.calling import Caller, calling, dial, found, identity, serving
from tests.platforms.live import Live
from tests.server.echo import until

KEY = "the-key"
SECRET = base64.b64encode(b"the secret of the integration").decode()
PROOF = {"clients": {KEY: SECRET}}
CALL_ID = identity("genesys").call_id
TARGET = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}, "why": "sales"}}


def access(running: Live, secret: str = SECRET, key: str = KEY) -> Access:
    return Access(running.gateway.url, secret=secret, key=key)


def far_side(caller: Caller) -> GenesysPlatform:
    assert isinstance(caller.platform, GenesysPlatform)
    return caller.platform


async def test_the_agent_s_end_travels_to_the_flow_and_genesys_closes() -> None:
    async with serving("genesys", **PROOF) as running:
        async with calling(running, "genesys", access(running), tier="gold") as caller:
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.say("One moment.")
            caller.agent.end(params={"intent": "billing"})
            await caller.talk()
            assert far_side(caller).outputs == {"action": "hangup", "intent": "billing"}
            assert far_side(caller).finished, "closed was answered, and only then the socket"
            assert caller.platform.received_bytes == 800, "100 ms of speech, heard to the end"
        await until(lambda: running.ends(CALL_ID) == ["completed"])
        assert running.codes(CALL_ID) == []


async def test_a_transfer_is_told_in_the_outputs() -> None:
    async with serving("genesys") as running:
        async with calling(running, "genesys") as caller:
            caller.agent.end(**TARGET)
            await caller.talk()
            outputs = far_side(caller).outputs
        assert (outputs["action"], outputs["target"], outputs["why"]) == (
            "transfer",
            "+15550123",
            "sales",
        )
        await until(lambda: running.ends(CALL_ID) == ["transferred"])


async def test_a_caller_who_hangs_up_is_answered_at_once() -> None:
    async with serving("genesys") as running:
        async with calling(running, "genesys") as caller:
            await caller.talk(0.1)
            await caller.send(caller.platform.hangup())
            await caller.talk()
            assert far_side(caller).finished
        await until(lambda: running.ends(CALL_ID) == ["remote_hangup"])


async def test_no_audio_follows_the_answer_to_a_close() -> None:
    async with serving("genesys") as running, calling(running, "genesys") as caller:
        await caller.talk(0.1)
        caller.agent.say("One moment.")
        # Less than a message: it waits for more.
        outbox = running.calls[0]._line._outbox
        assert outbox is not None
        await until(lambda: outbox.kept_bytes)
        await caller.send(caller.platform.hangup())
        async for message in caller.client:
            caller.platform.receive(message)
        assert far_side(caller).finished
        assert caller.platform.received_bytes == 0


async def test_nothing_is_played_while_the_platform_holds_the_caller() -> None:
    async with serving("genesys") as running, calling(running, "genesys") as caller:
        await caller.talk(0.1)
        await caller.send(far_side(caller).pause())
        await until(lambda: running.calls[0]._machine._desk.on_hold)
        caller.agent.say("Nobody hears this yet.")
        await caller.talk(0.5)
        assert caller.platform.received_bytes == 0


async def test_the_platform_keeps_the_caller_s_audio_while_the_agent_does_not_listen() -> None:
    async with serving("genesys") as running, calling(running, "genesys") as caller:
        await caller.talk(0.1)
        caller.agent.payload({"listen": False})
        await until(lambda: running.calls[0]._machine.deaf)
        caller.agent.say("Please enter the number of your card.")
        await caller.talk(0.5)
        assert far_side(caller).media(None) == []
        assert caller.platform.received_bytes == 800, "the agent is heard meanwhile"
        assert not running.calls[0]._machine._desk.on_hold
        caller.agent.payload({"listen": True})
        await until(lambda: not running.calls[0]._machine.deaf)
        await caller.talk(0.1)
        assert [one for _ in range(10) for one in far_side(caller).media(None)]


async def test_only_a_signed_upgrade_comes_in_and_only_once() -> None:
    async with serving("genesys", **PROOF) as running:
        who = identity("genesys")
        for wrong in (
            access(running, base64.b64encode(b"x").decode()),
            access(running, "", KEY),
            access(running, SECRET, "another"),
        ):
            with pytest.raises(InvalidStatus) as caught:
                async with dial(await found("genesys", wrong, who)):
                    pass
            assert caught.value.response.status_code == 401
        endpoint = await found("genesys", access(running), who)
        async with dial(endpoint):
            pass
        with pytest.raises(InvalidStatus) as caught:
            async with dial(endpoint):
                pass
        body = json.loads(caught.value.response.body or b"")
        assert body["error"]["code"] == "auth.replayed"


async def test_a_connector_s_id_may_follow_the_address() -> None:
    async with serving("genesys") as running:
        endpoint = await found("genesys", Access(running.gateway.url), identity("genesys"))
        async with dial(replace(endpoint, url=endpoint.url + "/billing")) as client:
            for message in endpoint.platform.open():
                await client.send(message)
            assert json.loads(await client.recv())["type"] == "opened"


async def test_a_probe_starts_no_agent() -> None:
    async with serving("genesys") as running:
        endpoint = await found("genesys", Access(running.gateway.url), identity("genesys"))
        (message,) = endpoint.platform.open()
        told = json.loads(message)
        told["parameters"] |= {"conversationId": NULL_ID, "participant": {"id": NULL_ID}}
        async with dial(endpoint) as client:
            await client.send(json.dumps(told))
            assert json.loads(await client.recv())["type"] == "opened"
            close = {**told, "seq": 2, "serverseq": 1, "type": "close"}
            await client.send(json.dumps({**close, "parameters": {"reason": "end"}}))
            assert json.loads(await client.recv())["type"] == "closed"
        await until(lambda: running.gateway.active == 0)
        assert not running.agents
