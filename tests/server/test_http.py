"""The pages: health, figures, webhook, timelines."""

from __future__ import annotations

import asyncio
import json
from xml.etree import ElementTree

import aiohttp
import pytest

from gateway.channels.twiml import connect_stream
from tests.server.conftest import Serve
from tests.server.echo import EchoCalls, until
from tests.server.wire import NATIVE, error_code, raw, request, start_native, websocket

FILLING = {"text": "x" * 3000}


async def test_the_page_says_what_is_served(serve: Serve) -> None:
    gateway = await serve(about="App: demo")
    status, _, body = await request(gateway, "GET", "/")
    assert status == 200
    text = body.decode()
    assert "App: demo" in text
    assert f"ws://127.0.0.1:{gateway.port}{NATIVE[:-2]}{{location}}" in text
    assert f"http://127.0.0.1:{gateway.port}/twilio/voice" in text


async def test_ready_only_while_calls_are_taken(serve: Serve) -> None:
    states = {"ready": False}
    gateway = await serve(ready=lambda: states["ready"])
    assert (await request(gateway, "GET", "/readyz"))[0] == 503
    states["ready"] = True
    assert (await request(gateway, "GET", "/readyz"))[0] == 200
    gateway._admission.drain()
    status, _, body = await request(gateway, "GET", "/readyz")
    assert (status, json.loads(body)["status"]) == (503, "draining")
    status, headers, body = await request(gateway, "POST", "/twilio/voice", data={"CallSid": "CA1"})
    assert (status, headers["Retry-After"]) == (503, "5")
    assert error_code(body) == "admission.draining"


async def test_metrics_are_prometheus_text(serve: Serve) -> None:
    gateway = await serve()
    status, headers, body = await request(gateway, "GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"voice_gateway_calls_active 0.0" in body


async def test_the_webhook_answers_twiml_with_the_caller_s_numbers(serve: Serve) -> None:
    gateway = await serve()
    form = {"CallSid": "CA1", "From": '+1<"&', "To": "sip:a@b"}
    status, headers, body = await request(gateway, "POST", "/twilio/voice", data=form)
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/xml")
    stream = ElementTree.fromstring(body).find("Connect/Stream")
    assert stream is not None
    assert stream.attrib["url"].startswith(f"ws://127.0.0.1:{gateway.port}/twilio/media/")
    assert {item.attrib["name"]: item.attrib["value"] for item in stream} == {
        "callSid": "CA1",
        "from": '+1<"&',
        "to": "sip:a@b",
    }


def test_twiml_leaves_out_what_the_platform_would_refuse() -> None:
    body = connect_stream("wss://h/x", {"long": "y" * 600, "odd": "a\x00\x1fb", "none": ""})
    stream = ElementTree.fromstring(body).find("Connect/Stream")
    assert stream is not None
    assert [item.attrib for item in stream] == [{"name": "odd", "value": "ab"}]


async def test_bad_requests_get_codes(serve: Serve) -> None:
    gateway = await serve({"server.max_body_bytes": 10000, "server.head_timeout_s": 0.3})
    for method, path, more, status, code in (
        ("GET", "/nowhere", {}, 404, "http.not_found"),
        ("GET", "/twilio/voice", {}, 405, "http.method"),
        ("DELETE", "/healthz", {}, 405, "http.method"),
        ("POST", "/twilio/voice", {"data": {"From": "1"}}, 400, "protocol.form"),
        ("POST", "/twilio/voice", {"data": {"CallSid": "a b"}}, 400, "protocol.form"),
        ("POST", "/twilio/voice", {"data": b"\xff\xfe"}, 400, "http.form"),
        ("POST", "/twilio/voice", {"data": "a=1&" * 300}, 400, "http.form"),
        ("POST", "/twilio/voice", {"data": b"x" * 20000}, 413, "http.body_too_large"),
        ("GET", "/calls/unknown/timeline", {}, 404, "http.no_call"),
    ):
        answer = await request(gateway, method, path, **more)
        assert (answer[0], error_code(answer[2])) == (status, code)
        assert answer[1]["Connection"] == "close"
    slow = b"POST /twilio/voice HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nCallSid="
    assert error_code(await raw(gateway, slow)) == "http.slow"
    assert (await request(gateway, "HEAD", "/healthz"))[0] == 200


async def test_a_fault_in_a_page_shows_no_traceback(serve: Serve) -> None:
    def fail() -> bool:
        raise ZeroDivisionError("inner words")

    gateway = await serve(ready=fail)
    status, _, body = await request(gateway, "GET", "/readyz")
    assert (status, error_code(body)) == (500, "internal.http")
    assert b"inner words" not in body


async def test_a_timeline_is_followed_from_before_the_call_to_its_end(
    serve: Serve, calls: EchoCalls
) -> None:
    gateway = await serve()

    async def follow() -> list[str]:
        _, headers, body = await request(gateway, "GET", "/calls/call-0001/timeline?follow=1")
        assert headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line)["kind"] for line in body.splitlines()]

    follower = asyncio.create_task(follow())
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
    assert await follower == ["call_started", "call_ended"]
    _, _, body = await request(gateway, "GET", "/calls/call-0001/timeline")
    assert len(body.splitlines()) == 2


async def test_a_follower_that_leaves_is_let_go(serve: Serve, calls: EchoCalls) -> None:
    gateway = await serve()
    async with websocket(gateway, NATIVE) as client:
        await start_native(client)
        await until(lambda: calls.made and calls.made[0].started)
        async with (
            aiohttp.ClientSession() as session,
            session.get(gateway.url + "/calls/call-0001/timeline?follow=1") as response,
        ):
            assert await response.content.readline()
            assert gateway.observers.timelines._followers == 1
        await until(lambda: gateway.observers.timelines._followers == 0)


async def test_a_follower_that_never_reads_is_dropped(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.server.http.FOLLOWER_READ_S", 0.1)
    gateway = await serve()
    timelines = gateway.observers.timelines
    for _ in range(4000):
        timelines.record("c", 0, "call_started" if timelines.lines("c") is None else "x", FILLING)
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=1024)
    writer.write(b"GET /calls/c/timeline?follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await until(lambda: timelines._followers == 1)
    await until(lambda: timelines._followers == 0)
    writer.close()


async def test_timelines_hold_words_so_they_are_guarded(serve: Serve) -> None:
    gateway = await serve({"auth.tokens": ["sesame"]})
    assert (await request(gateway, "GET", "/calls/x/timeline"))[0] == 401
    assert (await request(gateway, "GET", "/calls/x/timeline?access_token=sesame"))[0] == 404
    private = await serve({"server.share_timeline": False})
    status, _, body = await request(private, "GET", "/calls/x/timeline")
    assert (status, error_code(body)) == (404, "http.not_shared")
