"""Genesys' signed requests: the published form, a clock window, and nonces that count once."""

from __future__ import annotations

import base64
import hmac
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.dialect import Request
from gateway.channels.genesys_proof import GenesysProof
from gateway.errors import AuthError, ConfigError
from gateway.platform_settings import GenesysSettings

KEY = "SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh"
SECRET = "TXlTdXBlclNlY3JldEtleVRlbGxOby0xITJAMyM0JDU="
CREATED = 1700000000
COMPONENTS = (
    '("@request-target" "@authority" "audiohook-organization-id" "audiohook-session-id"'
    ' "audiohook-correlation-id" "x-api-key")'
)
PARAMETERS = (
    f';keyid="{KEY}";nonce="{"A" * 24}";alg="hmac-sha256";created={CREATED};expires={CREATED + 30}'
)
HEADERS = {
    "host": "gw.example.com",
    "audiohook-organization-id": "d7934305-0972-4844-938e-9060eef73d05",
    "audiohook-session-id": "e160e428-53e2-487c-977d-96989bf5c99d",
    "audiohook-correlation-id": "30b0e395-84d3-4570-ac13-9a62d8f514c0",
    "x-api-key": KEY,
    "signature-input": f"sig1={COMPONENTS}{PARAMETERS}",
    "signature": "sig1=:4WjXKffGbMitNSKFg9a+xF64tm1oKwtvO+hTcSJ20aQ=:",
}
GENUINE = Request("/audiohook/ws", headers=HEADERS)


def proof(**settings: Any) -> GenesysProof:
    return GenesysProof(GenesysSettings(clients={KEY: SECRET}, **settings))


