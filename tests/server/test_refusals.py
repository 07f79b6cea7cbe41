"""Refusals stand in the log: what, where and the way out, without a secret and without a flood."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from structlog.testing import capture_logs

from gateway.errors import AuthError
from gateway.server.metrics import Metrics
from gateway.server.refusals import LINES_PER_S, Refusals
from tests.server.conftest import Serve
from tests.server.wire import request

TOKEN = "x" * 40


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_webhook_with_a_wrong_signature_is_one_line(serve: Serve) -> None:
    over = {
        "server.public_origin": "https://voice.example.com",
        "platforms": {"twilio": {"auth_tokens": [TOKEN]}},
    }
    gateway = await serve(over)
    with capture_logs() as lines:
        status, _, _ = await request(
            gateway,
            "POST",
            "/twilio/voice",
            headers={
                "X-Twilio-Signature": "c2VjcmV0",
                "Content-Type": "application/x-www-form-urlencoded",
            },
            data=b"CallSid=CA1&From=%2B15550100",
        )
    assert status == HTTPStatus.FORBIDDEN
    (line,) = [line for line in lines if line["event"] == "call.refused"]
    assert line["code"].startswith("auth.")
    assert (line["route"], line["dialect"]) == ("/twilio/voice", "twilio")
    assert (line["status"], line["remote"]) == (403, "127.0.0.1")
    assert line["message"]
    assert "platforms.twilio.auth_tokens" in line["hint"]
    told = str(line)
    assert TOKEN not in told
    assert "c2VjcmV0" not in told
    assert "15550100" not in told


async def test_a_socket_with_a_forged_token_is_one_line_without_the_token(serve: Serve) -> None:
    gateway = await serve()
    with capture_logs() as lines:
        status, _, _ = await request(
            gateway,
            "GET",
            "/twilio/media/abc.def",
            headers={
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            },
        )
    assert status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    (line,) = [line for line in lines if line["event"] == "call.refused"]
    assert (line["route"], line["dialect"]) == ("/twilio/media/{token}", "twilio")
    assert "abc.def" not in str(line)


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "route"),
    [
        ("POST", "/twilo/voice", 404, "http.not_found", "/twilo/voice"),
        ("GET", f"/twilo/media/{TOKEN}?x=1", 404, "http.not_found", "/twilo/media/…"),
        ("GET", "/vonage/answr/15550100?from=15550100", 404, "http.not_found", "/vonage/answr/…"),
        ("GET", "/twilio/voice", 405, "http.method", "/twilio/voice"),
        ("POST", "/twilio/voice", 400, "protocol.form", "/twilio/voice"),
        ("GET", "/raw/media", 426, "http.websocket", "/raw/media"),
        ("GET", "/calls/CA1/timeline", 401, "auth.missing", "/calls/{call_id}/timeline"),
    ],
)
async def test_whatever_is_refused_is_told_with_the_way_out(
    serve: Serve, method: str, path: str, status: int, code: str, route: str
) -> None:
    gateway = await serve({"auth": {"tokens": [TOKEN]}})
    with capture_logs() as lines:
        answered, _, _ = await request(gateway, method, path)
    assert answered == status
    (line,) = [line for line in lines if line["event"] == "call.refused"]
    assert (line["status"], line["code"], line["route"]) == (status, code, route)
    assert line["log_level"] == "warning"
    assert line["hint"] or "(CallSid)" in line["message"]
    assert TOKEN not in str(line)
    assert "15550100" not in str(line)


async def test_who_only_looks_around_is_no_line(serve: Serve) -> None:
    gateway = await serve()
    with capture_logs() as lines:
        assert (await request(gateway, "GET", "/favicon.ico"))[0] == 404
        assert (await request(gateway, "GET", "/healthz"))[0] == 200
    assert not [line for line in lines if line["event"] == "call.refused"]


async def test_a_server_that_drains_says_whom_it_turns_away(serve: Serve) -> None:
    gateway = await serve()
    gateway._admission.drain()
    with capture_logs() as lines:
        status, _, _ = await request(gateway, "POST", "/twilio/voice", data={"CallSid": "CA1"})
    assert status == 503
    (line,) = [line for line in lines if line["event"] == "call.refused"]
    assert (line["status"], line["code"], line["dialect"]) == (503, "admission.draining", "twilio")


async def test_behind_a_trusted_proxy_the_line_names_who_called_it(serve: Serve) -> None:
    gateway = await serve({"auth": {"trusted_proxies": ["127.0.0.1"]}})
    with capture_logs() as lines:
        await request(gateway, "POST", "/twilio/voice", headers={"X-Forwarded-For": "203.0.113.7"})
    (line,) = [line for line in lines if line["event"] == "call.refused"]
    assert line["remote"] == "203.0.113.7"


def test_a_flood_is_counted_in_the_next_line() -> None:
    clock = Clock()
    refusals = Refusals(Metrics(), clock)
    error = AuthError("auth.token", "the token is not genuine")
    with capture_logs() as lines:
        for _ in range(LINES_PER_S + 7):
            refusals.tell(error, "192.0.2.1", "/raw/media")
        clock.now += 1
        refusals.tell(error, "192.0.2.1", "/raw/media")
    assert len(lines) == LINES_PER_S + 1
    assert "left_out" not in lines[0]
    assert lines[-1]["left_out"] == 7
