"""The guardrails of an app at work: who is checked, by what, and what is said instead."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import structlog

from gateway.agent.app.models import Agent, App, CallbackKind, SourceCode
from gateway.agent.callbacks import guard_decision
from gateway.agent.guardrails.definition import Action, ActionKind, Guardrail, read_guardrail
from gateway.agent.guardrails.judge import judged_bad
from gateway.agent.models.base import ModelStep, Purpose
from gateway.agent.platform import Content, GenerateContentConfig, LlmRequest, LlmResponse, Part
from gateway.agent.words import spoken
from gateway.bidi import context_text
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation

log = structlog.get_logger()

STOPPED = context_text("guardrail triggered")
"""What the model reads in place of the stopped text."""
_INSTEAD = """The last message was stopped by a safety rule of the house. Say briefly and politely
that you cannot help with it, and offer to go on with what you are there for."""


class Guards:
    """All guardrails that are enabled. Raises AppError app.guardrail."""

    def __init__(self, app: App) -> None:
        contents = app.resources.get("guardrails", {})
        self._all: dict[str, Guardrail] = {}
        for name, content in contents.items():
            guardrail = read_guardrail(app, name, content)
            if guardrail is not None:
                self._all[name] = guardrail
        self._of_agent: dict[str, tuple[Guardrail, ...]] = {}
        for agent in app.agents.values():
            names = dict.fromkeys([*app.definition.guardrails, *agent.definition.guardrails])
            self._of_agent[agent.display_name] = tuple(
                self._all[name] for name in names if name in self._all
            )

    def of(self, agent: Agent) -> tuple[Guardrail, ...]:
        """The guardrails of the app and of this agent, in order."""
        return self._of_agent.get(agent.display_name, ())

    def sources(self) -> Iterable[SourceCode]:
        """Code of guardrails."""
        return [code for guard in self._all.values() for code in (guard.code or {}).values()]

    def safety(self, agent: Agent) -> tuple[Mapping[str, Any], ...]:
        """Safety settings for models that filter by themselves."""
        return tuple(setting for guard in self.of(agent) for setting in guard.safety)

    def watches_output(self, agent: Agent) -> bool:
        """Whether the agent's words must be complete before they go out."""
        return any(
            (guard.filter is not None and guard.filter.agent)
            or (guard.policy is not None and guard.policy.agent)
            or CallbackKind.AFTER_MODEL in (guard.code or {})
            for guard in self.of(agent)
        )

    def watches_turn(self, agent: Agent) -> bool:
        """Whether the agent's share of a turn must be complete before it goes out."""
        return any(CallbackKind.AFTER_AGENT in (guard.code or {}) for guard in self.of(agent))

    # ---- checks: the guardrail that was triggered, or None

    async def check_input(self, conversation: Conversation, parts: list[Part]) -> Guardrail | None:
        """What the user said in this turn; platform texts are not the user's words."""
        text = spoken(parts)
        for guard in self.of(conversation.agent):
            if text and guard.filter is not None and guard.filter.finds(text, by_user=True):
                return self._triggered(conversation, guard)
            policy = guard.policy
            if (
                text
                and policy is not None
                and policy.user
                and await judged_bad(conversation, guard, policy, text, by_user=True)
            ):
                return self._triggered(conversation, guard)
        return None

    async def check_output(
        self, conversation: Conversation, response: LlmResponse, by_model: bool
    ) -> Guardrail | None:
        """What the agent is about to say. Policies judge the model's words, not the author's."""
        parts = response.content.parts if response.content is not None else []
        text = "\n".join(t for part in parts if (t := part.text_or_transcript()))
        if not text:
            return None
        for guard in self.of(conversation.agent):
            if guard.filter is not None and guard.filter.finds(text, by_user=False):
                return self._triggered(conversation, guard)
            policy = guard.policy
            if (
                by_model
                and policy is not None
                and policy.agent
                and await judged_bad(conversation, guard, policy, text, by_user=False)
            ):
                return self._triggered(conversation, guard)
        return None

    async def check_code(
        self, conversation: Conversation, kind: CallbackKind, *arguments: Any
    ) -> Guardrail | None:
        """The code of guardrails for one moment; code that fails counts as triggered."""
        for guard in self.of(conversation.agent):
            source = (guard.code or {}).get(kind)
            if source is not None and await guard_decision(conversation, kind, source, arguments):
                return self._triggered(conversation, guard)
        return None

    def _triggered(self, conversation: Conversation, guard: Guardrail) -> Guardrail:
        log.info("guardrail.triggered", session=conversation.identity.session, guardrail=guard.name)
        return guard

    # ---- what is said instead

    async def instead(self, conversation: Conversation, action: Action) -> LlmResponse:
        """The response that stands for what was stopped."""
        if action.kind is ActionKind.TRANSFER:
            if conversation.agent.display_name != action.agent:
                return LlmResponse.from_parts([Part.from_agent_transfer(action.agent)])
            # It has the conversation already: there is nobody further to hand it to.
            return LlmResponse.from_parts([Part(text=conversation.fallback_text())])
        if action.kind is ActionKind.RESPOND:
            return LlmResponse.from_parts([Part(text=random.choice(action.responses))])
        text = await self._generated(conversation, action.prompt)
        return LlmResponse.from_parts([Part(text=text or conversation.fallback_text())])

    async def _generated(self, conversation: Conversation, prompt: str) -> str:
        """The model's own words; empty where it has none, or none that pass the filters."""
        instruction = f"{prompt}\n\n{_INSTEAD}" if prompt else _INSTEAD
        config = conversation.model_config()
        step = ModelStep(
            LlmRequest(
                model=config.model,
                contents=[
                    *conversation.history.contents(),
                    Content(role="user", parts=[Part(text=STOPPED)]),
                ],
                config=GenerateContentConfig(
                    system_instruction=Content(parts=[Part(text=instruction)]), tools=[]
                ),
            ),
            conversation.agent.display_name,
            conversation.state,
            conversation.memory,
            purpose=Purpose.INSTEAD,
            safety=self.safety(conversation.agent),
            temperature=config.temperature,
        )
        text = ""
        try:
            async with (
                asyncio.timeout(conversation.engine.settings.runtime.turn_timeout_s),
                aclosing(conversation.engine.model.generate(step)) as parts,
            ):
                async for part in parts:
                    text += part.text or ""
        except (TimeoutError, GatewayError):
            log.error("guardrail.no_answer", session=conversation.identity.session)
            return ""
        banned = any(
            guard.filter is not None and guard.filter.finds(text, by_user=False)
            for guard in self.of(conversation.agent)
        )
        return "" if banned else text