def changed(**headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return replace(GENUINE, headers={**HEADERS, **named})


def refusal(request: Request, at_s: float = CREATED, made: GenesysProof | None = None) -> AuthError:
    with pytest.raises(AuthError) as caught:
        (made or proof()).check(request, at_s)
    return caught.value


def test_the_published_vector_is_genuine() -> None:
    proof().check(GENUINE, CREATED + 1)


@pytest.mark.parametrize(
    "name", [name for name in HEADERS if name not in ("signature", "signature-input", "x-api-key")]
)
def test_every_covered_header_counts(name: str) -> None:
    error = refusal(changed(**{name: "another"}))
    assert (error.code, error.status) == ("auth.signature", 401)


def test_the_target_counts_with_its_query() -> None:
    for request in (replace(GENUINE, path="/other"), replace(GENUINE, raw_query="a=1")):
        assert refusal(request).code == "auth.signature"


def test_behind_a_proxy_the_public_origin_may_be_what_was_signed() -> None:
    inner = replace(
        GENUINE,
        path="/ws",
        headers={**HEADERS, "host": "10.0.0.7:8080"},
        origin="https://gw.example.com/audiohook",
    )
    proof().check(inner, CREATED)


@pytest.mark.parametrize("late_s", [-3, 0, 13])
def test_clocks_may_differ_a_little(late_s: int) -> None:
    proof().check(GENUINE, CREATED + late_s)


@pytest.mark.parametrize("late_s", [-4, 14, 40, 1e9])
def test_outside_its_window_a_signature_is_worth_nothing(late_s: float) -> None:
    assert refusal(GENUINE, CREATED + late_s).code == "auth.expired"


def signed(
    secret: bytes, *, key: str = KEY, components: str = COMPONENTS, parameters: str = PARAMETERS
) -> Request:
    """The request as somebody with this secret would sign it."""
    told = {
        "@request-target": "/audiohook/ws",
        "@authority": "gw.example.com",
        **HEADERS,
        "x-api-key": key,
    }
    lines = [f'"{name}": {told[name]}' for name in re.findall('"(.*?)"', components)]
    text = "\n".join([*lines, f'"@signature-params": {components}{parameters}'])
    digest = base64.b64encode(hmac.digest(secret, text.encode(), "sha256")).decode()
    return changed(
        x_api_key=key,
        signature_input=f"sig1={components}{parameters}",
        signature=f"sig1=:{digest}:",
    )


def test_a_signature_may_say_itself_that_it_ends_sooner() -> None:
    sooner = PARAMETERS.replace(f"expires={CREATED + 30}", f"expires={CREATED + 2}")
    brief = signed(base64.b64decode(SECRET), parameters=sooner)
    proof().check(brief, CREATED + 5)
    assert refusal(brief, CREATED + 6).code == "auth.expired"


@pytest.mark.parametrize("secret", [b"unknown", b"stranger", base64.b64decode(SECRET)])
def test_a_key_that_is_not_known_opens_with_no_secret(secret: bytes) -> None:
    stranger = signed(secret, key="stranger", parameters=PARAMETERS.replace(KEY, "stranger"))
    assert refusal(stranger).code == "auth.signature"


@pytest.mark.parametrize(
    "otherwise",
    [
        {"components": COMPONENTS.replace(' "audiohook-session-id"', "")},
        {"components": COMPONENTS.replace('"@authority"', '"@request-target"')},
        {"components": COMPONENTS.replace(")", ' "host")')},
        {"parameters": PARAMETERS.replace(KEY, "another")},
        {"parameters": PARAMETERS.replace("hmac-sha256", "hmac-sha1")},
        {"parameters": PARAMETERS.replace("A" * 24, "A" * 21)},
        {"parameters": PARAMETERS.partition(";created")[0]},
    ],
)
def test_a_signature_over_less_or_in_another_way_is_none(otherwise: dict[str, str]) -> None:
    secret = base64.b64decode(SECRET)
    proof().check(signed(secret), CREATED)
    assert refusal(signed(secret, **otherwise)).code == "auth.signature"


def test_a_signature_counts_once() -> None:
    made = proof()
    made.check(GENUINE, CREATED)
    assert refusal(GENUINE, CREATED + 1, made).code == "auth.replayed"
    assert refusal(GENUINE, CREATED + 13, made).code == "auth.replayed"


def test_a_signature_that_was_refused_uses_nothing_up() -> None:
    made = proof()
    refusal(changed(host="another"), CREATED, made)
    made.check(GENUINE, CREATED)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (changed(x_api_key=""), "auth.missing"),
        (changed(x_api_key="another"), "auth.signature"),
        (changed(signature=""), "auth.unsigned"),
        (changed(signature_input=""), "auth.unsigned"),
        (changed(signature="sig2=:AAAA:"), "auth.signature"),
        (changed(signature="sig1=:%%:"), "auth.signature"),
        (changed(signature_input=HEADERS["signature-input"] + ",sig2=()"), "auth.signature"),
        (changed(signature_input=f'sig1=("@authority"){PARAMETERS}'), "auth.signature"),
        (
            changed(signature_input=HEADERS["signature-input"].replace("hmac-sha256", "none")),
            "auth.signature",
        ),
        (
            changed(signature_input=HEADERS["signature-input"].replace("A" * 24, "A" * 21)),
            "auth.signature",
        ),
        (
            changed(signature_input=HEADERS["signature-input"].replace(f";created={CREATED}", "")),
            "auth.signature",
        ),
    ],
)
def test_what_is_not_signed_as_it_should_be_is_refused(request_: Request, code: str) -> None:
    error = refusal(request_)
    assert (error.code, error.status) == (code, 401)


def test_a_key_with_an_empty_secret_comes_in_unsigned() -> None:
    made = GenesysProof(GenesysSettings(clients={KEY: SECRET, "plain": ""}))
    unsigned = {"x-api-key": "plain", "host": "gw.example.com"}
    made.check(Request("/", headers=unsigned), CREATED)
    assert refusal(Request("/", headers={"x-api-key": KEY}), CREATED, made).code == "auth.unsigned"


def test_only_organisations_that_are_served_come_in() -> None:
    proof(organizations=[HEADERS["audiohook-organization-id"]]).check(GENUINE, CREATED)
    error = refusal(GENUINE, CREATED, proof(organizations=["another"]))
    assert (error.code, error.status) == ("auth.organization", 403)


def test_a_secret_that_is_not_base64_is_told_at_the_start() -> None:
    with pytest.raises(ConfigError, match="base64") as caught:
        GenesysProof(GenesysSettings(clients={KEY: "not base64!"}))
    assert caught.value.where == "platforms.genesys.clients"
    assert not GenesysProof(GenesysSettings()).configured


@given(st.text(), st.text())
def test_nothing_but_a_refusal_escapes(told: str, value: str) -> None:
    with pytest.raises(AuthError):
        proof().check(changed(signature_input=told, signature=value), CREATED)
    with pytest.raises(AuthError):
        proof().check(changed(signature_input=f"sig1={COMPONENTS}{told}"), CREATED)
