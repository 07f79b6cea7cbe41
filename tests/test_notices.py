"""Word of a call's end arrives once, signed, and never keeps a call or the server waiting."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from gateway.channels.base import EndReason, Started
from gateway.config import Settings
from gateway.notice_settings import NoticeSettings
from gateway.notices import MAX_PARAMS_BYTES, SIGNATURE, TIMESTAMP, CallNotice, Notices
from tests.platforms.rest_server import RestServer, rest_server

SECRET = "a secret of the operator"
NOW_S = 1_700_000_000.0


@asynccontextmanager
async def notices(
    server: RestServer, lost: list[str] | None = None, **over: Any
) -> AsyncIterator[Notices]:
    settings = {"url": f"{server.url}/ended", "secret": SECRET, "retry_s": 0.001, **over}
    made = Notices(
        NoticeSettings(**settings),
        lambda call_id, _: f"sessions/{call_id}",
        (lost if lost is not None else []).append,
        wall_clock=lambda: NOW_S,
    )
    try:
        yield made
    finally:
        await made.aclose()


def over(told: Notices, metadata: Mapping[str, Any] | None = None) -> CallNotice:
    """A call that has ended with this."""
    started = Started("c1", from_="+15550100", to="+15550199", account="AC1")
    notice = told.begin("twilio", started)
    notice.note("runtime_output", {"type": "endSession", "payload": metadata or {}})
    told.ended(notice, EndReason.COMPLETED)
    return notice


async def test_a_call_s_end_is_told_with_what_the_agent_left() -> None:
    said = {"reason": "done", "session_escalated": True, "params": {"order": 7, "list": [1]}}
    async with rest_server() as server:
        async with notices(server) as told:
            over(told, said)
        (asked,) = server.asked
    body = json.loads(asked.body)
    assert len(body.pop("id")) == 32
    assert body == {
        "event": "call.ended",
        "call_id": "c1",
        "session": "sessions/c1",
        "dialect": "twilio",
        "account": "AC1",
        "started_at": "2023-11-14T22:13:20+00:00",
        "seconds": 0.0,
        "reason": "completed",
        "transfer_target": "",
        "agent_reason": "done",
        "session_escalated": True,
        "params": {"order": 7, "list": [1]},
    }


async def test_numbers_are_told_only_where_that_is_wanted() -> None:
    async with rest_server() as server:
        async with notices(server, numbers=True) as told:
            over(told)
        body = json.loads(server.asked[0].body)
    assert (body["from"], body["to"]) == ("+15550100", "+15550199")


async def test_params_beyond_reason_are_left_out_and_that_is_said() -> None:
    async with rest_server() as server:
        async with notices(server) as told:
            over(told, {"params": {"story": "x" * MAX_PARAMS_BYTES}})
        body = json.loads(server.asked[0].body)
    assert (body["params"], body["params_left_out"]) == ({}, True)


async def test_what_cannot_be_told_at_all_harms_no_call() -> None:
    lost: list[str] = []
    async with rest_server() as server:
        async with notices(server, lost) as told:
            over(told, {"params": {"number": 1 << 70}})
        assert server.asked == []
    assert lost == ["internal.notice"]


async def test_it_is_signed_over_time_and_body() -> None:
    got: list[tuple[Mapping[str, str], bytes]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.headers.copy(), await request.read()))
        return web.Response()

    app = web.Application()
    app.router.add_post("/ended", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with notices(RestServer(f"http://127.0.0.1:{runner.addresses[0][1]}")) as told:
            over(told)
    finally:
        await runner.cleanup()
    ((headers, body),) = got
    signed = f"{int(NOW_S)}.".encode() + body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers[TIMESTAMP] == str(int(NOW_S))
    assert headers[SIGNATURE] == f"v1={expected}"
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [500, 503, 408, 425, 429])
async def test_trouble_that_passes_is_sat_out_with_the_same_notice(status: int) -> None:
    lost: list[str] = []
    async with rest_server() as server:
        server.will(status)
        server.will(status)
        async with notices(server, lost) as told:
            over(told)
        assert len(server.asked) == 3
        assert len({asked.body for asked in server.asked}) == 1, "the id tells that it is one"
    assert lost == []


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
async def test_a_refusal_is_final_and_no_redirect_is_followed(status: int) -> None:
    lost: list[str] = []
    async with rest_server() as server:
        server.will(status, "", Location="/elsewhere")
        async with notices(server, lost) as told:
            over(told)
        assert len(server.asked) == 1
    assert lost == ["notice.refused"]


async def test_nobody_there_is_given_up() -> None:
    lost: list[str] = []
    async with notices(RestServer("http://127.0.0.1:1"), lost, give_up_s=0.05) as told:
        over(told)
    assert lost == ["notice.unreachable"]


async def test_the_newest_are_lost_where_too_many_wait() -> None:
    lost: list[str] = []
    async with rest_server() as server:
        server.hold = asyncio.Event()
        async with notices(server, lost, max_waiting=2) as told:
            for _ in range(3):
                over(told)
            assert lost == ["notice.full"]
            server.hold.set()
        assert len(server.asked) == 2


async def test_closing_waits_for_its_time_only() -> None:
    lost: list[str] = []
    async with rest_server() as server:
        server.hold = asyncio.Event()
        async with notices(server, lost, shutdown_s=0.05) as told:
            over(told)
    assert lost == ["notice.shutdown"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NoticeSettings(url="https://crm.example.com"),
        lambda: NoticeSettings(url="https://crm.example.com", secret="short"),  # type: ignore[arg-type]
        lambda: NoticeSettings(url="ftp://crm.example.com", secret=SECRET),  # type: ignore[arg-type]
        lambda: NoticeSettings(url="/ended", secret=SECRET),  # type: ignore[arg-type]
    ],
)
def test_it_takes_an_address_and_a_secret(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValidationError):
        wrong()
    assert Settings().notices.url is None
