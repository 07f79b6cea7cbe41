"""REST requests reach a real HTTP server, once where it matters, and end in bounded time."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import pytest

from gateway.channels.dialect import CallRef, ClientCredentials, RestRequest
from gateway.channels.twilio_rest import TwilioRest, rest
from gateway.errors import RestError
from gateway.platform_settings import TwilioSettings
from gateway.platforms import rest as module
from gateway.platforms.rest import RestControl
from tests.platforms.rest_server import RestServer, rest_server

CALL = CallRef("CA1", account="AC-of-the-call")


@pytest.fixture
async def server() -> AsyncIterator[RestServer]:
    async with rest_server() as running:
        yield running


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(module, "PAUSE_S", 0.0)


def words(server: RestServer, **over: Any) -> TwilioRest:
    settings = {"account": "AC1", "auth_tokens": ["secret"], "rest_url": server.url + "/", **over}
    return TwilioRest(TwilioSettings(**settings))


@pytest.fixture
async def control(server: RestServer) -> AsyncIterator[RestControl]:
    control = RestControl(words(server))
    yield control
    await control.aclose()


# ---- Twilio's words


async def test_a_hang_up_completes_the_call(server: RestServer, control: RestControl) -> None:
    await control.hangup(CALL, {})
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/2010-04-01/Accounts/AC1/Calls/CA1.json")
    assert asked.form == {"Status": "completed"}
    assert base64.b64decode(asked.authorization.removeprefix("Basic ")) == b"AC1:secret"


@pytest.mark.parametrize(
    ("target", "dial"),
    [
        ("+15550123", "<Dial>+15550123</Dial>"),
        ("tel:+15550123", "<Dial>+15550123</Dial>"),
        ("sip:desk@example.com", "<Dial><Sip>sip:desk@example.com</Sip></Dial>"),
        ("<&>", "<Dial>&lt;&amp;&gt;</Dial>"),
    ],
)
async def test_a_transfer_dials_in_place_of_the_stream(
    server: RestServer, control: RestControl, target: str, dial: str
) -> None:
    await control.transfer(CALL, target, {})
    assert server.asked[0].form == {"Twiml": f"<Response>{dial}</Response>"}


async def test_a_transfer_to_nobody_is_no_request(server: RestServer, control: RestControl) -> None:
    with pytest.raises(RestError) as caught:
        await control.transfer(CALL, "", {})
    assert caught.value.code == "rest.unable"
    assert not server.asked


async def test_keys_are_played(server: RestServer, control: RestControl) -> None:
    await control.send_dtmf(CALL, "12#")
    play = ElementTree.fromstring(server.asked[0].form["Twiml"]).find("Play")
    assert play is not None
    assert play.get("digits") == "12#"


async def test_an_api_key_and_odd_ids(server: RestServer) -> None:
    control = RestControl(words(server, account="", api_key="SK1", api_secret="other"))
    await control.hangup(CallRef("CA/../x", account="AC 9"), {})
    await control.aclose()
    [asked] = server.asked
    assert asked.path == "/2010-04-01/Accounts/AC%209/Calls/CA%2F..%2Fx.json"
    assert base64.b64decode(asked.authorization.removeprefix("Basic ")) == b"SK1:other"


def test_without_credentials_there_is_no_interface() -> None:
    assert rest(TwilioSettings()) is None
    assert rest(TwilioSettings(account="AC1")) is None
    assert rest(TwilioSettings(account="AC1", auth_tokens=["t"])) is not None
    assert TwilioRest(TwilioSettings(auth_tokens=["t"])).base_url == "https://api.twilio.com"


# ---- sending


async def test_a_call_that_has_ended_already_is_a_success(
    server: RestServer, control: RestControl
) -> None:
    server.will(404, '{"code": 20404}')
    await control.hangup(CALL, {})
    await control.hangup(CALL, {})
    assert len(server.asked) == 2


async def test_trouble_that_passes_is_sat_out(server: RestServer, control: RestControl) -> None:
    server.will(503)
    server.will(429, "", Retry_After="0")
    await control.hangup(CALL, {})
    assert len(server.asked) == 3


async def test_attempts_are_bounded(server: RestServer, control: RestControl) -> None:
    for _ in range(9):
        server.will(500)
    with pytest.raises(RestError, match="500"):
        await control.hangup(CALL, {})
    assert len(server.asked) == module.ATTEMPTS


@pytest.mark.parametrize("status", [301, 400, 401, 403, 422])
async def test_a_refusal_is_final_and_no_redirect_is_followed(
    server: RestServer, control: RestControl, status: int
) -> None:
    server.will(status, "", Location="/elsewhere")
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    assert caught.value.code == "rest.refused"
    assert len(server.asked) == 1


async def test_nobody_there() -> None:
    settings = TwilioSettings(account="A", auth_tokens=["t"], rest_url="http://127.0.0.1:1")
    control = RestControl(TwilioRest(settings))
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    await control.aclose()
    assert caught.value.code == "rest.unreachable"


async def test_a_platform_that_does_not_answer_is_given_up(server: RestServer) -> None:
    server.hold = asyncio.Event()
    control = RestControl(words(server), deadline_s=0.2)
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    await control.aclose()
    assert caught.value.code == "rest.timeout"


async def test_who_asked_may_be_cancelled_the_hang_up_goes_on(
    server: RestServer, control: RestControl
) -> None:
    server.hold = asyncio.Event()
    server.will(503)
    asking = asyncio.create_task(control.hangup(CALL, {}))
    await server.arrived.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    server.hold.set()
    await control.aclose()
    assert len(server.asked) == 2, "trouble that passes is still sat out"


async def test_closing_waits_for_what_is_under_way(server: RestServer) -> None:
    control = RestControl(words(server))
    asking = asyncio.create_task(control.hangup(CALL, {}))
    await server.arrived.wait()
    await control.aclose()
    await asking


# ---- other platforms' needs


class Words:
    """Requests as they are given."""

    def __init__(self, server: RestServer, *requests: RestRequest, oauth: bool = False) -> None:
        self.base_url = server.url
        self._requests = requests
        self._oauth = oauth

    def auth(self, now_s: float) -> ClientCredentials | None:
        if not self._oauth:
            return None
        return ClientCredentials(self.base_url + "/token", "id", "hush")

    def hangup(self, call: CallRef, metadata: Any) -> tuple[RestRequest, ...]:
        return self._requests

    def transfer(self, call: CallRef, target: str, metadata: Any) -> tuple[RestRequest, ...]:
        return self._requests

    def send_dtmf(self, call: CallRef, digits: str) -> tuple[RestRequest, ...]:
        return self._requests


async def test_several_requests_are_sent_in_order_as_json(server: RestServer) -> None:
    control = RestControl(
        Words(server, RestRequest("PUT", "/one", json={"ü": 1}), RestRequest("DELETE", "/two"))
    )
    await control.hangup(CALL, {})
    await control.aclose()
    assert [(a.method, a.path, a.body) for a in server.asked] == [
        ("PUT", "/one", '{"ü":1}'),
        ("DELETE", "/two", ""),
    ]
    assert server.asked[0].authorization == ""


def extras() -> list[RestRequest]:
    return [RestRequest("POST", f"/{n}", repeatable=False, needed=False) for n in (1, 2)]


@pytest.mark.parametrize("status", [409, 503])
async def test_what_is_not_needed_is_left_out_where_it_is_refused(
    server: RestServer, status: int
) -> None:
    server.will(status)
    control = RestControl(Words(server, *extras(), RestRequest("DELETE", "/call")))
    await control.hangup(CALL, {})
    await control.aclose()
    assert [one.path for one in server.asked] == ["/1", "/2", "/call"]


async def test_where_the_platform_does_not_answer_only_what_is_needed_is_tried(
    server: RestServer,
) -> None:
    server.hold = asyncio.Event()
    words = Words(server, *extras(), RestRequest("DELETE", "/call", repeatable=False))
    control = RestControl(words, timeout_s=0.05)
    with pytest.raises(RestError, match="cannot be reached"):
        await control.hangup(CALL, {})
    await control.aclose()
    assert [one.path for one in server.asked] == ["/1", "/call"]


async def test_what_must_not_be_done_twice_is_not_repeated(server: RestServer) -> None:
    server.will(500)
    control = RestControl(Words(server, RestRequest("POST", "/keys", repeatable=False)))
    with pytest.raises(RestError):
        await control.send_dtmf(CALL, "1")
    await control.aclose()
    assert len(server.asked) == 1


async def test_an_error_that_says_that_the_call_is_over_is_a_success(server: RestServer) -> None:
    server.will(422, '{"errors":[{"code":"90018"}]}')
    control = RestControl(Words(server, RestRequest("POST", "/x", gone_words=('"90018"',))))
    await control.hangup(CALL, {})
    await control.aclose()


async def test_an_answer_in_pieces_is_read_to_its_end(server: RestServer) -> None:
    server.in_pieces = True
    server.will(200, '{"access_token": "first", "expires_in": 100}')
    server.will(422, '{"errors":[{"code":"90018"}]}')
    over = RestRequest("POST", "/x", gone_words=('"90018"',))
    control = RestControl(Words(server, over, oauth=True))
    await control.hangup(CALL, {})
    await control.aclose()
    assert [a.authorization for a in server.asked[1:]] == ["Bearer first"]


async def test_of_a_long_answer_only_the_beginning_is_read(server: RestServer) -> None:
    server.will(422, " " * module.MAX_ANSWER_BYTES + '"90018"')
    over = RestRequest("POST", "/x", gone_words=('"90018"',))
    control = RestControl(Words(server, over))
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    await control.aclose()
    assert caught.value.code == "rest.refused"


async def test_a_token_is_fetched_once_kept_and_renewed(server: RestServer) -> None:
    now_s = [1000.0]
    control = RestControl(
        Words(server, RestRequest("POST", "/x"), oauth=True), wall_clock=lambda: now_s[0]
    )
    server.will(200, '{"access_token": "first", "expires_in": 100}')
    await control.hangup(CALL, {})
    await control.hangup(CALL, {})
    assert [a.path for a in server.asked] == ["/token", "/x", "/x"]
    assert server.asked[0].form == {"grant_type": "client_credentials"}
    assert {a.authorization for a in server.asked[1:]} == {"Bearer first"}
    now_s[0] += 80.0
    server.will(200, '{"access_token": "second"}')
    await control.hangup(CALL, {})
    assert server.asked[-1].authorization == "Bearer second"
    await control.aclose()


async def test_a_busy_token_server_is_asked_again_whatever_the_request(server: RestServer) -> None:
    server.will(503)
    server.will(429)
    server.will(200, '{"access_token": "late"}')
    once = RestRequest("POST", "/keys", repeatable=False)
    control = RestControl(Words(server, once, oauth=True))
    await control.send_dtmf(CALL, "1")
    await control.aclose()
    assert [a.path for a in server.asked] == ["/token", "/token", "/token", "/keys"]
    assert server.asked[-1].authorization == "Bearer late"


async def test_a_token_server_that_stays_busy_is_given_up(server: RestServer) -> None:
    for _ in range(3):
        server.will(503)
    control = RestControl(Words(server, RestRequest("POST", "/x"), oauth=True))
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    await control.aclose()
    assert caught.value.code == "rest.token"
    assert [a.path for a in server.asked] == ["/token"] * 3


async def test_a_token_withdrawn_before_its_time_is_fetched_anew(server: RestServer) -> None:
    control = RestControl(Words(server, RestRequest("POST", "/x"), oauth=True))
    server.will(200, '{"access_token": "first"}')
    server.will(401)
    server.will(200, '{"access_token": "second"}')
    await control.hangup(CALL, {})
    await control.aclose()
    assert [a.path for a in server.asked] == ["/token", "/x", "/token", "/x"]
    assert server.asked[-1].authorization == "Bearer second"


async def test_an_answer_that_is_no_token(server: RestServer) -> None:
    server.will(200, "<html>")
    control = RestControl(Words(server, RestRequest("POST", "/x"), oauth=True))
    with pytest.raises(RestError) as caught:
        await control.hangup(CALL, {})
    await control.aclose()
    assert caught.value.code == "rest.token"
