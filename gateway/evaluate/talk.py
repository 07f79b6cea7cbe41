"""A conversation with the runtime in text: the client's side of BidiRunSession."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway import bidi
from gateway.agent.app.evaluations import UserInput
from gateway.agent.app.models import END_SESSION
from gateway.agent.prompt import tool_name
from gateway.errors import RuntimeFailure
from gateway.evaluate.observed import Observed, messages_of
from gateway.runtime.link import RuntimeLink

Connect = Callable[[], Awaitable[RuntimeLink]]
SESSION = "projects/local/locations/local/apps/local/sessions/"
END_S = 2.0
"""How long the end of a session may take to follow the turn that asked for it."""
NO_CLIENT = "no client is there to run this function; give its toolResponse in the evaluation"


class Talk:
    """One session. What the agent does goes to `observed`, which the caller may replace."""

    def __init__(self, connect: Connect, session: str, turn_s: float) -> None:
        self.observed = Observed()
        self.history: list[Mapping[str, Any]] = []
        """All that happened, as Messages of the wire."""
        self.answers: Sequence[Mapping[str, Any]] = ()
        """ToolResponses for the functions that the agent asks the client to run."""
        self._connect = connect
        self._session = session
        self._turn_s = turn_s
        self._link: RuntimeLink | None = None
        self._links = 0

    @property
    def ended(self) -> bool:
        """Whether the agent has ended the session."""
        return self.observed.end is not None

    async def open(self, **config: Any) -> None:
        """Connect and send the configuration. Raises RuntimeFailure."""
        await self.aclose()
        self._links += 1
        session = SESSION + bidi.session_part(f"{self._session}-{self._links}")
        self._link = await self._connect()
        await self._link.send({"config": {"session": session, **config}})

    async def send(self, given: UserInput) -> None:
        """Send what the user does, and wait for the turn that answers it. Raises RuntimeFailure."""
        assert self._link is not None
        await self._link.send({"realtimeInput": dict(given.message)})
        if given.complete:
            await self.turn()

    async def turn(self) -> None:
        """Wait until a turn is complete or the session has ended. Raises RuntimeFailure."""
        turns = self.observed.turns
        try:
            async with asyncio.timeout(self._turn_s):
                while self.observed.turns == turns and not self.ended:
                    await self._receive()
        except TimeoutError:
            raise RuntimeFailure(
                "runtime.silent", f"the agent completed no turn within {self._turn_s:g} s"
            ) from None
        if any(call.name == END_SESSION for call in self.observed.calls):
            # The end follows the turn that asked for it, unless a callback was against it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    while not self.ended:
                        await self._receive()

    async def _receive(self) -> None:
        assert self._link is not None
        message = await self._link.receive()
        if message is None:
            raise RuntimeFailure("runtime.lost", "the runtime has closed the session")
        self.observed.take(message)
        self.history += messages_of(message)
        output = bidi.get(message, "sessionOutput") or {}
        calls = (bidi.get(output, "toolCalls") or {}).get("toolCalls") or ()
        if calls:
            answers = [self._answer(call) for call in calls]
            await self._link.send({"realtimeInput": {"toolResponses": {"toolResponses": answers}}})

    def _answer(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The client's answer to a function call, from the evaluation."""
        name = tool_name(call)
        response = next(
            (one.get("response") for one in self.answers if tool_name(one) == name),
            {"error": NO_CLIENT},
        )
        named = {key: call[key] for key in ("id", "tool", "toolsetTool") if key in call}
        return {**named, "response": response}

    async def aclose(self) -> None:
        """Leave the session."""
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()


def responses(given: UserInput) -> list[Mapping[str, Any]]:
    """The tool responses that a user input holds."""
    return list(given.value.get("toolResponses") or ()) if given.kind == "toolResponses" else []
