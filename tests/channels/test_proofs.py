"""The Authorization header: Basic or Bearer, by what the platform's settings hold."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels import proofs
from gateway.channels.dialect import Request
from gateway.channels.proofs import AuthorizationProof, Once
from gateway.errors import AuthError
from gateway.platform_settings import PlatformSettings


def proof(**settings: Any) -> AuthorizationProof:
    return AuthorizationProof(PlatformSettings(**settings))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def check(judge: AuthorizationProof, authorization: str) -> None:
    judge.check(Request("/x", headers={"authorization": authorization}), 0.0)


BOTH = proof(username="pbx", password="s:cret", auth_tokens=["one", "two"])


def test_nothing_configured_proves_nothing() -> None:
    assert not proof().configured
    assert not proof(username="pbx").configured
    assert BOTH.configured


@pytest.mark.parametrize("header", [basic("pbx:s:cret"), "Bearer two", "bearer  one"])
def test_either_scheme_opens(header: str) -> None:
    check(BOTH, header)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "auth.missing"),
        ("Basic", "auth.missing"),
        (basic("pbx:other"), "auth.credentials"),
        (basic("pbx"), "auth.credentials"),
        ("Basic !!!", "auth.credentials"),
        ("Bearer three", "auth.credentials"),
        ("Digest one", "auth.credentials"),
    ],
)
def test_anything_else_is_refused(header: str, code: str) -> None:
    with pytest.raises(AuthError) as caught:
        check(BOTH, header)
    assert (caught.value.code, caught.value.status) == (code, 401)


def test_an_empty_password_is_not_a_missing_one() -> None:
    with pytest.raises(AuthError):
        check(proof(auth_tokens=["one"]), basic(":"))
    for undecodable in ("Basic !", "Basic =", "Basic a"):
        with pytest.raises(AuthError):
            check(proof(auth_tokens=["one"]), undecodable)


@given(st.text())
def test_no_header_raises_anything_else(header: str) -> None:
    with pytest.raises(AuthError):
        check(BOTH, header)


# ---- proofs that are good once


def used(once: Once, proof: str, now_s: float) -> bool:
    try:
        once.use(proof, now_s + 10.0, now_s)
    except AuthError:
        return True
    return False


def test_a_proof_counts_once_as_long_as_it_would_be_taken() -> None:
    once = Once()
    assert not used(once, "a", 0.0)
    assert used(once, "a", 10.0)
    assert not used(once, "b", 10.0)
    assert not used(once, "a", 10.1)


def test_more_than_are_remembered_push_out_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_REMEMBERED", 3)
    once = Once()
    assert not any(used(once, proof, 0.0) for proof in "abcd")
    assert len(once._used) == 3
    assert used(once, "d", 1.0)
    assert not used(once, "a", 1.0)
