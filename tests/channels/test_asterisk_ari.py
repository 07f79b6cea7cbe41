"""ARI's requests, and when there are none."""

from __future__ import annotations

from typing import Any

from gateway.channels.asterisk_ari import AsteriskAri, rest
from gateway.channels.dialect import Basic, CallRef, RestRequest
from gateway.platform_settings import AsteriskSettings

CALL = CallRef("1748.12", "1748.12", custom={"CALLER_CHANNEL": "1748/11 a"})


def ari(**over: Any) -> AsteriskAri:
    settings = {"rest_url": "http://ast:8088/", "account": "voice", "api_secret": "s", **over}
    found = rest(AsteriskSettings(**settings))
    assert found is not None
    return found


def test_it_needs_address_user_and_secret() -> None:
    assert rest(AsteriskSettings()) is None
    assert rest(AsteriskSettings(account="voice", api_secret="s")) is None  # type: ignore[arg-type]
    assert ari().base_url == "http://ast:8088"
    assert ari().auth(0.0) == Basic("voice", "s")


def test_hang_up_ends_the_callers_channel_else_our_own() -> None:
    assert ari().hangup(CALL, {}) == [
        RestRequest("DELETE", "/ari/channels/1748%2F11%20a", gone=(404,))
    ]
    assert ari().hangup(CallRef("1748.12"), {})[0].path == "/ari/channels/1748.12"


def test_a_transfer_redirects_to_endpoints_and_goes_on_with_extensions() -> None:
    def paths(target: str, **over: Any) -> list[str]:
        return [request.path for request in ari(**over).transfer(CALL, target, {})]

    caller = "/ari/channels/1748%2F11%20a"
    assert paths("PJSIP/200") == [f"{caller}/redirect?endpoint=PJSIP%2F200"]
    assert paths("sip:a@b") == [f"{caller}/redirect?endpoint=PJSIP%2Fsip%3Aa%40b"]
    assert paths("200") == [f"{caller}/continue?context=default&extension=200"]
    assert paths("tel:+1", transfer_context="out") == [
        f"{caller}/continue?context=out&extension=%2B1"
    ]
    assert paths("") == [f"{caller}/continue"]


def test_keys_go_to_the_callers_leg() -> None:
    (request,) = ari().send_dtmf(CALL, "12#")
    assert (request.method, request.path) == (
        "POST",
        "/ari/channels/1748%2F11%20a/dtmf?dtmf=12%23",
    )


def test_without_the_callers_channel_nothing_can_be_moved() -> None:
    assert ari().transfer(CallRef("1748.12"), "200", {}) == []
    assert ari().send_dtmf(CallRef("1748.12"), "1") == []
