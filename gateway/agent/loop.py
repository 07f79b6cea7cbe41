"""The agent loop: from the user's input to the last part of the turn.

before_agent, then model steps (before_model, model, after_model, then the parts in order, tools
with their callbacks among them) until a response asks for nothing more, then after_agent.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.agent import callbacks
from gateway.agent.app.models import (
    CUSTOMIZE_RESPONSE,
    END_SESSION,
    SYSTEM_TOOLS,
    TRANSFER_TO_AGENT,
    CallbackKind,
)
from gateway.agent.conversation import Conversation
from gateway.agent.models.base import ModelStep
from gateway.agent.platform import (
    Content,
    Event,
    FunctionCall,
    FunctionDeclaration,
    GenerateContentConfig,
    LlmRequest,
    LlmResponse,
    Part,
    Tool,
    ToolDeclaration,
)
from gateway.agent.tools import system
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.execute import describe, execute, response_part
from gateway.agent.turn import Turn, TurnCancelled

log = logging.getLogger("gateway.agent")

MAX_TRANSFERS = 8


class Next(Enum):
    """What follows after a response has been dealt with."""

    STEP = auto()
    DONE = auto()
    TRANSFERRED = auto()


@dataclass(slots=True)
class _Held:
    """Output kept back until after_agent has had its say."""

    enabled: bool
    parts: list[Part] = field(default_factory=list)
    event: Event | None = None
    """The history's entry for these parts."""


async def run_turn(
    conversation: Conversation, turn: Turn, client: ClientCalls, parts: list[Part]
) -> None:
    """One turn from the user's parts to its end. Raises TurnCancelled where it is cut short."""
    conversation.add_user(parts)
    budget = conversation.engine.settings.runtime.max_steps
    for _ in range(MAX_TRANSFERS):
        agent_run = _AgentRun(conversation, turn, client, budget)
        budget = await agent_run.run()
        if not agent_run.transferred:
            return
    log.error("session %s: too many transfers in one turn", conversation.identity.session)
    await apologise(conversation, turn)


async def apologise(conversation: Conversation, turn: Turn) -> None:
    """Never dead air: a turn that failed says so unless it has spoken already."""
    if not turn.said_anything and turn.end_metadata is None:
        part = Part(text=conversation.engine.settings.call.fallback_message)
        conversation.add_model([part])
        await turn.emit(part)


