"""Refusals stand in the log: what, where and the way out, without a secret and without a flood."""

from __future__ import annotations

from http import HTTPStatus

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
        "server": {"public_origin": "https://voice.example.com"},
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
    assert line["route"] == "/twilio/voice"
    assert line["remote"] == "127.0.0.1"
    assert line["message"]
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
    assert line["route"] == "/twilio/media/{token}"
    assert "abc.def" not in str(line)


def test_a_flood_is_counted_in_the_next_line() -> None:
    clock = Clock()
    refusals = Refusals(Metrics(), clock)
    error = AuthError("auth.token", "the token is not genuine")
    with capture_logs() as lines:
        for _ in range(LINES_PER_S + 7):
            refusals.tell(error, "/raw/media", "192.0.2.1")
        clock.now += 1
        refusals.tell(error, "/raw/media", "192.0.2.1")
    assert len(lines) == LINES_PER_S + 1
    assert "left_out" not in lines[0]
    assert lines[-1]["left_out"] == 7
