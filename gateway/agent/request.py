"""What the model is asked: history, instruction and the tools that the agent may use now."""

from __future__ import annotations

from gateway.agent.app.models import CUSTOMIZE_RESPONSE, END_SESSION, TRANSFER_TO_AGENT
from gateway.agent.conversation import Conversation
from gateway.agent.platform import (
    Content,
    FunctionDeclaration,
    GenerateContentConfig,
    LlmRequest,
    Part,
    ToolDeclaration,
)
from gateway.agent.tools import system
from gateway.agent.tools.execute import declaration


def build_request(conversation: Conversation) -> LlmRequest:
    """The request of the next model step, before callbacks have seen it."""
    return LlmRequest(
        model=conversation.model_config().model,
        contents=conversation.history.contents(),
        config=GenerateContentConfig(
            system_instruction=Content(parts=[Part(text=conversation.system_instruction())]),
            tools=[ToolDeclaration(function_declarations=_declarations(conversation))],
        ),
    )


def _declarations(conversation: Conversation) -> list[FunctionDeclaration]:
    engine, agent = conversation.engine, conversation.agent
    found = [
        declaration(conversation, entry)
        for entry in engine.catalog.of_agent(agent)
        if engine.access.refusal(entry.name, conversation.channel) is None
    ]
    own = [name for name in (END_SESSION, CUSTOMIZE_RESPONSE) if name in agent.tools]
    found += [system.DECLARATIONS[name] for name in own]
    targets = [
        target
        for target in engine.routes.reachable(agent.display_name)
        if not engine.routes.forbidden(agent.display_name, target, conversation.state)
    ]
    if targets:
        about = {name: engine.app.agents[name].definition.description for name in targets}
        found.append(system.transfer_declaration(about))
    elif TRANSFER_TO_AGENT in agent.tools:
        found.append(system.DECLARATIONS[TRANSFER_TO_AGENT])
    return found


def without_hidden(request: LlmRequest) -> LlmRequest:
    """The request as the model gets it: tools that callbacks hid are gone."""
    config = request.config
    if config is None or not config.excluded_tools:
        return request
    hidden = set(config.excluded_tools)
    for tool in config.tools or ():
        tool.function_declarations = [
            one for one in tool.function_declarations if one.name not in hidden
        ]
    return request


def may_call(conversation: Conversation, name: str) -> bool:
    """Whether the agent lists the tool; handing over is a matter of the hierarchy instead."""
    agent = conversation.agent
    if name == TRANSFER_TO_AGENT or conversation.engine.settings.tools.unlisted:
        return True
    if name in agent.tools:
        return True
    entry = conversation.engine.catalog.find(name)
    return entry is not None and entry in conversation.engine.catalog.of_agent(agent)
