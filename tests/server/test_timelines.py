"""Timelines are kept in bounds and can be followed to their end."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.server.timelines import Timelines

pytestmark = pytest.mark.asyncio(loop_factories=["uvloop"])


def kinds(lines: list[bytes] | None) -> list[str]:
    return [json.loads(line)["kind"] for line in lines or []]


async def test_lines_are_json_with_time_and_kind_first() -> None:
    timelines = Timelines()
    timelines.record("c", 1.23456789, "dtmf", {"digits": "1", "odd": b"xyz", "ids": (1, 2)})
    assert timelines.lines("c") == [
        b'{"t":1.234568,"kind":"dtmf","digits":"1","odd":"3 bytes","ids":[1,2]}\n'
    ]
    assert timelines.lines("other") is None


async def test_the_oldest_call_goes_and_a_long_call_is_cut() -> None:
    timelines = Timelines(max_calls=2, max_lines=3)
    for call in ("a", "b", "c"):
        timelines.record(call, 0, "call_started", {})
    assert timelines.lines("a") is None
    for _ in range(5):
        timelines.record("c", 1, "dtmf", {})
    assert kinds(timelines.lines("c")) == ["call_started", "dtmf", "truncated"]


async def test_a_follower_gets_everything_until_the_end() -> None:
    timelines = Timelines()
    timelines.record("c", 0, "call_started", {})
    got: list[bytes] = []

    async def follow() -> None:
        async for chunk in timelines.follow("c"):
            got.extend(chunk.splitlines())

    task = asyncio.create_task(follow())
    await asyncio.sleep(0)
    timelines.record("c", 1, "user_text", {"text": "hi"})
    await asyncio.sleep(0)
    timelines.record("c", 2, "call_ended", {})
    timelines.ended("c")
    await task
    assert kinds(got) == ["call_started", "user_text", "call_ended"]
    assert timelines.followable


async def test_a_new_call_of_the_same_name_ends_the_old_one_s_followers() -> None:
    timelines = Timelines()
    timelines.record("c", 0, "call_started", {"n": 1})
    follower = timelines.follow("c")
    assert b'"n":1' in await anext(follower)
    timelines.record("c", 0, "call_started", {"n": 2})
    assert [chunk async for chunk in follower] == []
    assert kinds(timelines.lines("c")) == ["call_started"]


async def test_waiting_for_a_call_that_comes_or_does_not() -> None:
    timelines = Timelines()
    waiter = asyncio.create_task(timelines.wait_known("c", 5))
    await asyncio.sleep(0)
    timelines.record("other", 0, "call_started", {})
    timelines.record("c", 0, "call_started", {})
    assert await waiter
    assert not await timelines.wait_known("never", 0)
