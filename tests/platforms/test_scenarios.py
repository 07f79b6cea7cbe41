"""Whole calls on the telephone dialects: the real gateway, engines and agent, one short scenario.

Over the wire each caller speaks the platform's side on a real socket, with its own proof.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from gateway.config import load
from gateway.server.compose import running
from gateway.simulate.platforms import CHANNELS
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import Scenario, parse_scenario
from gateway.simulate.wire import call
from tests.channels.test_telnyx import KEY, PUBLIC

pytestmark = pytest.mark.slow

GENESYS_SECRET = base64.b64encode(b"the secret of the integration").decode()
SINCH_SECRET = base64.b64encode(b"the secret of the application").decode()
PLATFORMS = {
    "genesys": {"clients": {"the-key": GENESYS_SECRET}},
    "vonage": {"auth_tokens": ["a signature secret"]},
    "telnyx": {"public_keys": [PUBLIC], "codec": "L16", "rate_hz": 16000},
    "signalwire": {"auth_tokens": ["PSK_1"], "codec": "L16@16000h"},
    "plivo": {"auth_tokens": ["plivo token"], "content_type": "audio/x-l16;rate=16000"},
    "exotel": {"username": "key", "password": "a password", "rate_hz": 16000},
    "bandwidth": {
        "username": "key",
        "password": "a password",
        "codec": "PCM",
        "rate_hz": 16000,
    },
    "sinch": {"api_key": "key", "api_secret": SINCH_SECRET},
    "infobip": {"username": "key", "password": "a password"},
    "audiocodes": {"auth_tokens": ["bot token"]},
    "twilio": {"auth_tokens": ["twilio token"]},
    "jambonz": {"username": "key", "password": "a password"},
    "audio_fork": {"username": "key", "password": "a password"},
    "audio_stream": {"username": "key", "password": "a password"},
    "asterisk": {"username": "key", "password": "a password"},
    "raw": {},
    "ces": {},
}
PROOFS = {
    "genesys": (GENESYS_SECRET, "the-key"),
    "vonage": ("a signature secret", ""),
    "telnyx": (base64.b64encode(KEY.private_bytes_raw()).decode(), ""),
    "signalwire": ("PSK_1", ""),
    "plivo": ("plivo token", ""),
    "exotel": ("a password", "key"),
    "bandwidth": ("a password", "key"),
    "sinch": (SINCH_SECRET, "key"),
    "infobip": ("a password", "key"),
    "audiocodes": ("bot token", ""),
    "twilio": ("twilio token", ""),
    "jambonz": ("a password", "key"),
    "audio_fork": ("a password", "key"),
    "audio_stream": ("a password", "key"),
    "asterisk": ("a password", "key"),
    # Without a bearer token of the server these take this machine's calls.
    "raw": ("", ""),
    "ces": ("", ""),
}
KEYLESS = frozenset({"bandwidth", "sinch"})
"""Dialects without words for the caller's keys."""
SHORT = """
caller:
  - wait: {heard: "help you today"}
  - dtmf: "12#"
  - silence: 300ms
  - hangup: true
expect:
  - heard: "welcome to northlight energy"
  - event: {kind: utterance_ended, reason: completed, uri: "greeting"}
  - event: {kind: dtmf, digits: "12"}
  - ended: remote_hangup
"""


def scenario_of(name: str) -> Scenario:
    lines = SHORT.splitlines()
    if name in KEYLESS:
        lines = [line for line in lines if "dtmf" not in line]
    return parse_scenario("\n".join(lines), Path("short.yaml"))


def test_no_dialect_is_left_out() -> None:
    assert PLATFORMS.keys() == PROOFS.keys() == set(CHANNELS)


async def test_every_dialect_makes_its_call_on_a_real_server(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    server = {"port": unused_tcp_port, "public_origin": url}
    settings = load(overrides={"server": server, "platforms": PLATFORMS})
    async with running(settings):
        results = await asyncio.gather(
            *(
                call(Access(url, secret=secret, key=key), scenario_of(name), name)
                for name, (secret, key) in PROOFS.items()
            )
        )
    for name, result in zip(PROOFS, results, strict=True):
        assert result.ok, (name, [str(verdict) for verdict in result.verdicts])
        assert any(result.log.heard), name
        assert not result.log.complaints, name
        assert not [line for line in result.log.timeline if line["kind"] == "error"], name
