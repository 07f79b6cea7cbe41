"""Media tokens: genuine, for one dialect and call, young, and used once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AuthError
from gateway.server import tokens as module
from gateway.server.tokens import MediaTokens


def refused(tokens: MediaTokens, token: str, dialect: str = "twilio", now_s: float = 0.0) -> str:
    with pytest.raises(AuthError) as caught:
        tokens.verify(token, dialect, now_s)
    assert caught.value.status == 403
    return caught.value.code


def test_a_token_opens_one_socket_of_its_call() -> None:
    tokens = MediaTokens(b"secret", 60)
    token = tokens.issue("twilio", "CA1", 0.0)
    assert re.fullmatch(r"[\w-]+", token), "a path segment"
    claim = tokens.verify(token, "twilio", 59.9)
    assert (claim.dialect, claim.call_id) == ("twilio", "CA1")
    tokens.use(claim)
    assert refused(tokens, token) == "auth.token_used"
    with pytest.raises(AuthError):
        tokens.use(claim)


def test_a_token_grows_old_and_is_forgotten() -> None:
    tokens = MediaTokens(b"secret", 60)
    first = tokens.issue("twilio", "CA1", 0.0)
    tokens.use(tokens.verify(first, "twilio", 1.0))
    assert refused(tokens, first, now_s=60.0) == "auth.token_expired"
    tokens.verify(tokens.issue("twilio", "CA2", 100.0), "twilio", 100.0)
    assert not tokens._used


def test_a_token_of_another_dialect_or_key_is_not_genuine() -> None:
    tokens = MediaTokens(b"secret", 60)
    assert refused(tokens, tokens.issue("asterisk", "CA1", 0.0)) == "auth.token"
    assert refused(tokens, MediaTokens(b"other", 60).issue("twilio", "C", 0)) == "auth.token"
    assert refused(MediaTokens(None, 60), MediaTokens(None, 60).issue("twilio", "C", 0))


def test_used_tokens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_USED", 1)
    tokens = MediaTokens(b"secret", 60)
    one, two = (tokens.issue("twilio", call, 0.0) for call in ("a", "b"))
    tokens.use(tokens.verify(one, "twilio", 0.0))
    with pytest.raises(AuthError) as caught:
        tokens.use(tokens.verify(two, "twilio", 0.0))
    assert caught.value.code == "auth.token_flood"


@given(st.text() | st.text(alphabet="ABCabc012-_=", max_size=200))
def test_nothing_made_up_is_genuine(text: str) -> None:
    assert refused(MediaTokens(b"secret", 60), text) == "auth.token"


@given(st.integers(0, 200), st.sampled_from("Aa0-_"))
def test_a_changed_character_spoils_a_token(place: int, char: str) -> None:
    tokens = MediaTokens(b"secret", 60)
    token = tokens.issue("twilio", "CA1", 0.0)
    place %= len(token) - 1  # the last character may hold bits that carry nothing
    changed = token[:place] + char + token[place + 1 :]
    if changed != token:
        assert refused(tokens, changed) == "auth.token"
