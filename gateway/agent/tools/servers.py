"""Ask MCP servers for their tools when an agent that lists them is about to speak."""

from __future__ import annotations

import asyncio

import structlog

from gateway.agent.conversation import Conversation
from gateway.errors import GatewayError

log = structlog.get_logger()

LIST_S = 3.0
"""A server that takes longer has no tools for now; nobody on a telephone waits for it."""


async def know_servers(conversation: Conversation) -> None:
    """Ask the servers of the agent's toolsets that are due; one that fails is left out for now."""
    catalog = conversation.engine.catalog
    due = catalog.unlisted_servers(conversation.agent)
    if due:
        await asyncio.gather(*(_ask(conversation, name) for name in due))


async def _ask(conversation: Conversation, toolset: str) -> None:
    catalog, context = conversation.engine.catalog, conversation.session_context()
    try:
        await conversation.run_code(
            lambda: catalog.list_server(toolset, context), conversation.context(), LIST_S
        )
    except GatewayError as error:
        log.error("toolset.not_listed", toolset=toolset, **error.fields())
