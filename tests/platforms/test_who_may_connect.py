"""Who may connect, dialect by dialect over real sockets: what opens, and what does not.

Everything is refused before the upgrade, in a JSON body that says why, and counted. Where a proof
neither grows old nor is used up (`STATIC`), it is a password: the same every time, for ever.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from gateway.channels.dialect import Proof
from gateway.channels.dialects import DIALECTS
from gateway.errors import AdmissionError
from gateway.server import auth
from gateway.simulate.platforms import CHANNELS
from gateway.simulate.platforms.access import Access, Endpoint
from tests.channels.test_telnyx import KEY, PUBLIC
from tests.platforms.calling import dial, found, identity, serving
from tests.platforms.live import Live

LATER_S = 3600.0
BASE64 = base64.b64encode(b"a secret of the platform").decode()
OTHER64 = base64.b64encode(b"a secret of somebody else").decode()
BASIC = {"username": "key", "password": "right"}


@dataclass(frozen=True)
class Case:
    """Credentials of one dialect, and the statuses of what is refused."""

    settings: dict[str, Any]
    right: dict[str, str]
    wrong: dict[str, str]
    none: int = 401
    forged: int = 401
    again: int = 403
    """What is used a second time; 0: it opens as often as it is shown."""
    late: int = 403
    """What is an hour old; 0: it does not grow old."""


STATIC = {"again": 0, "late": 0}
BY_HEADER = Case(
    BASIC, {"secret": "right", "key": "key"}, {"secret": "wrong", "key": "key"}, **STATIC
)
CASES = {
    # The webhook is proven, and its answer carries a token for one socket.
    "twilio": Case({"auth_tokens": ["right"]}, {"secret": "right"}, {"secret": "wrong"}, 403, 403),
    "signalwire": Case(
        {"auth_tokens": ["right"]}, {"secret": "right"}, {"secret": "wrong"}, forged=403
    ),
    "plivo": Case({"auth_tokens": ["right"]}, {"secret": "right"}, {"secret": "wrong"}, 403, 403),
    "telnyx": Case(
        {"public_keys": [PUBLIC]},
        {"secret": base64.b64encode(KEY.private_bytes_raw()).decode()},
        {"secret": base64.b64encode(bytes(32)).decode()},
        forged=403,
    ),
    "vonage": Case({"auth_tokens": ["right"]}, {"secret": "right"}, {"secret": "wrong"}),
    "sinch": Case(
        {"api_key": "key", "api_secret": BASE64},
        {"secret": BASE64, "key": "key"},
        {"secret": OTHER64, "key": "key"},
    ),
    "bandwidth": Case(BASIC, BY_HEADER.right, BY_HEADER.wrong),
    "jambonz": Case(BASIC, BY_HEADER.right, BY_HEADER.wrong),
    "exotel": Case(BASIC, BY_HEADER.right, BY_HEADER.wrong),
    # The upgrade itself is signed.
    "genesys": Case(
        {"clients": {"key": BASE64}},
        {"secret": BASE64, "key": "key"},
        {"secret": OTHER64, "key": "key"},
        again=401,
        late=401,
    ),
    # The upgrade carries a password or a bearer token.
    "infobip": BY_HEADER,
    "asterisk": BY_HEADER,
    "audio_fork": BY_HEADER,
    "audio_stream": BY_HEADER,
    "audiocodes": Case({"auth_tokens": ["right"]}, {"secret": "right"}, {"secret": "x"}, **STATIC),
    "raw": Case({}, {"token": "right"}, {"token": "wrong"}, **STATIC),
    "ces": Case({}, {"token": "right"}, {"token": "wrong"}, **STATIC),
}
EVERY = pytest.mark.parametrize("dialect", CASES)
TOKENS = {
    name: any(r.proof is Proof.TOKEN for r in entry.routes) for name, entry in DIALECTS.items()
}


def test_no_dialect_is_left_out() -> None:
    assert CASES.keys() == set(CHANNELS)


@asynccontextmanager
async def guarded(dialect: str, port: int) -> AsyncIterator[Live]:
    """A server that asks for the proofs of this dialect, and for bearer tokens."""
    server = {"port": port, "public_origin": f"http://127.0.0.1:{port}"}
    settings = CASES[dialect].settings
    async with serving(dialect, server=server, bearer=["right"], **settings) as running:
        yield running


async def reach(running: Live, dialect: str, **proof: str) -> Endpoint:
    return await found(dialect, Access(running.gateway.url, **proof), identity(dialect))


async def status_of(running: Live, dialect: str, **proof: str) -> tuple[int, str]:
    """The status of webhook or upgrade, and the code in its body; 101 where it opens."""
    try:
        return await dialled(await reach(running, dialect, **proof))
    except AdmissionError as error:
        return error.status, str(error)


async def dialled(endpoint: Endpoint) -> tuple[int, str]:
    try:
        async with dial(endpoint):
            return 101, ""
    except InvalidStatus as refused:
        body = json.loads(refused.response.body or b"")
        return refused.response.status_code, body["error"]["code"]


def refusals(running: Live) -> float:
    lines = running.observers.metrics.text().decode().splitlines()
    counts = [line for line in lines if line.startswith("voice_gateway_calls_refused_total{")]
    return sum(float(line.split()[-1]) for line in counts if "auth." in line)


@EVERY
async def test_the_right_proof_opens_and_no_other(dialect: str, unused_tcp_port: int) -> None:
    case = CASES[dialect]
    async with guarded(dialect, unused_tcp_port) as running:
        for status, proof in ((case.none, {}), (case.forged, case.wrong)):
            before = refusals(running)
            got, told = await status_of(running, dialect, **proof)
            assert (got, "auth." in told) == (status, True), told
            assert refusals(running) == before + 1
        assert not running.agents
        assert (await status_of(running, dialect, **case.right))[0] == 101


@EVERY
async def test_what_was_used_opens_nothing_more(dialect: str, unused_tcp_port: int) -> None:
    case = CASES[dialect]
    async with guarded(dialect, unused_tcp_port) as running:
        endpoint = await reach(running, dialect, **case.right)
        assert await dialled(endpoint) == (101, "")
        code = {403: "auth.token_used", 401: "auth.replayed"}.get(case.again, "")
        assert await dialled(endpoint) == (case.again or 101, code)


@EVERY
async def test_what_is_an_hour_old_opens_nothing(
    dialect: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[dialect]
    async with guarded(dialect, unused_tcp_port) as running:
        endpoint = await reach(running, dialect, **case.right)
        later = SimpleNamespace(time=lambda: time.time() + LATER_S)
        monkeypatch.setattr(auth, "time", later)
        code = {403: "auth.token_expired", 401: "auth.expired"}.get(case.late, "")
        assert await dialled(endpoint) == (case.late or 101, code)


@pytest.mark.parametrize("dialect", ["telnyx", "vonage", "sinch"])
async def test_a_signed_webhook_grows_old_too(
    dialect: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(dialect, unused_tcp_port) as running:
        monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: time.time() + LATER_S))
        status, told = await status_of(running, dialect, **CASES[dialect].right)
        assert status in (401, 403)
        assert "auth.expired" in told


@pytest.mark.parametrize("dialect", [name for name, tokens in TOKENS.items() if tokens])
async def test_a_token_is_good_for_its_own_dialect(dialect: str, unused_tcp_port: int) -> None:
    other = "plivo" if dialect == "twilio" else "twilio"
    async with guarded(dialect, unused_tcp_port) as running:
        endpoint = await reach(running, dialect, **CASES[dialect].right)
        token = endpoint.url.partition("?")[0].rpartition("/")[2]
        elsewhere = Endpoint(
            f"ws://127.0.0.1:{unused_tcp_port}/{other}/media/{token}", endpoint.platform
        )
        assert await dialled(elsewhere) == (403, "auth.token")
        assert await dialled(endpoint) == (101, ""), "which used nothing up"
