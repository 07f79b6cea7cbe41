"""JSON web tokens against an independent library."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.jwt import claims_of, rsa_key, sign_rs256
from gateway.errors import ConfigError

SECRET = "a secret of the account, thirty-two or more"
CLAIMS: dict[str, Any] = {"iat": 1700000000, "iss": "Vonage", "name": "Zoë"}
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: Any) -> str:
    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.decode()


def test_a_token_of_the_library_is_read() -> None:
    token = pyjwt.encode(CLAIMS, SECRET, algorithm="HS256")
    assert claims_of(token, ["another", SECRET]) == CLAIMS


@pytest.mark.parametrize(
    "token",
    [
        pyjwt.encode(CLAIMS, SECRET + "x", algorithm="HS256"),
        pyjwt.encode(CLAIMS, SECRET + SECRET, algorithm="HS512"),
        pyjwt.encode(CLAIMS, "", algorithm="none"),
        pyjwt.encode(CLAIMS, SECRET, algorithm="HS256").rpartition(".")[0] + ".",
        "",
        "a.b",
        "a.b.c.d",
        "é.é.é",
        "\udcff.b.c",
    ],
)
def test_any_other_token_is_none(token: str) -> None:
    assert claims_of(token, [SECRET]) is None
    assert claims_of(token, []) is None


@pytest.mark.parametrize("algorithm", ["HS384", "none", "RS256", None])
def test_the_algorithm_is_not_the_tokens_to_choose(algorithm: str | None) -> None:
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": algorithm}, CLAIMS)
    )
    digest = hmac.digest(SECRET.encode(), signed.encode(), "sha256")
    token = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    assert claims_of(token, [SECRET]) is None


@given(st.text(alphabet="abc.-_=+/é", max_size=40))
def test_nothing_escapes(token: str) -> None:
    assert claims_of(token, [SECRET]) is None


def test_the_library_reads_ours() -> None:
    token = sign_rs256(KEY, CLAIMS)
    assert pyjwt.decode(token, KEY.public_key(), algorithms=["RS256"]) == CLAIMS
    assert pyjwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT"}


def test_a_key_may_be_written_on_one_line() -> None:
    one_line = pem(KEY).replace("\n", "\\n")
    assert rsa_key(one_line, "here").private_numbers() == KEY.private_numbers()


@pytest.mark.parametrize(
    "text",
    ["", "no key", pem(ec.generate_private_key(ec.SECP256R1())), pem(KEY)[:200]],
)
def test_what_is_no_key_is_told_where(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rsa_key(text, "platforms.vonage.api_secret")
    assert caught.value.where == "platforms.vonage.api_secret"
    assert "BEGIN" not in caught.value.message
