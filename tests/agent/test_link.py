"""Links in memory: order, closing, back-pressure."""

from __future__ import annotations

import asyncio

from gateway.agent import link
from gateway.agent.link import memory_links


async def test_messages_arrive_in_order_also_after_the_close() -> None:
    near, far = memory_links()
    await near.send({"a": 1})
    await near.send({"a": 2})
    await near.aclose(1007, "reason")
    await near.send({"a": 3})
    assert [await far.receive() for _ in range(3)] == [{"a": 1}, {"a": 2}, None]
    await far.aclose()
    assert (far.close_code, far.close_reason) == (1007, "reason")


async def test_a_waiting_reader_and_a_waiting_sender_see_the_close() -> None:
    near, far = memory_links()
    reading = asyncio.ensure_future(near.receive())
    for _ in range(link.QUEUE_SIZE):
        await near.send({})
    sending = asyncio.ensure_future(near.send({}))
    await asyncio.sleep(0)
    assert not sending.done()
    await far.aclose()
    await sending
    assert await reading is None


async def test_a_full_link_takes_more_once_it_is_read() -> None:
    near, far = memory_links()
    for number in range(link.QUEUE_SIZE):
        await near.send({"n": number})
    sending = asyncio.ensure_future(near.send({"n": link.QUEUE_SIZE}))
    await asyncio.sleep(0)
    assert not sending.done()
    numbers = [await far.receive() for _ in range(link.QUEUE_SIZE + 1)]
    assert numbers == [{"n": number} for number in range(link.QUEUE_SIZE + 1)]
    await sending
