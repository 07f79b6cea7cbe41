"""A caller finds its websocket as the platform would: by webhook, or by the well-known path."""

from __future__ import annotations

import aiohttp
import pytest
from twilio.request_validator import RequestValidator

from gateway.errors import AdmissionError, RuntimeFailure, ScenarioError
from gateway.simulate.platforms import side
from gateway.simulate.platforms.access import Access, refused, unreachable
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.twilio import TwilioPlatform
from gateway.simulate.platforms.xml_answer import stream_of
from tests.simulate.loopback import serving

IDENTITY = Identity("CA" + "1" * 32, "+15550100", "+15550199", {"customer_id": 4711})


async def test_the_webhook_is_posted_and_signed_as_twilio_does() -> None:
    async with serving() as server, aiohttp.ClientSession() as http:
        endpoint = await side("twilio").find(server.access, IDENTITY, http)
        assert endpoint.url == server.access.websocket("/media")
        (form,) = server.forms
        assert (form["CallSid"], form["From"], form["To"]) == (
            IDENTITY.call_id,
            "+15550100",
            "+15550199",
        )
        url = server.access.http("/twilio/voice")
        signature = server.headers[0]["X-Twilio-Signature"]
        assert RequestValidator("12345").validate(url, form, signature)
        assert isinstance(endpoint.platform, TwilioPlatform)
        assert '"from":"+1"' in str(endpoint.platform.open()[1])
        assert '"customer_id":"4711"' in str(endpoint.platform.open()[1])


async def test_the_native_dialect_has_its_path_and_its_token() -> None:
    async with aiohttp.ClientSession() as http:
        access = Access("https://voice.example.com/", token="secret")
        endpoint = await side("ces").find(access, IDENTITY, http)
    assert endpoint.url.startswith("wss://voice.example.com/ws/google.cloud.ces.v1.")
    assert endpoint.headers == {"Authorization": "Bearer secret"}


async def test_a_refusal_keeps_its_status() -> None:
    async with serving(refuse=503) as server, aiohttp.ClientSession() as http:
        with pytest.raises(AdmissionError, match="503: full") as caught:
            await side("twilio").find(server.access, IDENTITY, http)
    assert caught.value.status == 503


async def test_nobody_there() -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(RuntimeFailure, match=r"runtime\.unreachable") as caught:
            await side("twilio").find(Access("http://127.0.0.1:1"), IDENTITY, http)
    assert "voice-gateway serve" in str(caught.value.hint)


async def test_tls_where_http_is_spoken_is_said_so() -> None:
    async with serving() as server, aiohttp.ClientSession() as http:
        access = Access(server.access.url.replace("http", "https"))
        with pytest.raises(RuntimeFailure) as caught:
            await side("twilio").find(access, IDENTITY, http)
    assert "plain HTTP" in str(caught.value.hint)


def test_an_answer_that_leads_elsewhere_is_told_without_its_token() -> None:
    error = unreachable(
        "wss://voice.example.com/twilio/media/TOKEN", OSError("no such name"), "http://127.0.0.1:1"
    )
    assert "leads to voice.example.com" in str(error.hint)
    assert "server.public_origin" in str(error.hint)
    assert "TOKEN" not in error.lines()


def test_a_refusal_gives_the_servers_reason_and_way_out() -> None:
    body = (
        b'{"error": {"code": "auth.signature", "message": "it does not fit", "hint": "check it"}}'
    )
    error = refused("the webhook", 403, body)
    assert (error.code, error.status) == ("admission.refused", 403)
    assert error.message == "the webhook answered 403: auth.signature: it does not fit"
    assert str(error.hint).startswith("check it; ")
    assert "--secret" in str(error.hint)
    assert refused("the socket", 503, body).hint == "check it"


@pytest.mark.parametrize("body", [b"", b"no", b"[]", b'{"error": "no"}', b'{"error": {}}', b"\xff"])
def test_a_refusal_in_other_words_is_told_all_the_same(body: bytes) -> None:
    assert refused("the socket", 502, body).message.startswith("the socket answered 502: ")


@pytest.mark.parametrize(
    ("key", "secret", "header"),
    [("", "", None), ("", "s", "Bearer s"), ("u", "s", "Basic dTpz"), ("u", "", None)],
)
def test_credentials_are_basic_with_a_key_and_bearer_without(
    key: str, secret: str, header: str | None
) -> None:
    told = Access("http://127.0.0.1:1", secret=secret, key=key).credentials
    assert told.get("Authorization") == header


async def test_an_unknown_dialect() -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(ScenarioError, match="pigeon"):
            await side("pigeon").find(Access("http://127.0.0.1:1"), IDENTITY, http)


@pytest.mark.parametrize("answer", [b"", b"<", b"<Response/>", b"hello"])
def test_an_answer_that_connects_nothing(answer: bytes) -> None:
    with pytest.raises(RuntimeFailure, match=r"protocol\.twiml"):
        stream_of(answer)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ws://host", "http://"])
def test_what_is_no_servers_address(url: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.url"):
        Access(url)
