"""One text session with the runtime: a line goes in, what the agent does is shown as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway import bidi
from gateway.agent.app.models import END_SESSION
from gateway.cli.talk_input import Said
from gateway.cli.talk_view import View
from gateway.config import Settings
from gateway.errors import RuntimeFailure
from gateway.evaluate.observed import Observed
from gateway.evaluate.talk import END_S
from gateway.runtime.link import RuntimeLink

T = TypeVar("T")

NO_CLIENT = "nobody is there to run this function: the talk is text only"


class TalkSession:
    """A session over one link. What comes is shown at once, also while nobody waits for it."""

    def __init__(self, link: RuntimeLink, name: str, view: View, settings: Settings) -> None:
        self._link = link
        self._name = name
        self._view = view
        self._limits = settings.runtime
        self._observed = Observed()
        self._changed = asyncio.Event()
        self._receiving: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether the agent has ended the session."""
        return self._observed.end is not None

    async def open(self) -> None:
        """Begin the session; the agent speaks first. Raises RuntimeFailure."""
        await self._link.send({"config": {"session": self._name}})
        self._receiving = asyncio.create_task(self._receive(), name="talk-receive")
        self._receiving.add_done_callback(lambda _: self._changed.set())
        start = bidi.event_text(bidi.SESSION_START)
        await self.say(Said({"event": {"event": bidi.SESSION_START}}, start))

    async def say(self, given: Said) -> None:
        """Send an input and wait for the turn that answers it. Raises RuntimeFailure."""
        heard = self._observed.heard
        before = heard.count(given.heard)
        await self._link.send({"realtimeInput": dict(given.message)})
        if not given.heard:
            return
        limit_s = self._limits.turn_timeout_s
        try:
            await self._until(lambda: heard.count(given.heard) > before, limit_s)
        except TimeoutError:
            raise RuntimeFailure(
                "runtime.silent", f"the agent completed no turn within {limit_s:g} s"
            ) from None
        if any(call.name == END_SESSION for call in self._observed.calls):
            # The end follows the turn that asked for it, unless a callback was against it.
            with contextlib.suppress(TimeoutError):
                await self._until(lambda: False, END_S)
            self._observed.calls.clear()

    async def settle(self) -> None:
        """Wait for asynchronous tools that still run: their results belong to the talk."""
        with contextlib.suppress(TimeoutError):
            await self._until(
                lambda: self._observed.pending <= 0, self._limits.async_tool_timeout_s
            )

    async def unless_ended(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`; None where the session ends first. Raises RuntimeFailure."""
        task = asyncio.create_task(work)
        assert self._receiving is not None
        try:
            await asyncio.wait((task, self._receiving), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            self._receiving.result()
            return None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _until(self, done: Callable[[], bool], limit_s: float) -> None:
        """Wait until `done`, or the session has ended. Raises TimeoutError, RuntimeFailure."""
        assert self._receiving is not None
        async with asyncio.timeout(limit_s):
            while not done() and not self.ended:
                if self._receiving.done():
                    self._receiving.result()
                    return
                self._changed.clear()
                await self._changed.wait()

    async def _receive(self) -> None:
        while not self.ended:
            message = await self._link.receive()
            if message is None:
                raise RuntimeFailure("runtime.lost", "the runtime has closed the session")
            self._view.show(message)
            self._observed.take(message)
            self._changed.set()
            await self._refuse_functions(message)

    async def _refuse_functions(self, message: dict[str, Any]) -> None:
        """Answer calls of client functions, so that the agent can go on."""
        calls = ((message.get("sessionOutput") or {}).get("toolCalls") or {}).get("toolCalls") or ()
        if calls:
            answers = [
                {"id": call["id"], "tool": call["tool"], "response": {"error": NO_CLIENT}}
                for call in calls
            ]
            await self._link.send({"realtimeInput": {"toolResponses": {"toolResponses": answers}}})

    async def aclose(self) -> None:
        """Leave the session; bounded; never raises."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.gather(self._receiving, return_exceptions=True)
        await self._link.aclose()
