"""What the agent says of a call travels with its transfer to a SIP address."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from xml.etree import ElementTree

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.dialect import CallRef, Hook, Request, RestRequest
from gateway.channels.dialects import DIALECTS
from gateway.channels.sip import (
    MAX_HEADERS_CHARS,
    USER_TO_USER,
    headers_of,
    is_sip,
    user_to_user,
    with_headers,
)
from gateway.platform_settings import PlatformsSettings

TARGET = "sip:desk@pbx.example"
UUI = "4a6f;encoding=hex"
HANDOFF = {"sipRefer": True, "xHeaders": {"X-Queue": "gold"}, "uuiHeaders": [UUI]}
METADATA = {"params": {"target": "moving house", "vip": True, "LIVE_AGENT_HANDOFF": HANDOFF}}
HEADERS = {"Queue": "gold", "target": "moving house", "vip": "true"}
PEM = (
    rsa.generate_private_key(public_exponent=65537, key_size=2048)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)


def test_text_numbers_and_truths_become_headers() -> None:
    params = {"intent": "billing", "X-Tier": 2, "a b/c": 1.5, "name": "Zoë", "none": None, "": "x"}
    assert headers_of(TARGET, {"params": {**params, "list": [1]}}) == {
        "intent": "billing",
        "Tier": "2",
        "a-b-c": "1.5",
        "name": "Zo%C3%AB",
    }
    assert headers_of("+15550123", {"params": params}) == {}, "a number has no headers"
    assert headers_of(TARGET, {}) == headers_of(TARGET, {"params": "x"}) == {}


def test_what_the_gateway_has_said_itself_is_no_header() -> None:
    assert headers_of(TARGET, {"params": {"ESCALATION_MESSAGE": "One moment.", "a": "b"}}) == {
        "a": "b"
    }


def test_headers_that_a_hand_off_names_come_first() -> None:
    named = {"x-case": 7, "X-case-2": "ü", "list": [1]}
    params = {"case": "another", "LIVE_AGENT_HANDOFF": {"xHeaders": named}, "tier": "gold"}
    assert headers_of(TARGET, {"params": params}) == {
        "case": "7",
        "case-2": "%C3%BC",
        "tier": "gold",
    }
    for odd in (None, {}, {"xHeaders": None}, {"xHeaders": ["X-a"]}):
        assert headers_of(TARGET, {"params": {"LIVE_AGENT_HANDOFF": odd}}) == {}


def test_what_one_application_tells_another_has_a_header_of_its_own() -> None:
    def told(headers: object) -> str:
        return user_to_user({"params": {"LIVE_AGENT_HANDOFF": {"uuiHeaders": headers}}})

    assert told([UUI, " b "]) == f"{UUI}, b"
    assert told(["x" * MAX_HEADERS_CHARS, "x", "y"]) == "x" * MAX_HEADERS_CHARS
    for odd in (None, UUI, [None, 7, "", "ü", "a\r\nEvil: 1"]):
        assert told(odd) == ""
    assert with_headers("+15550123", METADATA) == "+15550123"


def test_what_does_not_fit_is_left_out_and_the_rest_goes() -> None:
    params = {"long": "x" * MAX_HEADERS_CHARS, "short": "y"}
    assert headers_of(TARGET, {"params": params}) == {"short": "y"}


def test_an_address_keeps_its_own_query() -> None:
    assert with_headers(TARGET, {}) == TARGET
    one = {"params": {"a": "b c"}}
    assert with_headers(TARGET, one) == f"{TARGET}?X-a=b%20c"
    assert with_headers(f"{TARGET}?x=1", one) == f"{TARGET}?x=1&X-a=b%20c"


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none())))
def test_no_header_breaks_a_request(params: dict[str, Any]) -> None:
    headers = headers_of("SIPS:a@b", {"params": params})
    for name, text in headers.items():
        assert name.replace("-", "").isalnum()
        assert text.isascii()
        assert text.isprintable()
    assert sum(len(name) + len(text) for name, text in headers.items()) <= MAX_HEADERS_CHARS
    assert is_sip("sips:a@b")


# ---- by dialect: the REST request, and the page that it leads to

SETTINGS: dict[str, dict[str, Any]] = {
    "twilio": {"account": "AC1", "auth_tokens": ["t"]},
    "signalwire": {"account": "p", "api_secret": "t", "rest_url": "https://s.example"},
    "telnyx": {"api_secret": "key"},
    "vonage": {"account": "app", "api_secret": PEM},
    "plivo": {"account": "MA1", "auth_tokens": ["t"]},
    "jambonz": {"api_secret": "t"},
}


def asked(dialect: str) -> RestRequest:
    origin = {"public_origin": "https://v.example"}
    platforms = PlatformsSettings.model_validate({dialect: {**SETTINGS[dialect], **origin}})
    entry = DIALECTS[dialect]
    assert entry.rest is not None
    words = entry.rest(entry.settings(platforms))
    assert words is not None
    (request,) = words.transfer(CallRef("call-1"), TARGET, METADATA)
    return request


def page(dialect: str, url: str) -> bytes:
    """What our own webhook answers there."""
    entry = DIALECTS[dialect]
    parts = urlsplit(url)
    (webhook,) = [hook for hook in entry.webhooks if hook.pattern == parts.path]
    request = Request(parts.path, parts.query, parse_qs(parts.query), method="POST")
    return webhook.answer(Hook(entry.settings(PlatformsSettings()), request, str)).body


def test_twilio_carries_them_in_the_address() -> None:
    form = asked("twilio").form
    assert form is not None
    dialled = ElementTree.fromstring(form["Twiml"]).findtext("Dial/Sip")
    assert (
        dialled
        == f"{TARGET}?X-Queue=gold&X-target=moving%20house&X-vip=true&{USER_TO_USER}={quote(UUI)}"
    )


def test_signalwire_carries_them_in_the_address_that_its_page_dials() -> None:
    form = asked("signalwire").form
    assert form is not None
    dialled = ElementTree.fromstring(page("signalwire", form["Url"])).findtext("Dial/Sip")
    assert (
        dialled
        == f"{TARGET}?X-Queue=gold&X-target=moving%20house&X-vip=true&{USER_TO_USER}={quote(UUI)}"
    )


def test_telnyx_takes_a_list() -> None:
    body = asked("telnyx").json
    assert body["custom_headers"] == [
        {"name": "X-Queue", "value": "gold"},
        {"name": "X-target", "value": "moving house"},
        {"name": "X-vip", "value": "true"},
    ]
    assert body["sip_headers"] == [{"name": USER_TO_USER, "value": UUI}]


def test_vonage_takes_an_object_and_sets_the_prefix_itself() -> None:
    (connect,) = asked("vonage").json["destination"]["ncco"]
    (endpoint,) = connect["endpoint"]
    own = {USER_TO_USER: UUI}
    assert endpoint == {
        "type": "sip", "uri": TARGET, "headers": HEADERS, "standardHeaders": own,
    }  # fmt: skip


def test_plivo_takes_letters_and_digits() -> None:
    dial = ElementTree.fromstring(page("plivo", asked("plivo").json["aleg_url"])).find("Dial")
    assert dial is not None
    assert dial.attrib == {"sipHeaders": "Queue=gold,target=movinghouse,vip=true"}
    assert dial.findtext("User") == TARGET


def test_jambonz_takes_an_object() -> None:
    verbs = json.loads(page("jambonz", asked("jambonz").json["call_hook"]["url"]))
    assert verbs[0]["target"] == [{"type": "sip", "sipUri": TARGET}]
    headers = {f"X-{name}": text for name, text in HEADERS.items()}
    assert verbs[0]["headers"] == {**headers, USER_TO_USER: UUI}


@pytest.mark.parametrize("dialect", SETTINGS)
def test_each_request_names_the_call(dialect: str) -> None:
    assert "call-1" in asked(dialect).path
