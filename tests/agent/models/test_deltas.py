"""Server-sent events and deltas, however they are cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.models.deltas import MAX_EVENT_BYTES, Deltas, StreamError, events

STREAM = (
    ': hi\r\n\r\ndata: {"a":\ndata:1}\n\nevent: x\ndata: "größer"\r\n\r\n\n\ndata: [DONE]'.encode()
)


async def _events(*pieces: bytes) -> list[str]:
    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [event async for event in events(stream())]


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(at)]
    found = asyncio.run(_events(*pieces))
    assert found == ['{"a":\n1}', '"größer"', "[DONE]"]


async def test_an_event_without_end_is_an_error() -> None:
    with pytest.raises(StreamError):
        await _events(b"data: " + b"x" * MAX_EVENT_BYTES)


KEYS = (
    *("choices", "delta", "message", "content", "tool_calls", "function", "name", "text"),
    *("arguments", "index", "id", "finish_reason", "function_call"),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(ODD, max_size=4))
def test_no_delta_is_too_odd(deltas: list[Any]) -> None:
    made = Deltas()
    for delta in deltas:
        made.add({"choices": [{"delta": delta}]})
        made.add({"choices": delta})
    assert isinstance(made.rest(), str)
    assert all(isinstance(call.args, dict) for call in made.calls())


@given(st.text(st.sampled_from('{}[]":,1ae\\ '), max_size=20), st.integers(0, 20))
def test_arguments_are_an_object_or_a_fault(arguments: str, cut: int) -> None:
    made = Deltas()
    for function in ({"name": "f", "arguments": arguments[:cut]}, {"arguments": arguments[cut:]}):
        made.add({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": function}]}}]})
    (call,) = made.calls()
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    if isinstance(value, dict):
        assert (call.args, call.fault) == (value, None)
    elif arguments.strip():
        assert call.args == {}
        assert call.fault is not None
