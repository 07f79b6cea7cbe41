"""What parts become on the wire, and that a cancelled turn is silent."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.platform import Part
from gateway.agent.turn import Turn, TurnCancelled, clean_json, clean_text, output_of


def test_parts_on_the_wire() -> None:
    assert output_of(Part(text="a")) == {"text": "a"}
    assert output_of(Part(text="")) is None
    assert output_of(Part()) is None
    assert output_of(Part.from_json('{"a": 1}')) == {"payload": {"a": 1}}
    assert output_of(Part.from_json("[1]")) is None
    assert output_of(Part.from_json("{")) is None
    assert output_of(Part.from_inline_data(b"x", "image/png")) is None
    customized = output_of(Part.from_customized_response(content="c"))
    assert customized is not None
    assert customized["payload"]["customizedResponse"]["content"] == "c"


async def test_a_cancelled_turn_sends_one_completion_and_nothing_more() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    turn = Turn(3, send)
    await turn.emit(Part(text="a"))
    waiting = asyncio.ensure_future(turn.interruptible(asyncio.sleep(60)))
    also = asyncio.ensure_future(turn.interruptible(asyncio.sleep(60)))
    await asyncio.sleep(0)
    await turn.cancel()
    await turn.cancel()
    for task in (waiting, also):
        with pytest.raises(TurnCancelled):
            await task
    with pytest.raises(TurnCancelled):
        await turn.emit(Part(text="b"))
    with pytest.raises(TurnCancelled):
        await turn.interruptible(asyncio.sleep(60))
    await turn.complete()
    assert sent == [
        {"sessionOutput": {"text": "a", "turnIndex": 3}},
        {"sessionOutput": {"turnIndex": 3, "turnCompleted": True}},
    ]


@given(st.text(alphabet=st.characters(), max_size=20))
def test_any_text_can_be_sent(text: str) -> None:
    orjson.dumps(clean_text(text))


_values = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(), max_size=5)
    | st.binary(max_size=3)
    | st.sets(st.integers(), max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(_values)
def test_whatever_a_tool_returns_can_be_sent(value: Any) -> None:
    orjson.dumps(clean_json(value))


async def test_an_abandoned_turn_stops_waiting_and_tells_nobody() -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    turn = Turn(1, send)
    waiting = asyncio.ensure_future(turn.interruptible(asyncio.sleep(60)))
    await asyncio.sleep(0)
    turn.abandon()
    with pytest.raises(TurnCancelled):
        await waiting
    await turn.complete()
    await turn.cancel()
    assert sent == []
