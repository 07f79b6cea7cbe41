"""What the agent leaves at a call's end is found on the platform's side, dialect by dialect."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.notice_settings import NoticeSettings
from gateway.notices import Notices
from gateway.simulate.platforms import CHANNELS
from tests.platforms.calling import calling, identity, serving
from tests.platforms.rest_server import Asked, RestServer, rest_server
from tests.server.echo import until

TICKET = "T4711"
SECRET = "a secret of the operator"
NUMBER = "+15550123"
ENDINGS: dict[str, dict[str, Any]] = {
    "hangup": {"params": {"ticket": TICKET}},
    "number": {"params": {"ticket": TICKET, "PHONE_GATEWAY_TRANSFER": {"phoneNumber": NUMBER}}},
    "handoff": {"params": {"ticket": TICKET, "LIVE_AGENT_HANDOFF": True}},
}
PEM = (
    rsa.generate_private_key(public_exponent=65537, key_size=2048)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)


@dataclass(frozen=True)
class Row:
    """Where the data are found: `rest`, in the `words` of the dialect, or nowhere (``)."""

    hangup: str
    number: str
    handoff: str
    settings: dict[str, Any]
    variables: dict[str, str]


def row(hangup: str, number: str, handoff: str, **settings: Any) -> Row:
    variables = settings.pop("says", {})
    return Row(hangup, number, handoff, settings, variables)


def by_rest(hangup: str = "rest", number: str = "rest", handoff: str = "rest", **more: Any) -> Row:
    """A platform with a REST interface (its address is set by the test)."""
    rest = {"account": "a1", "api_secret": "s", "rest_url": "", **more}
    return row(hangup, number, handoff, **rest)


ONWARD = {"continue_url": "https://flows.example.com/next"}
TABLE = {
    "ces": row("words", "words", "words"),
    "genesys": row("words", "words", "words"),
    "audiocodes": row("words", "words", "words"),
    "audio_fork": row("words", "words", "words"),
    "audio_stream": row("words", "words", "words", controlled=True),
    "twilio": by_rest(**ONWARD),
    "signalwire": by_rest(**ONWARD),
    "plivo": by_rest(**ONWARD),
    "jambonz": by_rest(**ONWARD),
    "bandwidth": by_rest(api_key="id", **ONWARD),
    # An NCCO that connects has no place for them.
    "vonage": by_rest("rest", "", "rest", api_secret=PEM, **ONWARD),
    "telnyx": by_rest(),
    "asterisk": by_rest(stasis=True, says={"CALLER_CHANNEL": "17.1"}),
    # These platforms take nothing back: the notice has it.
    "sinch": row("", "", ""),
    "exotel": row("", "", ""),
    "infobip": row("", "", ""),
    "raw": row("", "", ""),
}


def test_the_table_has_every_dialect() -> None:
    assert TABLE.keys() == set(CHANNELS)


def spelled_out(asked: list[Asked]) -> str:
    """All that was asked, with quoted and encoded parts in the clear."""
    text = "\n".join(f"{one.path} {one.body}" for one in asked)
    for _ in range(3):
        text = unquote_plus(text)
    states = re.findall(r'_state":"([A-Za-z0-9+/ ]+=*)"', text)
    # A plus has become a blank by then.
    return text + "".join(base64.b64decode(s.replace(" ", "+")).decode() for s in states)


async def ended(dialect: str, settings: dict[str, Any], ending: str) -> tuple[str, str, Any]:
    """A call that the agent ends so: what REST was asked, what the socket was told, the notice."""
    async with rest_server() as server:
        if "rest_url" in settings:
            settings = {**settings, "rest_url": server.url}
        if dialect == "bandwidth":
            settings = {**settings, "token_url": f"{server.url}/token"}
            server.will(200, '{"access_token": "t"}')
        notices = noticing(server)
        variables = TABLE[dialect].variables
        async with (
            serving(dialect, notices=notices, **settings) as running,
            calling(running, dialect, **variables) as caller,
        ):
            caller.agent.end(**ENDINGS[ending])
            await caller.talk()
            words = "".join(caller.told)
            await until(lambda: running.gateway.active == 0)
        await notices.aclose()
        told = [one for one in server.asked if one.path == "/ended"]
        rest = [one for one in server.asked if one.path not in ("/ended", "/token")]
    assert len(told) == 1, "each end is told once"
    return spelled_out(rest), words, json.loads(told[0].body)


def noticing(server: RestServer) -> Notices:
    settings = {"url": f"{server.url}/ended", "secret": SECRET}
    return Notices(NoticeSettings(**settings), lambda call_id, _: call_id, lambda _: None)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dialect", TABLE)
async def test_what_the_agent_leaves_is_found(dialect: str, ending: str) -> None:
    rest, words, notice = await ended(dialect, TABLE[dialect].settings, ending)
    places = {"rest": TICKET in rest, "words": TICKET in words}
    where = getattr(TABLE[dialect], ending)
    assert places == {"rest": where == "rest", "words": where == "words"}
    assert notice["params"] == ENDINGS[ending]["params"]
    assert notice["dialect"] == dialect
    assert notice["call_id"] == identity(dialect).call_id or dialect == "ces"


@pytest.mark.parametrize("ending", ["hangup", "handoff"])
async def test_a_telnyx_call_by_texml_goes_on_at_the_page(ending: str) -> None:
    rest, _, _ = await ended("telnyx", {**TABLE["telnyx"].settings, **ONWARD}, ending)
    assert "/v2/texml/Accounts/" in rest
    assert f"{ONWARD['continue_url']}?action=" in rest
    assert f"ticket={TICKET}" in rest


@pytest.mark.parametrize("dialect", ["twilio", "signalwire", "plivo", "vonage", "bandwidth"])
async def test_without_a_page_to_go_on_at_a_call_ends_as_ever(dialect: str) -> None:
    settings = {k: v for k, v in TABLE[dialect].settings.items() if k != "continue_url"}
    rest, _, _ = await ended(dialect, settings, "hangup")
    assert "flows.example.com" not in rest
    assert any(word in rest for word in ("completed", "hangup", "/Call/"))


async def test_a_platform_that_refuses_the_data_still_ends_the_call() -> None:
    settings = TABLE["twilio"].settings
    async with rest_server() as server:
        server.will(400)
        async with (
            serving("twilio", **{**settings, "rest_url": server.url}) as running,
            calling(running, "twilio") as caller,
        ):
            caller.agent.end(**ENDINGS["hangup"])
            await caller.talk()
            await until(lambda: running.gateway.active == 0)
        first, second = server.asked
    assert "Url" in first.form
    assert second.form == {"Status": "completed"}


async def test_an_end_without_data_is_asked_for_as_ever() -> None:
    async with rest_server() as server:
        settings = {**TABLE["jambonz"].settings, "rest_url": server.url}
        async with (
            serving("jambonz", **settings) as running,
            calling(running, "jambonz") as caller,
        ):
            caller.agent.end(reason="done")
            await caller.talk()
            assert '{"type":"disconnect"}' in caller.told, "the verbs behind `listen` decide"
            await until(lambda: running.gateway.active == 0)
        assert server.asked == []
