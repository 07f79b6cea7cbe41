"""AudioCodes over real sockets: streams, keys, the end in words, and a session that comes back."""

from __future__ import annotations

import json

import pytest
from websockets.exceptions import InvalidStatus

from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.audiocodes import AudioCodesPlatform
from tests.platforms.calling import Caller, dial, found, identity, serving
from tests.server.echo import until

CALL_ID = identity("audiocodes").call_id
TOKEN = "bot token"


def far_side(caller: Caller) -> AudioCodesPlatform:
    assert isinstance(caller.platform, AudioCodesPlatform)
    return caller.platform


@pytest.mark.parametrize("media_format", ["raw/lpcm16", "raw/mulaw"])
async def test_from_the_session_to_the_bot_s_hang_up(media_format: str) -> None:
    settings = {"auth_tokens": [TOKEN], "media_format": media_format}
    async with serving("audiocodes", **settings) as running:
        endpoint = await found(
            "audiocodes",
            Access(running.gateway.url, secret=TOKEN),
            identity("audiocodes", tier="gold"),
        )
        platform = AudioCodesPlatform(identity("audiocodes", tier="gold"), (media_format,))
        async with dial(endpoint) as client:
            caller = Caller(running, platform, client)
            await caller.send(platform.open())
            await caller.talk(0.3)
            await until(lambda: running.agents and caller.agent.inputs("variables"))
            assert caller.agent.inputs("variables") == [{"tier": "gold"}]
            caller.agent.payload({"sendDtmf": "12#"})
            caller.agent.say("One moment.")
            caller.agent.end(params={"intent": "billing"})
            await caller.talk()
            assert platform.accepted == media_format
            assert platform.received_bytes == 5 * platform.out_format.frame_bytes
            assert platform.pressed == "12#"
            assert platform.metadata == {"intent": "billing"}
            assert platform.told == {"hangupReason": "completed"}
        await until(lambda: running.ends(CALL_ID) == ["completed"], 10)


async def test_the_bot_transfers() -> None:
    async with serving("audiocodes") as running:
        endpoint = await found("audiocodes", Access(running.gateway.url), identity("audiocodes"))
        async with dial(endpoint) as client:
            caller = Caller(running, endpoint.platform, client)
            await caller.send(endpoint.platform.open())
            await caller.talk(0.2)
            await until(lambda: running.agents)
            number = {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}
            caller.agent.end(params=number)
            await caller.talk()
            assert far_side(caller).told["transferTarget"] == "tel:+15550123"
        await until(lambda: running.ends(CALL_ID) == ["transferred"], 10)


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_session_goes_on_over_another_socket(noticed: bool) -> None:
    """`noticed`: the gateway knows that the first is lost; else it hears it from the platform."""
    async with serving("audiocodes") as running:
        endpoint = await found("audiocodes", Access(running.gateway.url), identity("audiocodes"))
        platform = endpoint.platform
        assert isinstance(platform, AudioCodesPlatform)
        async with dial(endpoint) as first:
            caller = Caller(running, platform, first)
            await caller.send(platform.open())
            await caller.talk(0.2)
            await until(lambda: running.agents)
            caller.agent.say("One moment.")
            await caller.talk(0.5)
            assert platform.received_bytes == 5 * platform.out_format.frame_bytes
            if noticed:
                first.transport.abort()
                await until(lambda: running.calls[0]._line.gone)
            async with dial(endpoint) as second:
                caller = Caller(running, platform, second)
                await caller.send(platform.resume())
                await caller.talk(0.2)
                await first.wait_closed()
                caller.agent.say("Still here.", 2)
                caller.agent.end()
                # It does not take an id of a stream a second time.
                await caller.talk()
                assert platform.received_bytes == 10 * platform.out_format.frame_bytes
        await until(lambda: running.ends(CALL_ID) == ["completed"], 10)
        assert len(running.agents) == 1, "no second greeting"


async def test_a_session_that_is_not_known_is_refused_in_words() -> None:
    async with serving("audiocodes") as running:
        endpoint = await found("audiocodes", Access(running.gateway.url), identity("audiocodes"))
        platform = endpoint.platform
        assert isinstance(platform, AudioCodesPlatform)
        async with dial(endpoint) as client:
            for message in platform.resume():
                await client.send(message)
            assert json.loads(await client.recv())["type"] == "session.error"
            await client.wait_closed()
        assert not running.agents


async def test_a_connection_is_tried_without_a_call() -> None:
    async with serving("audiocodes") as running:
        endpoint = await found("audiocodes", Access(running.gateway.url), identity("audiocodes"))
        async with dial(endpoint) as client:
            await client.send('{"type":"connection.validate"}')
            assert json.loads(await client.recv()) == {
                "type": "connection.validated",
                "success": True,
            }
        assert not running.agents


async def test_only_the_bot_s_token_opens() -> None:
    async with serving("audiocodes", auth_tokens=[TOKEN]) as running:
        access = Access(running.gateway.url, secret="another")
        endpoint = await found("audiocodes", access, identity("audiocodes"))
        with pytest.raises(InvalidStatus) as caught:
            async with dial(endpoint):
                pass
        assert caught.value.response.status_code == 401
