"""Agent tools: another agent works on a request, out of the caller's hearing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog

from gateway.agent.platform import Part
from gateway.agent.tools.catalog import Entry
from gateway.agent.turn import Turn, TurnCancelled
from gateway.agent.variables import text_of
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation
    from gateway.agent.tools.client import ClientCalls

log = structlog.get_logger()

MAX_DEPTH = 3
"""Agents that work for agents that work for agents; further ones are refused."""


class _Aside:
    """Takes what the agent says; what the client must run goes on to the caller's own turn."""

    def __init__(self, outer: Turn) -> None:
        self._outer = outer
        self.texts: list[str] = []

    async def send(self, message: dict[str, Any]) -> None:
        """One output of the inner turn."""
        output = message.get("sessionOutput", {})
        if "text" in output:
            self.texts.append(output["text"])
        elif "toolCalls" in output:
            await self._outer.emit_tool_calls(output["toolCalls"]["toolCalls"])


async def run_agent_tool(
    conversation: Conversation,
    outer: Turn,
    client: ClientCalls,
    entry: Entry,
    args: Mapping[str, Any],
    deadline_s: float,
) -> dict[str, Any]:
    """`{"response": what the agent said}` or `{"error": …}`. Raises TurnCancelled.

    The agent has a conversation of its own over the session's variables. `outer`: the turn that
    it works for.
    """
    from gateway.agent.loop import run_turn  # the loop runs tools, and this tool is a loop

    agent = conversation.engine.app.agents.get(entry.tool_id)
    if agent is None:
        return {"error": f"there is no agent {entry.tool_id!r}"}
    if agent.problem:
        return {"error": agent.problem}
    if conversation.depth >= MAX_DEPTH:
        return {"error": "too many agents work for one another"}
    branch = conversation.branch(agent)
    aside = _Aside(outer)
    turn = Turn(conversation.turn_index, aside.send)
    request = args.get("request")
    words = text_of(request if request is not None else dict(args))
    work = run_turn(branch, turn, client, [Part(text=words)])
    try:
        async with asyncio.timeout(deadline_s):
            await outer.interruptible(work)
    except TimeoutError:
        return {"error": f"the agent took longer than {deadline_s:g} seconds"}
    except TurnCancelled:
        raise
    except GatewayError as error:
        log.error(
            "agent_tool.failed",
            session=conversation.identity.session,
            tool=entry.name,
            **error.fields(),
        )
        return {"error": "the agent failed"}
    return {"response": " ".join(aside.texts)}
