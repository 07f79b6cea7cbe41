"""Client functions: the channel's client runs them and sends the result back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from gateway import bidi
from gateway.agent.conversation import Conversation
from gateway.agent.tools.catalog import Entry
from gateway.agent.turn import Turn, clean_json


class ClientCalls:
    """The calls of one session that wait for the client's answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def call(
        self,
        conversation: Conversation,
        turn: Turn,
        tool: Entry,
        args: Mapping[str, Any],
        call_id: str,
        deadline_s: float,
    ) -> Any:
        """The client's result, or `{"error": …}` at the deadline. Raises TurnCancelled."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        try:
            await turn.emit_tool_calls(
                [
                    {
                        "id": call_id,
                        "tool": f"{conversation.identity.app_name}/tools/{tool.name}",
                        "displayName": tool.name,
                        "args": clean_json(args),
                    }
                ]
            )
            return await turn.interruptible(asyncio.wait_for(future, deadline_s))
        except TimeoutError:
            return {"error": f"the client did not answer within {deadline_s:g} seconds"}
        finally:
            self._waiting.pop(call_id, None)

    def answer(self, responses: list[Any]) -> None:
        """Take the client's `toolResponses`; answers to calls that nobody waits for are dropped."""
        for item in responses:
            if not isinstance(item, Mapping):
                continue
            future = self._waiting.get(str(bidi.get(item, "id", "")))
            if future is None or future.done():
                continue
            value = bidi.get(item, "response", {})
            if isinstance(value, Mapping) and "error" in value:
                future.set_result({"error": value["error"]})
            elif isinstance(value, Mapping) and "output" in value:
                future.set_result(value["output"])
            else:
                future.set_result(value)
