"""The calls of a response: which may run together, which may not run at all, and what follows."""

from __future__ import annotations

import asyncio
from enum import Enum, auto

from gateway.agent import callbacks
from gateway.agent.app.models import (
    CUSTOMIZE_RESPONSE,
    END_SESSION,
    SYSTEM_TOOLS,
    TRANSFER_TO_AGENT,
)
from gateway.agent.conversation import Conversation
from gateway.agent.platform import FunctionCall, Part, Tool
from gateway.agent.request import may_call
from gateway.agent.tools import system
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.execute import execute, response_part
from gateway.agent.turn import Turn

MAX_BATCH = 64
"""Calls of one response that run together; what is above it is refused."""


class Next(Enum):
    """What follows after a response has been dealt with."""

    STEP = auto()
    DONE = auto()
    TRANSFERRED = auto()


class Calls:
    """Runs the function calls of one agent's share of a turn."""

    def __init__(self, conversation: Conversation, turn: Turn, client: ClientCalls) -> None:
        self._conversation = conversation
        self._turn = turn
        self._client = client

    def batch(self, parts: list[Part], start: int) -> list[FunctionCall]:
        """The calls from `start` on that may run at the same time; at least one."""
        first = parts[start].function_call
        assert first is not None
        batch = [first]
        parallel = self._conversation.engine.app.definition.tool_execution_mode != "SEQUENTIAL"
        if not parallel or first.name in SYSTEM_TOOLS or self.needs_consent(first):
            return batch
        for part in parts[start + 1 :]:
            call = part.function_call
            if call is None or call.name in SYSTEM_TOOLS or self.needs_consent(call):
                break
            batch.append(call)
        return batch

    def needs_consent(self, call: FunctionCall) -> bool:
        """A tool that may run at all, once the caller has agreed."""
        conversation = self._conversation
        entry = conversation.engine.catalog.find(call.name or "")
        return (
            entry is not None
            and conversation.depth == 0
            and conversation.engine.access.needs_consent(entry.name)
            and self._refusal(call) is None
        )

    def _refusal(self, call: FunctionCall) -> str | None:
        """Why the call cannot be run; None where it can, or where there is no such tool."""
        conversation = self._conversation
        name = call.name or ""
        if call.fault is not None:
            return call.fault
        entry = conversation.engine.catalog.find(name)
        if entry is None and name not in SYSTEM_TOOLS:
            return None
        if not may_call(conversation, name):
            return f"the agent {conversation.agent.display_name!r} does not list the tool {name!r}"
        if entry is None:
            return None
        access = conversation.engine.access
        if conversation.depth > 0 and access.needs_consent(entry.name):
            return f"the tool {name!r} needs the caller's consent: only the caller's agent can ask"
        return access.refusal(entry.name, conversation.channel)

    async def run(self, batch: list[FunctionCall], responses: list[Part], by_model: bool) -> Next:
        """Run what `batch` gave; the answers go to `responses`. Raises TurnCancelled.

        `by_model`: the model's own choice, which the rules of hand-overs may forbid.
        """
        call = batch[0]
        if call.name in SYSTEM_TOOLS:
            refusal = self._refusal(call)
            if refusal is not None:
                responses.append(response_part(call, {"error": refusal}))
                return Next.STEP
            return await self._run_system(call, responses, by_model)
        answers = await asyncio.gather(
            *(self._run_one(call, number) for number, call in enumerate(batch)),
            return_exceptions=True,
        )
        failed = next((answer for answer in answers if isinstance(answer, BaseException)), None)
        responses.extend(
            answer
            if isinstance(answer, Part)
            else response_part(call, {"error": "the call was interrupted"})
            for call, answer in zip(batch, answers, strict=True)
        )
        if failed is not None:
            raise failed
        self._turn.check()
        return Next.STEP

    async def _run_one(self, call: FunctionCall, number: int) -> Part:
        refusal = self._refusal(call)
        if number >= MAX_BATCH:
            refusal = f"more than {MAX_BATCH} calls at the same time"
        if refusal is not None:
            return response_part(call, {"error": refusal})
        return await execute(self._conversation, self._turn, self._client, call)

    async def _run_system(self, call: FunctionCall, responses: list[Part], by_model: bool) -> Next:
        conversation, turn = self._conversation, self._turn
        name, call_id = call.name or "", call.id or ""
        declaration = system.DECLARATIONS[name]
        args = dict(call.args or {})
        tool = Tool(name=name, description=declaration.description or "")
        result = await callbacks.before_tool(conversation, tool, args, call_id)
        following = Next.STEP
        if result is None:
            result, following = await self._do_system(name, args, by_model)
        else:
            turn.check()
        replaced = await callbacks.after_tool(conversation, tool, args, call_id, result)
        responses.append(response_part(call, result if replaced is None else replaced))
        turn.check()
        return following

    async def _do_system(
        self, name: str, args: dict[str, object], by_model: bool
    ) -> tuple[dict[str, object], Next]:
        conversation, turn = self._conversation, self._turn
        if name == END_SESSION:
            turn.end_metadata = system.end_metadata(args)
            return {"status": "session ended"}, Next.DONE
        if name == CUSTOMIZE_RESPONSE:
            part = system.customized_part(args)
            await turn.emit(part)
            return {"status": "said"}, Next.DONE
        assert name == TRANSFER_TO_AGENT
        engine, here = conversation.engine, conversation.agent.display_name
        target = system.transfer_target(engine.app, args)
        if target is None:
            return {"error": f"there is no agent {args.get('agent_name')!r}"}, Next.STEP
        if engine.app.agents[target].problem:
            return {"error": engine.app.agents[target].problem}, Next.STEP
        if by_model:
            reachable = engine.routes.reachable(here)
            if target not in reachable:
                known = ", ".join(reachable) or "none"
                error = f"{here!r} cannot hand over to {target!r}; it can to: {known}"
                return {"error": error}, Next.STEP
            if engine.routes.forbidden(here, target, conversation.state):
                return {"error": f"handing over to {target!r} is not allowed now"}, Next.STEP
        conversation.agent = engine.app.agents[target]
        return {"status": "transferred", "agent": target}, Next.TRANSFERRED
