"""Calls whose agent service refuses, breaks off or is not there: the caller hears words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.runtime import client as runtime_client
from gateway.runtime.google import RECONNECT_ATTEMPTS
from gateway.server.app import Gateway
from tests.assets.servers import certificate
from tests.runtime.ces_service import CesService, Connection
from tests.runtime.test_google_calls import gateway, phone

FAILED = """
caller:
  - wait: {event: call_ended, timeout: 20s}
expect:
  - heard: "sorry"
  - event: {kind: error, code: "runtime[.].*", count: 1}
  - ended: error
"""
PEACE = """
caller:
  - wait: {event: call_ended, timeout: 20s}
expect:
  - not_heard: "sorry"
  - ended: completed
"""
Log = list[MutableMapping[str, Any]]


@pytest.fixture
def log() -> Iterator[Log]:
    with capture_logs() as entries:
        yield entries


def reported(log: Log) -> dict[str, MutableMapping[str, Any]]:
    """The lines of the log that tell of failed calls, by their codes."""
    lines = [entry for entry in log if entry["event"] == "call.error"]
    return {line["code"].removeprefix("runtime."): line for line in lines}


async def failed(service: CesService, front: Gateway, calls: int = 1) -> None:
    """So many calls at once, each of which hears that it has failed."""
    await asyncio.gather(*(phone(service, front, FAILED) for _ in range(calls)))


async def begun(service: CesService) -> Connection:
    """A session that has been told all that begins a call."""
    connection = await service.next()
    await connection.until(lambda: bool(connection.given("event")))
    return connection


WAYS_OUT = {
    "unauthenticated": "runtime.google.credentials",
    "permission_denied": "roles/ces.client",
    "not_found": "runtime.google.app",
    "resource_exhausted": "quota",
    "invalid_argument": "runtime.google",
    "internal": "try again later",
    "unavailable": "try again later",
    "failed_precondition": "runtime.google",
    "lost": "network",
}


def assert_told(log: Log, codes: list[str]) -> None:
    """Each failure is one line of the log, with its code, its place and the way out."""
    lines = reported(log)
    assert sorted(lines) == sorted(codes)
    for code, line in lines.items():
        assert line["where"] == "runtime.google"
        assert WAYS_OUT[code] in line["hint"]


async def test_whatever_refuses_a_call_is_told_in_words(tmp_path: Path, log: Log) -> None:
    refusals = {
        403: "permission_denied",
        404: "not_found",
        429: "resource_exhausted",
        500: "internal",
        503: "unavailable",
    }
    async with gateway(tmp_path) as (service, front):
        service.answers = [(status, {}) for status in refusals]
        await failed(service, front, len(refusals))
        # One attempt each: who waits for a beginning hears words rather than a second attempt.
        assert len(service.upgrades) == len(refusals)
        service.answers = [(401, {}), (401, {})]
        await failed(service, front)
        assert len(service.upgrades) == len(refusals) + 2
    assert_told(log, [*refusals.values(), "unauthenticated"])


CLOSES: list[tuple[int, str, str]] = [
    (1011, "[ORIGINAL ERROR] generic::resource_exhausted: quota", "resource_exhausted"),
    (1007, "generic::invalid_argument: trace 0af1", "invalid_argument"),
    (1011, "generic::internal: trace 0af1", "internal"),
    (1008, "Token expired", "unauthenticated"),
    (1008, "generic::permission_denied", "permission_denied"),
    (1000, "generic::failed_precondition: the app is gone", "failed_precondition"),
]


async def test_each_way_in_which_the_service_breaks_off_is_told_in_words(
    tmp_path: Path, log: Log
) -> None:
    async def break_off(service: CesService) -> None:
        for code, reason, _ in CLOSES:
            await (await begun(service)).close(code, reason)

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(break_off(service))
        await failed(service, front, len(CLOSES))
        await played
        assert len(service.upgrades) == len(CLOSES)
    assert_told(log, [code for *_, code in CLOSES])
    assert "0af1" not in str(log)


async def test_a_service_that_goes_away_for_good_is_asked_so_often_and_no_more(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_client, "BACKOFF_S", 0.01)

    async def break_off(service: CesService) -> None:
        connection = await begun(service)
        await connection.say(1, text="", turnCompleted=True)
        service.answers = [(503, {})] * 20
        connection.vanish()

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(break_off(service))
        await failed(service, front)
        await played
        assert len(service.upgrades) == 1 + RECONNECT_ATTEMPTS
    assert_told(log, ["unavailable"])


async def test_a_goodbye_as_the_reason_is_none_of_these(tmp_path: Path, log: Log) -> None:
    async def part(service: CesService) -> None:
        connection = await begun(service)
        await connection.say(1, text="", turnCompleted=True)
        await connection.close(1011, "generic::failed_precondition: session done - goodbye")

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(part(service))
        await phone(service, front, PEACE)
        await played
    assert not [entry for entry in log if entry["event"] == "call.error"]


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        ({"endpoint": "wss://nowhere.invalid"}, "unreachable", "cannot reach the agent service"),
        ({"endpoint": "wss://127.0.0.1:9"}, "unreachable", "cannot reach the agent service"),
        ({"ca_file": "stranger"}, "tls", "CERTIFICATE_VERIFY_FAILED"),
    ],
)
async def test_a_service_that_is_not_there_is_told_in_words(
    tmp_path: Path, log: Log, wrong: dict[str, Any], code: str, words: str
) -> None:
    if "ca_file" in wrong:
        (tmp_path / "other").mkdir()
        wrong = {"ca_file": str(certificate(tmp_path / "other", "127.0.0.1")[1])}
    async with gateway(tmp_path, **wrong) as (service, front):
        await failed(service, front)
    # Names are looked up there.
    await asyncio.get_running_loop().shutdown_default_executor()
    line = reported(log)[code]
    assert words in line["message"]
    assert line["where"].startswith("wss://")
    assert "runtime.google.endpoint" in line["hint"]
