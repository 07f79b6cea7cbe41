"""Server tests run on both loops, over real sockets, against a call that echoes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import uvloop

from gateway.config import load
from gateway.server.app import Gateway
from tests.server.echo import EchoCalls

Serve = Callable[..., Awaitable[Gateway]]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """asyncio and uvloop: a connection changes hands differently on each."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def calls() -> EchoCalls:
    """Every call that the server made."""
    return EchoCalls()


@pytest.fixture
async def serve(calls: EchoCalls) -> AsyncIterator[Serve]:
    """Start gateways on free ports: `await serve({"server.max_calls": 1})`."""
    running: list[Gateway] = []

    async def start(over: Mapping[str, Any] | None = None, **more: Any) -> Gateway:
        nested: dict[str, Any] = {"server": {"port": 0, "shutdown_s": 0.5}}
        for key, value in (over or {}).items():
            *path, name = key.split(".")
            section = nested
            for part in path:
                section = section.setdefault(part, {})
            section[name] = value
        gateway = Gateway(load(overrides=nested), calls.make, **more)
        calls.observers = gateway.observers
        await gateway.start()
        running.append(gateway)
        return gateway

    yield start
    for gateway in running:
        await gateway.stop()
        assert gateway.active == 0, "a line is still held"
        assert not gateway._sockets
