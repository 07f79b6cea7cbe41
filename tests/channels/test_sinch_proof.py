"""Signed callbacks of Sinch: the published vector, what is covered, once, in time."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.dialect import Request
from gateway.channels.sinch_proof import SinchProof, sign
from gateway.errors import AuthError, ConfigError
from gateway.platform_settings import SinchSettings

KEY = "669E367E-6BBA-48AB-AF15-266871C28135"
SECRET = "BeIukql3pTKJ8RGL5zo0DA=="
STAMP = "2014-09-24T10:59:41Z"
NOW_S = datetime(2014, 9, 24, 10, 59, 41, tzinfo=UTC).timestamp()
PATH = "/sinch/callback/ace"
BODY = (
    b'{"event":"ace","callid":"822aa4b7-05b4-4d83-87c7-1f835ee0b6f6_257",'
    b'"timestamp":"2014-09-24T10:59:41Z","version":1}'
)
PUBLISHED = "Tg6fMyo8mj9pYfWQ9ssbx3Tc1BNC87IEygAfLbJqZb4="


def proof(**over: Any) -> SinchProof:
    return SinchProof(SinchSettings(**{"api_key": KEY, "api_secret": SECRET, **over}))


def request(
    authorization: str = f"application {KEY}:{PUBLISHED}",
    *,
    path: str = PATH,
    body: bytes = BODY,
    stamp: str = STAMP,
    content_type: str = "application/json",
    method: str = "POST",
    origin: str = "",
) -> Request:
    headers = {
        "authorization": authorization,
        "x-timestamp": stamp,
        "content-type": content_type,
    }
    return Request(path, headers=headers, body=body, method=method, origin=origin)


def refusal(asked: Request, now_s: float = NOW_S, **over: Any) -> tuple[str, int]:
    with pytest.raises(AuthError) as caught:
        proof(**over).check(asked, now_s)
    return caught.value.code, caught.value.status


def test_the_published_vector_is_genuine() -> None:
    proof().check(request(), NOW_S)
    proof().check(request(f"Application {KEY}:{PUBLISHED}"), NOW_S)


@pytest.mark.parametrize(
    "asked",
    [
        request(path="/sinch/voice"),
        request(body=BODY + b" "),
        request(stamp="2014-09-24T10:59:42Z"),
        request(content_type="application/json; charset=utf-8"),
        request(method="GET"),
        request(f"application other:{PUBLISHED}"),
        request(f"application {KEY}:"),
        request(f"application {KEY}:{PUBLISHED[:-2]}A="),
        request("application"),
        request("application \xe9:\xe9"),
    ],
)
def test_everything_is_covered(asked: Request) -> None:
    assert refusal(asked) == ("auth.signature", 401)


def test_below_a_path_of_the_public_origin() -> None:
    asked = request(path="/callback/ace", origin="https://voice.example.com/sinch")
    proof().check(asked, NOW_S)


@pytest.mark.parametrize("late_s", [-300, 300])
def test_clocks_may_differ_by_minutes(late_s: int) -> None:
    proof().check(request(), NOW_S + late_s)


@pytest.mark.parametrize("late_s", [-301, 301])
def test_outside_its_window_a_signature_is_worth_nothing(late_s: int) -> None:
    assert refusal(request(), NOW_S + late_s) == ("auth.expired", 401)


def test_a_time_with_many_decimals_counts_and_one_that_is_none_does_not() -> None:
    secret = base64.b64decode(SECRET)
    for stamp, sound in (("2014-09-24T10:59:41.2729234Z", True), ("yesterday", False)):
        made = sign(secret, "POST", BODY, "application/json", stamp, PATH)
        asked = request(f"application {KEY}:{made}", stamp=stamp)
        if sound:
            proof().check(asked, NOW_S)
        else:
            assert refusal(asked) == ("auth.expired", 401)


def test_a_signature_counts_once() -> None:
    guarded = proof()
    guarded.check(request(), NOW_S)
    with pytest.raises(AuthError) as caught:
        guarded.check(request(), NOW_S + 1)
    assert caught.value.code == "auth.replayed"


def test_without_the_application_no_signature_is_genuine() -> None:
    empty = sign(b"", "POST", BODY, "application/json", STAMP, PATH)
    basic = {"api_key": "", "api_secret": None, "username": "u", "password": "p"}
    assert refusal(request(f"application :{empty}"), **basic) == ("auth.signature", 401)


def test_sockets_that_bring_a_header_are_opened_by_it() -> None:
    pair = base64.b64encode(b"u:p").decode()
    proof(username="u", password="p").check(request(f"Basic {pair}"), NOW_S)
    assert refusal(request(""), username="u", password="p") == ("auth.missing", 401)
    assert refusal(request("")) == ("auth.missing", 401), "headerless sockets need a token"


def test_what_is_configured() -> None:
    assert proof().configured
    assert proof(api_key="", auth_tokens=["t"]).configured
    assert not proof(api_secret=None).configured


def test_a_secret_that_is_not_base64_is_told_at_the_start() -> None:
    with pytest.raises(ConfigError) as caught:
        proof(api_secret="no base64!")
    assert caught.value.code == "config.sinch_secret"


@given(st.text(), st.text())
def test_nothing_but_a_refusal_escapes(authorization: str, stamp: str) -> None:
    with pytest.raises(AuthError):
        proof().check(request(authorization, stamp=stamp), NOW_S)
    with pytest.raises(AuthError):
        proof().check(request(f"application {authorization}", stamp=stamp), NOW_S)
