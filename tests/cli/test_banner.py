"""What `serve` prints: addresses and commands that fit the settings."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gateway import config
from gateway.channels.dialects import DIALECTS
from gateway.cli.banner import banner
from gateway.config import Settings
from gateway.server.auth import platform_proofs
from gateway.server.compose import running
from gateway.simulate.platforms import side
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import read_scenario
from gateway.simulate.wire import call

HERE = "http://127.0.0.1:8080"
SECRETS = {
    "AUTH_TOKEN": "12345",
    "USERNAME": "key",
    "PASSWORD": "a password",
    "API_KEY": "key",
    "CLIENT_SECRET": "c2VjcmV0",
    "TOKEN": "bearer",
}
PROVEN = {
    "twilio": {"auth_tokens": ["12345"]},
    "exotel": {"username": "key", "password": "a password"},
    "audio_stream": {"auth_tokens": ["12345"]},
    "genesys": {"clients": {"key": "c2VjcmV0"}},
}


def commands(text: str) -> list[list[str]]:
    """The words of each `call` that is offered."""
    lines = [line.split() for line in text.splitlines() if " call http" in line]
    return [words[words.index("call") + 1 :] for words in lines]


def channels(text: str) -> list[str]:
    return [words[words.index("--channel") + 1] for words in commands(text) if "--channel" in words]


def test_without_secrets_it_offers_what_this_machine_may_do() -> None:
    text = banner(Settings(), HERE)
    assert channels(text) == ["twilio"]
    assert "--secret" not in text
    assert "--token" not in text
    assert "share_timeline" not in text


def test_no_command_is_offered_whose_answer_leads_elsewhere() -> None:
    """Nobody but this machine may call then, and Twilio's answer leads to the public name."""
    settings = config.load(flags=["server.public_origin=https://voice.example.com"])
    assert channels(banner(settings, HERE)) == []


def test_configured_platforms_stand_with_the_address_that_they_call_and_their_proof() -> None:
    settings = config.load(
        flags=["server.public_origin=https://voice.example.com", "server.host=0.0.0.0"],
        overrides={"platforms": PROVEN, "auth": {"tokens": ["bearer"]}},
    )
    text = banner(settings, HERE)
    assert channels(text) == list(platform_proofs(settings))
    assert "POST https://voice.example.com/twilio/voice" in text
    assert "wss://voice.example.com/genesys/audiohook" in text
    told = {words[words.index("--channel") + 1]: words for words in commands(text)[1:]}
    assert told["twilio"][0] == "https://voice.example.com"
    assert "--secret AUTH_TOKEN --token TOKEN" in " ".join(told["twilio"])
    assert "--key API_KEY --secret CLIENT_SECRET" in " ".join(told["genesys"])
    assert "--key USERNAME --secret PASSWORD" in " ".join(told["exotel"])
    assert "--key" not in told["audio_stream"]
    assert "server.share_timeline=true" in text, "the bind is not a loopback one"


def test_every_dialect_with_a_proof_says_what_call_is_given() -> None:
    for name, dialect in DIALECTS.items():
        if dialect.proof is not None:
            assert "--secret" in side(name).proof
            assert dialect.secrets


@pytest.mark.parametrize("name", ["twilio", "audio_stream"])
async def test_the_command_works_once_the_secrets_are_filled_in(name: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = config.load(
        overrides={
            "server": {"port": port, "public_origin": url},
            "auth": {"tokens": ["bearer"]},
            "platforms": {name: PROVEN[name]},
            "speech": {"stt": "none"},
        }
    )
    file = tmp_path / "hello.yaml"
    file.write_text("caller: [{wait: agent_quiet}, {hangup: true}]\nexpect: [{heard: welcome}]\n")
    async with running(settings) as gateway:
        words = next(one for one in commands(banner(settings, gateway.url)) if name in one)
        given = dict(zip(words[2::2], words[3::2], strict=True))
        filled = {flag: SECRETS.get(value, value) for flag, value in given.items()}
        access = Access(words[0], filled["--token"], filled["--secret"], filled.get("--key", ""))
        result = await call(access, read_scenario(file), filled["--channel"], settings)
    assert result.ok, result.verdicts
