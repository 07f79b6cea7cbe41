"""Exotel, Infobip and mod_audio_stream over real sockets: a close is their end."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from gateway.errors import AdmissionError
from gateway.simulate.platforms.access import Access
from tests.platforms.calling import calling, dial, found, identity, said_goodbye, serving
from tests.server.echo import until

PROOF = {"username": "key", "password": "secret"}
ALL = pytest.mark.parametrize(
    ("dialect", "settings"),
    [("exotel", {"rate_hz": 8000}), ("exotel", {"rate_hz": 24000}), ("infobip", {})],
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


@pytest.mark.parametrize("dialect", ["exotel", "infobip"])
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


@pytest.mark.parametrize("dialect", ["exotel", "infobip"])
async def test_the_caller_hangs_up(dialect: str) -> None:
    call_id = identity(dialect).call_id
    async with serving(dialect) as running:
        async with calling(running, dialect) as caller:
            await caller.send(caller.platform.hangup())
            await caller.client.close()
            await said_goodbye(running)
        await until(lambda: running.ends(call_id) == ["remote_hangup"], 10)
