"""Signatures, with Twilio's own validator as the oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict
from twilio.request_validator import RequestValidator

from gateway.channels.twilio_signature import genuine, sign, spellings

URL = "https://voice.example.com/twilio/voice"
FORM = {"CallSid": ["CA1"], "From": ["+1555"], "To": ["+1666"], "Empty": [""]}


def oracle(token: str, url: str, form: dict[str, list[str]]) -> str:
    fields = MultiDict((name, value) for name, values in form.items() for value in values)
    return str(RequestValidator(token).compute_signature(url, fields))


def test_a_known_websocket_signature() -> None:
    assert sign("12345", "wss://example.com/media", {}) == "7PR3qMkpDyEJtMrVOY/LDyNq8J8="


@given(
    st.text(min_size=1, max_size=20),
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.lists(st.text(max_size=5), min_size=1, max_size=3),
        max_size=4,
    ),
)
def test_forms_are_signed_as_the_platform_does(token: str, form: dict[str, list[str]]) -> None:
    assert sign(token, URL, form) == oracle(token, URL, form)


def test_the_platform_s_own_spellings_of_an_address_are_accepted() -> None:
    for signed in (
        URL,
        "https://voice.example.com:443/twilio/voice",
        "https://voice.example.com/twilio/voice/",
        "wss://voice.example.com/twilio/voice",
    ):
        signature = oracle("token", signed, FORM)
        assert genuine(["old", "token"], URL, FORM, signature)
        assert not genuine(["other"], URL, FORM, signature)


def test_a_shared_key_s_sha_256_signature_is_accepted() -> None:
    fields = MultiDict((name, values[0]) for name, values in FORM.items())
    signature = RequestValidator("key").compute_signature(URL, fields, "HMAC_SHA256")
    assert genuine(["key"], URL, FORM, signature)


def test_another_address_form_or_scheme_is_not_accepted() -> None:
    signature = sign("token", URL, FORM)
    assert not genuine(["token"], URL + "x", FORM, signature)
    assert not genuine(["token"], URL, {**FORM, "From": ["+1999"]}, signature)
    assert not genuine(["token"], URL.replace("https", "http"), FORM, signature)
    assert not genuine(["token"], URL, FORM, "")
    assert not genuine(["token"], URL, FORM, "é")
    assert not genuine([], URL, FORM, signature)


def test_a_port_of_its_own_and_an_ipv6_host_stay_in_the_address() -> None:
    assert all(":8443/" in spelled for spelled in spellings("https://h:8443/a"))
    assert "https://[::1]:443/a" in spellings("https://[::1]/a")
