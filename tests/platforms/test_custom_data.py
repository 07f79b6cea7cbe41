"""Data of the platform become session variables under the names that the operator gives them."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from gateway.channels.base import Started
from gateway.channels.dialect import Hook, Opening, Request
from gateway.channels.dialects import DIALECTS
from gateway.platform_settings import ExotelSettings, PlatformsSettings
from gateway.simulate.platforms import CHANNELS
from tests.platforms.calling import calling, serving
from tests.server.echo import until

NATIVE = "ces"
"""Its clients name the session's variables themselves."""


@pytest.mark.parametrize("dialect", sorted(set(CHANNELS) - {NATIVE}))
async def test_custom_data_are_session_variables(dialect: str) -> None:
    async with (
        serving(dialect, variables={"level": "tier"}) as running,
        calling(running, dialect, level="gold") as caller,
    ):
        talking = asyncio.create_task(caller.talk())
        await until(lambda: caller.agent.inputs("variables"))
        assert caller.agent.inputs("variables")[0]["tier"] == "gold"
        caller.agent.end()
        await talking


# ---- fields of the webhook that the operator has named come back with the socket

FIELDS = {"CallSid": "c1", "CallUUID": "c1", "uuid": "c1", "call_sid": "c1", "level": "gold"}
EVENT = {
    "data": {
        "event_type": "call.initiated",
        "payload": {"call_control_id": "c1", "direction": "incoming", "level": "gold"},
    }
}


@pytest.mark.parametrize(
    ("pattern", "body"),
    [
        ("/twilio/voice", None),
        ("/signalwire/voice", None),
        ("/telnyx/texml", None),
        ("/telnyx/call-control", EVENT),
        ("/plivo/answer", None),
        ("/exotel/voice", None),
        ("/vonage/answer", FIELDS),
        ("/jambonz/voice", FIELDS),
        ("/bandwidth/voice", {"callId": "c1", "level": "gold"}),
        ("/sinch/voice", {"event": "ice", "callid": "c1", "level": "gold"}),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_named_fields_of_a_webhook_go_along(
    pattern: str, body: dict[str, Any] | None, named: bool
) -> None:
    entry = DIALECTS[pattern.split("/")[1]]
    (webhook,) = [hook for hook in entry.webhooks if hook.pattern == pattern]
    variables = {"level": "tier"} if named else {}
    platforms = PlatformsSettings.model_validate({entry.name: {"variables": variables}})
    form = {name: [value] for name, value in FIELDS.items()} if body is None else {}
    request = Request(pattern, form=form, body=orjson.dumps(body or {}), method="POST")
    made = webhook.answer(Hook(entry.settings(platforms), request, lambda _: "wss://h/t"))
    told = made.body + b"".join(orjson.dumps(one.json) for one in made.requests)
    assert (b"gold" in told) is named


def test_what_exotel_was_given_in_the_address_comes_back_in_the_upgrade() -> None:
    channel = DIALECTS["exotel"].open(
        Opening(ExotelSettings(), Request("", query={"sample-rate": ["8000"], "level": ["gold"]}))
    )
    start = {"call_sid": "c1", "stream_sid": "s1", "custom_parameters": {"more": "1"}}
    (event,) = channel.receive(orjson.dumps({"event": "start", "start": start}).decode())
    assert isinstance(event, Started)
    assert event.custom == {"level": "gold", "more": "1"}
