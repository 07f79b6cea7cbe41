"""Credentials by half are told at the start, with what belongs to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import config
from gateway.errors import ConfigError
from gateway.server.credentials import check_credentials

HALF = {
    "asterisk": {"rest_url": "http://asterisk:8088/ari"},
    "bandwidth": {"account": "a1"},
    "jambonz": {"account": "a1"},
    "plivo": {"account": "MA1"},
    "signalwire": {"account": "p", "api_secret": "s"},
    "sinch": {"api_key": "k"},
    "telnyx": {"rest_url": "https://api.telnyx.example"},
    "twilio": {"account": "AC1", "api_key": "SK1"},
    "vonage": {"account": "app"},
}
WHOLE = {
    "asterisk": {"rest_url": "http://asterisk:8088/ari", "account": "u", "api_secret": "s"},
    "bandwidth": {"account": "a1", "api_key": "id", "api_secret": "s"},
    "jambonz": {"api_secret": "s", "account": "a1"},
    "plivo": {"account": "MA1", "auth_tokens": ["t"]},
    "signalwire": {"account": "p", "api_secret": "s", "rest_url": "https://s.example"},
    "sinch": {"api_key": "k", "api_secret": "c2VjcmV0"},
    "telnyx": {"api_secret": "s"},
    "twilio": {"account": "AC1", "auth_tokens": ["t"]},
    # Without its key the application's id still says whose webhooks are taken.
    "vonage": {"account": "app", "auth_tokens": ["t"]},
}


def check(platforms: dict[str, dict[str, object]]) -> None:
    check_credentials(config.load(overrides={"platforms": platforms}).platforms)


@pytest.mark.parametrize("name", HALF)
def test_half_of_the_rest_credentials_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check({name: HALF[name]})
    assert caught.value.code == "config.credentials"
    assert caught.value.where == f"platforms.{name}"
    assert all(key in caught.value.message for key in HALF[name])
    assert caught.value.hint


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_is_not(name: str) -> None:
    check({name: WHOLE[name]})


@pytest.mark.parametrize("name", sorted(WHOLE.keys() - {"asterisk", "sinch", "vonage"}))
def test_a_page_to_go_on_at_needs_rest(name: str) -> None:
    onward: dict[str, object] = {"continue_url": "https://flows.example.com/next"}
    with pytest.raises(ConfigError, match="continue_url") as caught:
        check({name: onward})
    assert caught.value.code == "config.credentials"
    check({name: {**WHOLE[name], **onward}})


def test_a_user_without_a_password_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        check({"exotel": {"username": "key"}})
    assert caught.value.where == "platforms.exotel.password"
    check({"exotel": {"username": "key", "password": "p"}})


def test_what_is_switched_off_is_not_looked_at() -> None:
    check({"twilio": {"enabled": False, "account": "AC1"}})


@pytest.mark.parametrize("sample", ["platforms", "production", "dev"])
def test_the_samples_are_whole(sample: str) -> None:
    folder = Path(config.__file__).parent.parent / "config"
    check_credentials(config.load(folder / f"{sample}.yaml").platforms)