class _AgentRun:
    """One agent's share of a turn."""

    def __init__(
        self, conversation: Conversation, turn: Turn, client: ClientCalls, budget: int
    ) -> None:
        self._conversation = conversation
        self._turn = turn
        self._client = client
        self._budget = budget
        after_agent = conversation.agent.callbacks.get(CallbackKind.AFTER_AGENT, ())
        self._held = _Held(enabled=bool(after_agent))
        self.transferred = False

    async def run(self) -> int:
        """Run the agent; returns how many model steps the turn has left."""
        content = await callbacks.around_agent(self._conversation, CallbackKind.BEFORE_AGENT)
        self._turn.check()
        if content is not None:
            following = await self._deal_with(LlmResponse(content=content), ())
            self.transferred = following is Next.TRANSFERRED
            await self._release()
            return self._budget
        agent = self._conversation.agent
        following = Next.STEP
        while following is Next.STEP:
            if self._budget <= 0:
                log.error(
                    "session %s: the turn reached its bound of model steps",
                    self._conversation.identity.session,
                )
                await self._release()
                await apologise(self._conversation, self._turn)
                return 0
            self._budget -= 1
            following = await self._step()
        new_agent, self._conversation.agent = self._conversation.agent, agent
        try:
            await self._after_agent()
        finally:
            self._conversation.agent = new_agent
        self.transferred = following is Next.TRANSFERRED
        return self._budget

    async def _after_agent(self) -> None:
        if self._held.enabled:
            content = await callbacks.around_agent(self._conversation, CallbackKind.AFTER_AGENT)
            self._turn.check()
            if content is not None:
                if self._held.event is not None:
                    self._conversation.history.remove(self._held.event)
                self._conversation.add_model(content.parts)
                self._held.parts = list(content.parts)
        await self._release()

    async def _release(self) -> None:
        held, self._held.parts, self._held.event = self._held.parts, [], None
        for part in held:
            await self._turn.emit(part)

    # ---- one model step

    async def _step(self) -> Next:
        conversation = self._conversation
        conversation.note_changes()
        request = self._request()
        instruction = conversation.system_instruction()
        response = await callbacks.before_model(conversation, request)
        self._turn.check()
        if response is not None:
            following = await self._deal_with(response, ())
            # A partial answer stands before the model's own, within the same step.
            if not response.partial or following is not Next.STEP:
                return following
            conversation.note_changes()
            request = self._request()
        else:
            self._refresh(request, instruction, conversation.note_changes())
        return await self._ask(request)

    def _request(self) -> LlmRequest:
        conversation = self._conversation
        agent = conversation.agent
        model = agent.definition.model_settings.model
        declarations = []
        for name in agent.tools:
            if name in SYSTEM_TOOLS:
                declarations.append(system.DECLARATIONS[name])
            elif name in conversation.engine.app.tools:
                tool = describe(conversation.engine.app.tools[name])
                declarations.append(
                    FunctionDeclaration(name=tool.name, description=tool.description)
                )
        return LlmRequest(
            model=model or conversation.engine.app.definition.model_settings.model,
            contents=conversation.history.contents(),
            config=GenerateContentConfig(
                system_instruction=Content(parts=[Part(text=conversation.system_instruction())]),
                tools=[ToolDeclaration(function_declarations=declarations)],
            ),
        )

    def _refresh(self, request: LlmRequest, instruction: str, notes: list[str]) -> None:
        """The callback changed variables: the request follows, where it was not changed itself."""
        config = request.config
        if config is not None and config.system_instruction is not None:
            parts = config.system_instruction.parts
            if [part.text for part in parts] == [instruction]:
                parts[0].text = self._conversation.system_instruction()
        if notes and request.contents and request.contents[-1].is_user():
            request.contents[-1].parts[:0] = [Part(text=note) for note in notes]

    async def _ask(self, request: LlmRequest) -> Next:
        """Ask the model; texts are sent as they come unless a callback may still change them."""
        conversation = self._conversation
        streaming = not (
            self._held.enabled or conversation.agent.callbacks.get(CallbackKind.AFTER_MODEL)
        )
        parts: list[Part] = []
        sent: list[Part] = []
        step = ModelStep(
            request, conversation.agent.display_name, conversation.state, conversation.memory
        )
        generator = conversation.engine.model.generate(step)
        try:
            async with aclosing(generator):
                while True:
                    part = await self._turn.interruptible(anext(generator, None))
                    if part is None:
                        break
                    parts.append(part)
                    if streaming and part.text is not None and len(sent) == len(parts) - 1:
                        await self._turn.emit(part)
                        sent.append(part)
        except TurnCancelled:
            if sent:
                conversation.add_model(sent).interrupted = True
            raise
        response = LlmResponse.from_parts(parts)
        if not streaming:
            event = Event(
                author=conversation.agent.display_name,
                invocation_id=conversation.invocation_id,
                content=response.content,
            )
            replaced = await callbacks.after_model(conversation, response, event)
            self._turn.check()
            response = replaced or response
        return await self._deal_with(response, sent)

    # ---- the parts of a response, in order

    async def _deal_with(self, response: LlmResponse, sent: list[Part] | tuple[()]) -> Next:
        """Send and run the parts in order; those in `sent` have already gone out."""
        parts = list(response.content.parts) if response.content is not None else []
        for part in parts:
            if part.function_call is not None:
                part.function_call.id = self._conversation.new_call_id()
        event = self._conversation.add_model(parts)
        calls = any(part.function_call is not None for part in parts)
        hold = self._held.enabled and not calls and not response.partial
        if hold:
            self._held.event = event
        elif self._held.parts:
            await self._release()
        responses: list[Part] = []
        following = Next.DONE if not response.partial else Next.STEP
        index = len(sent)
        try:
            while index < len(parts):
                part = parts[index]
                if part.function_call is None:
                    await self._say(part, hold)
                    index += 1
                    continue
                self._turn.check()
                batch = self._batch(parts, index)
                index += len(batch)
                following = await self._run_calls(batch, responses)
                if following is not Next.STEP:
                    break
        except TurnCancelled:
            event.interrupted = True
            raise
        finally:
            # What was neither sent nor run did not happen.
            event.content = Content(parts=parts[:index], role="model")
            if not event.content.parts:
                self._conversation.history.remove(event)
            if responses:
                self._conversation.add_responses(responses)
        return following

    async def _say(self, part: Part, hold: bool) -> None:
        if hold:
            self._held.parts.append(part)
        else:
            await self._turn.emit(part)

    def _batch(self, parts: list[Part], start: int) -> list[FunctionCall]:
        """The calls from `start` on that may run at the same time."""
        first = parts[start].function_call
        assert first is not None
        batch = [first]
        parallel = self._conversation.engine.app.definition.tool_execution_mode != "SEQUENTIAL"
        if not parallel or first.name in SYSTEM_TOOLS:
            return batch
        for part in parts[start + 1 :]:
            call = part.function_call
            if call is None or call.name in SYSTEM_TOOLS:
                break
            batch.append(call)
        return batch

    async def _run_calls(self, batch: list[FunctionCall], responses: list[Part]) -> Next:
        call = batch[0]
        if call.name in SYSTEM_TOOLS:
            return await self._run_system(call, responses)
        answers = await asyncio.gather(
            *(execute(self._conversation, self._turn, self._client, call) for call in batch),
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

    async def _run_system(self, call: FunctionCall, responses: list[Part]) -> Next:
        conversation, turn = self._conversation, self._turn
        name, call_id = call.name or "", call.id or ""
        declaration = system.DECLARATIONS[name]
        args = dict(call.args or {})
        tool = Tool(name=name, description=declaration.description or "")
        result = await callbacks.before_tool(conversation, tool, args, call_id)
        following = Next.STEP
        if result is None:
            result, following = await self._do_system(name, args)
        else:
            turn.check()
        replaced = await callbacks.after_tool(conversation, tool, args, call_id, result)
        responses.append(response_part(call, result if replaced is None else replaced))
        turn.check()
        return following

    async def _do_system(
        self, name: str, args: dict[str, object]
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
        target = system.transfer_target(conversation.engine.app, args)
        if target is None:
            return {"error": f"there is no agent {args.get('agent_name')!r}"}, Next.STEP
        conversation.agent = conversation.engine.app.agents[target]
        return {"status": "transferred", "agent": target}, Next.TRANSFERRED
