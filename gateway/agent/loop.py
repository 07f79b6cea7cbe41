"""The agent loop: from the user's input to the last part of the turn.

before_agent, then model steps (before_model, model, after_model, then the parts in order, tools
with their callbacks among them) until a response asks for nothing more, then after_agent.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from gateway.agent import callbacks, consent, fallback
from gateway.agent.app.models import (
    CallbackKind,
)
from gateway.agent.calls import Calls, Next
from gateway.agent.conversation import Conversation, Reach
from gateway.agent.failures import apologise
from gateway.agent.guardrails.definition import ActionKind, Guardrail
from gateway.agent.models.base import ModelStep, joined
from gateway.agent.platform import (
    Content,
    Event,
    FunctionCall,
    LlmRequest,
    LlmResponse,
    Part,
)
from gateway.agent.request import build_request, without_hidden
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.execute import response_part
from gateway.agent.tools.servers import know_servers
from gateway.agent.turn import Turn, TurnCancelled
from gateway.errors import GatewayError, RuntimeFailure

log = structlog.get_logger()

MAX_TRANSFERS = 8


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
    conversation.reach = Reach(asyncio.get_running_loop(), turn, client)
    try:
        await _run_agents(conversation, turn, client, parts)
    finally:
        conversation.reach = None


async def _run_agents(
    conversation: Conversation, turn: Turn, client: ClientCalls, parts: list[Part]
) -> None:
    failures = conversation.failures
    pending, conversation.pending = conversation.pending, None
    heard = conversation.add_user(parts)
    budget = conversation.engine.settings.runtime.max_steps
    for number in range(MAX_TRANSFERS):
        agent_run = _AgentRun(conversation, turn, client, budget)
        budget = await agent_run.run(heard if number == 0 else None, pending)
        pending = None
        if not agent_run.transferred:
            if conversation.failures == failures:
                conversation.failures = 0
            return
    log.error("agent.too_many_transfers", session=conversation.identity.session)
    await apologise(conversation, turn)


class _AgentRun:
    """One agent's share of a turn."""

    def __init__(
        self, conversation: Conversation, turn: Turn, client: ClientCalls, budget: int
    ) -> None:
        self._conversation = conversation
        self._turn = turn
        self._calls = Calls(conversation, turn, client)
        self._budget = budget
        after_agent = conversation.agent.callbacks.get(CallbackKind.AFTER_AGENT, ())
        watched = conversation.engine.guards.watches_turn(conversation.agent)
        self._held = _Held(enabled=bool(after_agent) or watched)
        self.transferred = False

    async def run(self, heard: Event | None, pending: consent.Pending | None) -> int:
        """Run the agent; returns how many model steps the turn has left.

        `heard`: the user's input where guardrails have not checked it yet. `pending`: the call
        that this input is the answer to.
        """
        guard = await self._check_input(heard) if heard is not None else None
        if guard is not None:
            following = await self._stop(guard, heard)
            self.transferred = following is Next.TRANSFERRED
            await self._release()
            return self._budget
        if heard is not None and await self._fell_back():
            return self._budget
        if self._conversation.agent.problem:
            raise RuntimeFailure("runtime.agent_kind", self._conversation.agent.problem)
        content = await callbacks.around_agent(self._conversation, CallbackKind.BEFORE_AGENT)
        self._turn.check()
        if content is not None:
            following = await self._deal_with(LlmResponse(content=content), ())
            self.transferred = following is Next.TRANSFERRED
            await self._release()
            return self._budget
        agent = self._conversation.agent
        following = Next.STEP
        if pending is not None:
            following = await self._answered(pending)
        while following is Next.STEP:
            if self._budget <= 0:
                log.error("agent.max_steps", session=self._conversation.identity.session)
                await self._release()
                # What was said on the way is no answer: the model was not done.
                self._turn.broken_off = True
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
            guard = await self._conversation.engine.guards.check_code(
                self._conversation, CallbackKind.AFTER_AGENT
            )
            self._turn.check()
            if guard is not None:
                self._held.parts = []
                await self._stop(guard, self._held.event)
        await self._release()

    async def _release(self) -> None:
        held, self._held.parts, self._held.event = self._held.parts, [], None
        for part in held:
            await self._turn.emit(part)

    async def _fell_back(self) -> bool:
        """Take the app's action for a language that it does not speak; True: the turn is over."""
        action = fallback.due_action(self._conversation)
        if not action:
            return False
        if action in fallback.ENDINGS:
            self._turn.end_metadata = dict(fallback.ENDINGS[action])
            return True
        call = LlmResponse.from_parts([Part.from_function_call(action, {})])
        following = await self._deal_with(call, (), checked=True)
        return following is not Next.STEP

    # ---- guardrails

    async def _check_input(self, heard: Event) -> Guardrail | None:
        conversation, turn = self._conversation, self._turn
        guards = conversation.engine.guards
        guard = await turn.interruptible(guards.check_input(conversation, heard.parts()))
        if guard is None:
            guard = await guards.check_code(conversation, CallbackKind.BEFORE_AGENT)
        turn.check()
        return guard

    async def _stop(self, guard: Guardrail, stopped: Event | None) -> Next:
        """Answer in place of what a guardrail stopped; the model never reads that again."""
        conversation = self._conversation
        if stopped is not None and guard.action.kind is not ActionKind.TRANSFER:
            conversation.history.hide(stopped)
        guards = conversation.engine.guards
        response = await self._turn.interruptible(guards.instead(conversation, guard.action))
        return await self._deal_with(response, (), checked=True)

    # ---- consent

    async def _answered(self, pending: consent.Pending) -> Next:
        """The caller has answered the question about a sensitive tool, or not."""
        conversation = self._conversation
        heard = conversation.user_content.parts if conversation.user_content else []
        answer = consent.read_answer(heard, conversation.language)
        attempts = conversation.engine.settings.tools.consent_attempts
        if answer is consent.Answer.UNCLEAR and pending.asked < attempts:
            return await self._ask_consent(pending.call, pending.asked + 1)
        call = Part.from_function_call(pending.call.name or "", pending.call.args)
        if answer is consent.Answer.YES:
            response = LlmResponse.from_parts([call])
            return await self._deal_with(response, (), checked=True, consented=True)
        assert call.function_call is not None
        call.function_call.id = conversation.new_call_id()
        conversation.add_model([call])
        conversation.add_responses([response_part(call.function_call, dict(consent.CANCELLED))])
        return Next.STEP

    async def _ask_consent(self, call: FunctionCall, asked: int) -> Next:
        conversation = self._conversation
        questions = conversation.engine.settings.tools.consent_questions
        text = consent.question(
            questions, call.name or "", conversation.language, conversation.engine.app.language
        )
        part = consent.question_part(text)
        await self._release()
        await self._turn.emit(part)
        conversation.add_model([part])
        conversation.pending = consent.Pending(call, asked)
        return Next.DONE

    # ---- one model step

    async def _step(self) -> Next:
        conversation = self._conversation
        handed_over = await self._due_transfer()
        if handed_over is not None:
            return await self._deal_with(handed_over, ())
        await know_servers(conversation)
        conversation.note_changes()
        request = build_request(conversation)
        instruction = conversation.system_instruction()
        guard = await conversation.engine.guards.check_code(
            conversation, CallbackKind.BEFORE_MODEL, request
        )
        if guard is not None:
            self._turn.check()
            return await self._stop(guard, None)
        response = await callbacks.before_model(conversation, request)
        self._turn.check()
        if response is not None:
            following = await self._deal_with(response, ())
            # A partial answer stands before the model's own, within the same step.
            if not response.partial or following is not Next.STEP:
                return following
            conversation.note_changes()
            request = build_request(conversation)
        else:
            self._refresh(request, instruction, conversation.note_changes())
        return await self._ask(request)

    async def _due_transfer(self) -> LlmResponse | None:
        """The hand-over that a rule of the app asks for now."""
        conversation = self._conversation
        for rule in conversation.engine.routes.hand_overs(conversation.agent.display_name):
            if rule.condition is not None:
                due = rule.condition.holds(conversation.state)
            else:
                assert rule.code is not None
                due = await callbacks.transfer_condition(conversation, rule.code)
                self._turn.check()
            if due:
                return LlmResponse.from_parts([Part.from_agent_transfer(rule.target)])
        return None

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
        """Ask the model; texts are sent as they come unless something may still change them."""
        conversation = self._conversation
        guards, agent = conversation.engine.guards, conversation.agent
        changing = bool(agent.callbacks.get(CallbackKind.AFTER_MODEL))
        guarded = self._held.enabled or guards.watches_output(agent)
        streaming = not guarded and (not changing or bool(agent.proactive))
        parts: list[Part] = []
        sent: list[Part] = []
        step = ModelStep(
            without_hidden(request),
            agent.display_name,
            conversation.state,
            conversation.memory,
            safety=guards.safety(agent),
            temperature=conversation.model_config().temperature,
        )
        generator = conversation.engine.model.generate(step)
        try:
            async with aclosing(generator):
                while True:
                    part = await self._turn.interruptible(anext(generator, None))
                    if part is None:
                        break
                    if not streaming or part.text is None or len(sent) < len(parts):
                        parts.append(part)
                        continue
                    for said in await self._in_between(part) if changing else [part]:
                        parts.append(said)
                        await self._turn.emit(said)
                        sent.append(said)
        except (TurnCancelled, GatewayError) as error:
            if sent:
                conversation.add_model(joined(sent)).interrupted = True
                self._turn.broken_off = isinstance(error, GatewayError)
            raise
        response = LlmResponse.from_parts(joined(parts))
        done = joined(sent)
        if streaming and not changing:
            return await self._deal_with(response, done, by_model=True, checked=True)
        replaced = await self._after_model(response)
        by_model = replaced is None
        if replaced is not None and done:
            # What has been said cannot be said otherwise any more; the rest can.
            assert replaced.content is not None
            rest = [part for part in replaced.content.parts if part.text is None]
            replaced.content.parts = [*done, *rest]
        response = replaced or response
        if streaming:
            return await self._deal_with(response, done, by_model=by_model, checked=True)
        guard = await guards.check_code(conversation, CallbackKind.AFTER_MODEL, response)
        if guard is None:
            guard = await self._turn.interruptible(
                guards.check_output(conversation, response, by_model=True)
            )
        self._turn.check()
        if guard is not None:
            return await self._stop(guard, None)
        return await self._deal_with(response, (), by_model=by_model, checked=True)

    async def _after_model(self, response: LlmResponse) -> LlmResponse | None:
        conversation = self._conversation
        event = Event(
            author=conversation.agent.display_name,
            invocation_id=conversation.invocation_id,
            content=response.content,
            partial=response.partial,
        )
        replaced = await callbacks.after_model(conversation, response, event)
        self._turn.check()
        return replaced

    async def _in_between(self, part: Part) -> list[Part]:
        """What proactive callbacks make of a part that the model says before it has finished."""
        response = LlmResponse.from_parts([part])
        response.partial = True
        replaced = await self._after_model(response)
        if replaced is None or replaced.content is None:
            return [part]
        return [said for said in replaced.content.parts if said.function_call is None]

    # ---- the parts of a response, in order

    async def _deal_with(
        self,
        response: LlmResponse,
        sent: list[Part] | tuple[()],
        *,
        by_model: bool = False,
        checked: bool = False,
        consented: bool = False,
    ) -> Next:
        """Send and run the parts in order; those in `sent` have already gone out.

        `by_model`: the model's own choice, which rules may forbid. `checked`: guardrails have
        seen it. `consented`: the caller has agreed to the call.
        """
        if not checked:
            guards = self._conversation.engine.guards
            guard = await guards.check_output(self._conversation, response, by_model=False)
            if guard is not None:
                return await self._stop(guard, None)
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
        asking: FunctionCall | None = None
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
                batch = self._calls.batch(parts, index)
                index += len(batch)
                if not consented and self._calls.needs_consent(batch[0]):
                    responses.append(response_part(batch[0], dict(consent.AWAITING)))
                    asking = batch[0]
                    following = Next.DONE
                    break
                following = await self._calls.run(batch, responses, by_model)
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
        return following if asking is None else await self._ask_consent(asking, 1)

    async def _say(self, part: Part, hold: bool) -> None:
        if hold:
            self._held.parts.append(part)
        else:
            await self._turn.emit(part)
