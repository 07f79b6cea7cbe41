"""What Google's client is given to read: events only, and nothing without end."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import pytest

from gateway.agent.models.base import ModelStep, joined
from gateway.agent.models.deltas import MAX_EVENT_BYTES
from gateway.agent.models.gemini import GeminiModel
from gateway.agent.models.gemini_wire import MAX_BODY_BYTES
from gateway.agent.models.remote import ModelFailure
from gateway.agent.platform import Content, LlmRequest, Part
from gateway.config import ModelSettings
from tests.agent.models.service import STREAM, Service, service

WORDS = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Good."}]}}]}
END = {"candidates": [{"finishReason": "STOP"}]}
BOMB = gzip.compress(bytes(64 << 20), 1)


@pytest.fixture
async def server() -> AsyncIterator[Service]:
    async with service() as running:
        yield running


async def asked(server: Service) -> list[str | None]:
    settings = ModelSettings.model_validate(
        {"provider": "gemini", "url": server.url, "api_key": "key", "attempts": 1}
    )
    request = LlmRequest(contents=[Content(parts=[Part(text="hello")], role="user")])
    model = GeminiModel(settings, "gemini-x")
    try:
        parts = [part async for part in model.generate(ModelStep(request, "Main", {}, {}))]
        return [part.text for part in joined(parts)]
    finally:
        await model.aclose()


async def failure_of(server: Service) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await asked(server)
    return caught.value


@pytest.mark.parametrize(
    "events",
    [
        ["\ufeff", WORDS, END],
        [": still here\n\n", WORDS, ":\n\n", END, ": over\n\n"],
        ["event: message\nid: 7\nretry: 100\n", WORDS, END],
        [f"data:{json.dumps(WORDS)}\r\n\r\n", f"data:{json.dumps(END)}\r\n\r\n"],
        [json.dumps(WORDS, indent=1).replace("\n", "\ndata: ").join(("data: ", "\n\n")), END],
        [": one\n" * 10_000, WORDS, END],
    ],
    ids=["mark", "comments", "other fields", "spelling", "lines", "many"],
)
async def test_what_a_proxy_may_put_into_a_stream(server: Service, events: list[object]) -> None:
    server.answer(*events)
    assert await asked(server) == ["Good."]


async def test_bytes_one_by_one(server: Service) -> None:
    text = f"\ufeff: café\ndata: {json.dumps(WORDS)}\n\ndata: {json.dumps(END)}\n\n"
    pieces = [piece for char in text for piece in (char, 0.0)]
    server.answer(*pieces)
    assert await asked(server) == ["Good."]


async def test_an_event_without_an_end(server: Service) -> None:
    server.answer("data: ", *["x" * (1 << 20)] * (1 + (MAX_EVENT_BYTES >> 20)), asyncio.Event())
    failure = await failure_of(server)
    assert failure.code == "model.broken"
    assert "StreamError" in failure.message


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("content_type", [STREAM, "application/json"])
async def test_an_answer_that_unpacks_to_far_more(
    server: Service, status: int, content_type: str
) -> None:
    assert len(BOMB) < MAX_BODY_BYTES
    headers = {"Content-Encoding": "gzip", "Content-Type": content_type}
    server.answer(raw=BOMB, status=status, headers=headers)
    failure = await failure_of(server)
    assert failure.code == "model.broken"
    # By the bound, and not by what all of it would mean.
    assert "StreamError" in failure.message or "ClientPayloadError" in failure.message


async def test_a_compressed_stream_is_read(server: Service) -> None:
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in (WORDS, END)).encode()
    headers = {"Content-Encoding": "gzip", "Content-Type": STREAM}
    server.answer(raw=gzip.compress(data), headers=headers)
    assert await asked(server) == ["Good."]
