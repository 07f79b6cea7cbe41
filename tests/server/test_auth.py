"""Who is let in, and that nothing is open by accident."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from twilio.request_validator import RequestValidator
from websockets.exceptions import InvalidStatus

from gateway.channels.dialect import Request
from gateway.config import Settings, load
from gateway.errors import AuthError, ConfigError
from gateway.server.auth import Caller, Gate, check_exposure, host_name, is_loopback
from gateway.server.tokens import MediaTokens
from tests.server.conftest import Serve
from tests.server.echo import EchoCalls, until
from tests.server.wire import (
    NATIVE,
    TWILIO_START,
    error_code,
    media_path,
    request,
    start_native,
    websocket,
)

LOCAL = Caller(address="127.0.0.1", host="localhost:8080")
ORIGIN = "https://voice.example.com"
SIGNED: dict[str, Any] = {
    "platforms.twilio.auth_tokens": ["primary", "secondary"],
    "server.public_origin": ORIGIN,
}


def settings(**over: Any) -> Settings:
    return load(overrides=over)


def gate(**over: Any) -> Gate:
    return Gate(settings(**over), MediaTokens(None, 60))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "localhost", "LOCALHOST", "::1", "[::1]", "::ffff:127.0.0.1"]
)
def test_loopback_hosts(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "localhost.example.com", "x"])
def test_hosts_that_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_host_headers() -> None:
    assert host_name("Voice.example.com:443") == "voice.example.com"
    assert host_name("[::1]:8080") == "::1"
    for malformed in ("[", "[1:2]", "evil.example.com@localhost", "localhost#.example.com", ""):
        assert host_name(malformed) == ""


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"server": {"host": "0.0.0.0"}}, "config.open_server"),
        ({"server": {"host": "0.0.0.0"}, "auth": {"none": True}}, "config.open_server"),
        ({"auth": {"none": True, "tokens": ["t"]}}, "config.auth_conflict"),
        ({"platforms": {"twilio": {"auth_tokens": ["t"]}}}, "config.public_origin"),
        ({"server": {"tls_cert": "/x"}}, "config.tls"),
    ],
)
def test_settings_that_would_be_open_or_contradict_are_refused(
    over: dict[str, Any], code: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_exposure(settings(**over))
    assert caught.value.code == code
    assert code == "config.tls" or caught.value.hint


@pytest.mark.parametrize(
    "over",
    [
        {},
        {"auth": {"none": True}},
        {"server": {"host": "0.0.0.0"}, "auth": {"tokens": ["t"]}},
        {"server": {"host": "0.0.0.0"}, "auth": {"none": True, "allow_open": True}},
    ],
)
def test_settings_that_are_safe_or_open_on_purpose(over: dict[str, Any]) -> None:
    check_exposure(settings(**over))


@pytest.mark.parametrize(
    "caller",
    [
        Caller(address="10.0.0.2", host="localhost"),
        Caller(address="127.0.0.1", host="tunnel.example.com"),
        Caller(address="127.0.0.1", host=""),
        Caller(address="127.0.0.1", host="localhost", origin="https://evil.example.com"),
        Caller(address="127.0.0.1", host="localhost", origin="null"),
        # A tunnel that puts this machine's own name in.
        Caller("127.0.0.1", "localhost", headers={"x-forwarded-for": "203.0.113.7"}),
        Caller("127.0.0.1", "localhost", headers={"forwarded": "for=203.0.113.7"}),
        Caller("127.0.0.1", "localhost", headers={"cf-connecting-ip": "203.0.113.7"}),
    ],
)
def test_without_proofs_only_this_machine_under_a_local_name(caller: Caller) -> None:
    gate().bearer(LOCAL)
    gate().platform("twilio", LOCAL, Request("/twilio/voice"))
    with pytest.raises(AuthError) as caught:
        gate().bearer(caller)
    assert caught.value.code == "auth.local_only"
    with pytest.raises(AuthError):
        gate().platform("twilio", caller, Request("/twilio/voice"))
    gate(auth={"none": True, "allow_open": True}).bearer(caller)


def test_bearer_tokens_in_the_header_or_the_address() -> None:
    guarded = gate(auth={"tokens": ["one", "two"]})
    guarded.bearer(Caller("10.0.0.2", authorization="Bearer two"))
    guarded.bearer(Caller("10.0.0.2", authorization="bearer  one"))
    guarded.bearer(Caller("10.0.0.2", access_token="one"))
    for caller, code in (
        (LOCAL, "auth.missing"),
        (Caller("10.0.0.2", authorization="Basic one"), "auth.missing"),
        (Caller("10.0.0.2", authorization="Bearer three"), "auth.bearer"),
        (Caller("10.0.0.2", access_token="é"), "auth.bearer"),
    ):
        with pytest.raises(AuthError) as caught:
            guarded.bearer(caller)
        assert (caught.value.code, caught.value.status) == (code, 401)


async def test_native_upgrades_need_the_bearer_token(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve({"auth.tokens": ["sesame"]})
    with pytest.raises(InvalidStatus) as caught:
        async with websocket(gateway, NATIVE):
            pass
    assert caught.value.response.status_code == 401
    assert caught.value.response.headers["WWW-Authenticate"].startswith("Bearer")
    assert not calls.made
    headers = {"Authorization": "Bearer sesame"}
    async with websocket(gateway, NATIVE, additional_headers=headers) as client:
        await start_native(client)
    async with websocket(gateway, NATIVE + "?access_token=sesame") as client:
        await start_native(client)
    await until(lambda: len(calls.made) == 2)


async def test_a_media_token_opens_one_socket(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    path = await media_path(gateway)
    async with websocket(gateway, path):
        pass
    for spoiled in (path, path[:-2] + "AA", "/twilio/media/abc"):
        with pytest.raises(InvalidStatus) as caught:
            async with websocket(gateway, spoiled):
                pass
        assert caught.value.response.status_code == 403
    assert len(calls.made) == 1
    metrics = gateway.observers.metrics.text().decode()
    assert 'voice_gateway_calls_refused_total{reason="auth.token_used"} 1.0' in metrics


async def test_gateways_of_one_secret_take_each_other_s_tokens(serve: Serve) -> None:
    asked, other, stranger = [
        await serve({"auth.media_secret": secret}) for secret in ("one", "one", "two")
    ]
    path = await media_path(asked)
    with pytest.raises(InvalidStatus) as caught:
        async with websocket(stranger, path):
            pass
    assert caught.value.response.status_code == 403
    async with websocket(other, path):
        pass


async def test_a_full_house_does_not_use_a_token_up(serve: Serve) -> None:
    gateway = await serve({"server.max_calls": 1})
    path = await media_path(gateway)
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        with pytest.raises(InvalidStatus) as caught:
            async with websocket(gateway, path):
                pass
        assert caught.value.response.status_code == 503
    await until(lambda: gateway.active == 0)
    async with websocket(gateway, path):
        pass


async def test_a_token_that_cannot_be_remembered_opens_nothing_and_holds_no_line(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.tokens.MAX_USED", 0)
    gateway = await serve()
    with pytest.raises(InvalidStatus) as caught:
        async with websocket(gateway, await media_path(gateway)):
            pass
    assert caught.value.response.status_code == 403
    assert gateway.active == 0


async def test_webhooks_must_be_signed_for_the_public_address(serve: Serve) -> None:
    gateway = await serve(SIGNED)
    form = {"CallSid": "CA1", "From": "+1555", "To": "+1666"}
    url = ORIGIN + "/twilio/voice"
    for token in ("primary", "secondary"):
        signature = RequestValidator(token).compute_signature(url, form)
        status, _, body = await request(
            gateway,
            "POST",
            "/twilio/voice",
            data=form,
            headers={"X-Twilio-Signature": signature, "Host": "internal:1"},
        )
        assert status == 200
        assert b'url="wss://voice.example.com/twilio/media/' in body
    for headers, code in (
        ({}, "auth.unsigned"),
        ({"X-Twilio-Signature": "AAAA"}, "auth.signature"),
    ):
        status, _, body = await request(
            gateway, "POST", "/twilio/voice", data=form, headers=headers
        )
        assert (status, error_code(body)) == (403, code)


async def test_a_signed_upgrade_needs_no_token(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve(SIGNED)
    signature = RequestValidator("primary").compute_signature(
        "wss://voice.example.com/twilio/media", {}
    )
    headers = {"x-twilio-signature": signature}
    async with websocket(gateway, "/twilio/media", additional_headers=headers) as client:
        await client.send(json.dumps(TWILIO_START))
        await until(lambda: calls.made and calls.made[0].started)
    with pytest.raises(InvalidStatus):
        async with websocket(gateway, "/twilio/media"):
            pass


# ---- proxies

MTLS: dict[str, Any] = {
    "trusted_proxies": ["10.1.0.0/16", "::1"],
    "client_cert_header": "X-Client-Name",
    "client_cert_names": ["pbx-1", "pbx-2"],
}


def proxied(address: str = "10.1.2.3", **headers: str) -> Caller:
    named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return Caller(address=address, host="voice.example.com", headers=named)


def test_a_certificate_that_a_trusted_proxy_has_verified_opens() -> None:
    guarded = gate(auth={**MTLS, "tokens": ["t"]})
    guarded.bearer(proxied(X_Client_Name="pbx-2"))
    guarded.platform("twilio", proxied(X_Client_Name="pbx-1"), Request("/twilio/media"))
    guarded.bearer(proxied("::1", X_Client_Name="pbx-1"))
    for caller in (
        proxied("10.2.0.1", X_Client_Name="pbx-1"),
        proxied("not an address", X_Client_Name="pbx-1"),
        proxied(X_Client_Name="pbx-3"),
        proxied(X_Client_Name=""),
        proxied(),
    ):
        with pytest.raises(AuthError):
            guarded.bearer(caller)


@pytest.mark.parametrize(
    ("auth", "code"),
    [
        ({"client_cert_names": ["a"]}, "config.client_cert"),
        ({"client_cert_names": ["a"], "client_cert_header": "X-C"}, "config.client_cert"),
        ({**MTLS, "client_cert_names": ["pbx-1", " "]}, "config.client_cert"),
        ({"trusted_proxies": ["nowhere"]}, "config.proxies"),
    ],
)
def test_a_certificate_is_not_believed_from_anybody(auth: dict[str, Any], code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_exposure(settings(auth=auth))
    assert caught.value.code == code


def test_calls_are_counted_for_who_stands_behind_a_trusted_proxy() -> None:
    proxies = gate(auth=MTLS).proxies
    forged = "203.0.113.9, 198.51.100.7"
    assert proxies.source(proxied(X_Forwarded_For=forged)) == "198.51.100.7"
    assert proxies.source(proxied()) == "10.1.2.3"
    assert proxies.source(proxied("192.0.2.1", X_Forwarded_For=forged)) == "192.0.2.1"


def test_a_proxy_on_this_machine_makes_nobody_local() -> None:
    guarded = gate(auth={"trusted_proxies": ["127.0.0.1"]})
    local = Caller(address="127.0.0.1", host="localhost", headers={"x-forwarded-for": "192.0.2.1"})
    with pytest.raises(AuthError):
        guarded.bearer(local)
    guarded.bearer(LOCAL)


async def test_what_a_client_says_of_itself_does_not_hide_what_the_proxy_adds(serve: Serve) -> None:
    gateway = await serve({"auth.trusted_proxies": ["127.0.0.1"]})
    # As proxies do that add a field of their own behind the client's.
    fields = [("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "192.0.2.1")]
    with pytest.raises(InvalidStatus) as refused:
        async with websocket(gateway, NATIVE, additional_headers=fields):
            pass
    assert refused.value.response.status_code == 403
    hook = await request(gateway, "POST", "/twilio/voice", data={"CallSid": "CA1"}, headers=fields)
    assert (hook[0], error_code(hook[2])) == (403, "auth.local_only")


def test_a_proxy_is_known_by_either_spelling_of_its_address() -> None:
    proxies = gate(auth={"trusted_proxies": ["10.1.0.0/16"]}).proxies
    assert proxies.trusted("::ffff:10.1.2.3")
    assert not proxies.trusted("::ffff:10.2.2.3")


async def test_a_refused_webhook_is_counted(serve: Serve) -> None:
    gateway = await serve(SIGNED)
    await request(gateway, "POST", "/twilio/voice", data={"CallSid": "CA1"})
    metrics = gateway.observers.metrics.text().decode()
    assert 'voice_gateway_calls_refused_total{reason="auth.unsigned"} 1.0' in metrics


async def test_a_platform_may_see_another_origin_than_the_server_says(serve: Serve) -> None:
    gateway = await serve(
        {**SIGNED, "platforms.twilio.public_origin": "https://phones.example.com/voice/"}
    )
    form = {"CallSid": "CA1"}
    url = "https://phones.example.com/voice/twilio/voice"
    signature = RequestValidator("primary").compute_signature(url, form)
    status, _, body = await request(
        gateway, "POST", "/twilio/voice", data=form, headers={"X-Twilio-Signature": signature}
    )
    assert status == 200
    assert b'url="wss://phones.example.com/voice/twilio/media/' in body


async def test_a_json_webhook_is_signed_by_its_body_s_digest(serve: Serve) -> None:
    gateway = await serve(SIGNED)
    body = b'{"CallSid": "CA1"}'
    path = f"/twilio/voice?bodySHA256={hashlib.sha256(body).hexdigest()}"
    signature = RequestValidator("primary").compute_signature(ORIGIN + path, {})
    headers = {"X-Twilio-Signature": signature, "Content-Type": "application/json"}
    genuine = await request(gateway, "POST", path, data=body, headers=headers)
    # Proven, but not the form that the answer needs.
    assert (genuine[0], error_code(genuine[2])) == (400, "protocol.form")
    forged = await request(gateway, "POST", path, data=body + b" ", headers=headers)
    assert (forged[0], error_code(forged[2])) == (403, "auth.signature")
