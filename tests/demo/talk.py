"""A conversation with the demo in text: the real runtime session behind an in-memory link."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway import bidi
from gateway.agent.app.read import read_app
from gateway.agent.link import memory_links
from gateway.agent.runner import ThreadRunner
from gateway.agent.session import serve_link
from gateway.call.events import (
    InputType,
    RuntimeEndSession,
    RuntimePayload,
    RuntimeText,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.config import load
from gateway.demo import APP_PATH
from gateway.runtime.client import RuntimeClient

SESSION = "projects/demo/locations/local/apps/northlight/sessions/text-test"
TIMEOUT_S = 20.0

SHORTER = {
    "tools/check_line/python_function/python_code.py": ("TEST_SECONDS = 8", "TEST_SECONDS = 0.2"),
    "tools/book_engineer/python_function/python_code.py": (
        "BOOKING_SECONDS = 11",
        "BOOKING_SECONDS = 0.5",
    ),
    "scripted_model.yaml": ("wait: 2500ms", "wait: 100ms"),
}


@dataclass(slots=True)
class Turn:
    """What the agent gave in one turn, in order: texts and payloads; and the end, if it came."""

    parts: list[str | Mapping[str, Any]] = field(default_factory=list)
    end: Mapping[str, Any] | None = None

    @property
    def texts(self) -> list[str]:
        """The spoken texts."""
        return [part for part in self.parts if isinstance(part, str)]

    @property
    def said(self) -> str:
        """The spoken texts in one line."""
        return " ".join(self.texts)

    @property
    def payloads(self) -> list[Mapping[str, Any]]:
        """The payloads."""
        return [part for part in self.parts if not isinstance(part, str)]


class Talk:
    """The caller's side."""

    def __init__(self, client: RuntimeClient) -> None:
        self._client = client
        self._outputs = client.outputs()

    def send(self, kind: InputType, text: str) -> None:
        """Give an input and do not wait."""
        self._client.send(ToRuntime(kind, text=text))

    def interrupt(self, text: str) -> None:
        """The caller starts to speak: `text` opens a turn that the next words complete."""
        self._client.send(ToRuntime(InputType.TEXT, text=text, will_continue=True))

    async def say(self, text: str) -> Turn:
        """The caller's words, and the agent's whole answer."""
        self.send(InputType.TEXT, text)
        return await self.turn()

    async def silent(self) -> Turn:
        """A silence of eight seconds, and the agent's answer."""
        return await self.say(bidi.inactivity_text(8))

    async def press(self, digits: str) -> Turn:
        """Keys that the gateway has collected, and the agent's answer."""
        self.send(InputType.DTMF, digits)
        return await self.turn()

    async def turn(self) -> Turn:
        """The next whole turn; after an `end_session` the end of the session belongs to it."""
        turn = Turn()
        async with asyncio.timeout(TIMEOUT_S):
            async for output in self._outputs:
                if isinstance(output, RuntimeText):
                    turn.parts.append(output.text)
                elif isinstance(output, RuntimePayload):
                    turn.parts.append(output.payload)
                elif isinstance(output, RuntimeTurnCompleted):
                    return turn
        raise AssertionError("the session ended within a turn")

    async def end(self) -> Mapping[str, Any]:
        """The metadata of the session's end, which must come next."""
        async with asyncio.timeout(TIMEOUT_S):
            async for output in self._outputs:
                assert isinstance(output, RuntimeEndSession), output
                return output.metadata
        raise AssertionError("the session closed without an end")


def quick_app(folder: Path) -> Path:
    """A copy of the demo whose slow tools take fractions of a second."""
    copy = folder / "app"
    shutil.copytree(APP_PATH, copy)
    for name, (slow, quick) in SHORTER.items():
        text = (copy / name).read_text(encoding="utf-8")
        assert text.count(slow) == 1
        (copy / name).write_text(text.replace(slow, quick), encoding="utf-8")
    return copy


SETTINGS = load(flags=["log.app_output=true"])
"""The app's own log lines are part of what it does."""


@asynccontextmanager
async def talking(folder: Path, **variables: Any) -> AsyncIterator[tuple[Talk, Turn]]:
    """A started conversation, and the turn of its greeting."""
    runner = ThreadRunner()
    near, far = memory_links()
    served = asyncio.create_task(serve_link(far, read_app(quick_app(folder)), SETTINGS, runner))

    async def connect() -> Any:
        return near

    client = RuntimeClient(SESSION, {}, connect)
    try:
        await client.open()
        talk = Talk(client)
        if variables:
            client.send(ToRuntime(InputType.VARIABLES, data=variables))
        talk.send(InputType.EVENT, bidi.SESSION_START)
        yield talk, await talk.turn()
    finally:
        await client.aclose()
        async with asyncio.timeout(TIMEOUT_S):
            await served
        await runner.aclose()
