"""Run a tool in this thread: its mocked answer, its fake, its code, or the service behind it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from gateway.agent.platform import Tool
from gateway.agent.tools.catalog import ANY_FAKE, Entry, Kind
from gateway.agent.tools.python import fitted
from gateway.agent.turn import clean_json
from gateway.errors import AppError

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation


POLL_S = 0.01
"""How often app code looks whether an agent or the client has answered."""


def stands_in(conversation: Conversation, entry: Entry) -> bool:
    """Whether a mock or a fake may answer for the tool in this session."""
    fake = entry.fake
    faked = fake is not None and (conversation.use_fakes or fake.always)
    mocks = conversation.engine.mocks
    return faked or bool(mocks.calls) or mocks.closed


def call_here(conversation: Conversation, entry: Entry, args: dict[str, Any]) -> Any:
    """The tool's result as a JSON value; only for use in a worker thread.

    Raises what the tool raises, or AppError where nothing here runs it.
    """
    mocked, answer = conversation.engine.mocks.answer(entry.names, args)
    if mocked:
        return clean_json(answer)
    faked = _faked(conversation, entry, args)
    if faked is not None:
        return clean_json(faked)
    if entry.kind is Kind.PYTHON:
        assert entry.tool is not None
        assert entry.tool.code is not None
        assert entry.tool.definition.python_function is not None
        name = entry.tool.definition.python_function.name
        function = conversation.function(entry.tool.code, name)
        return clean_json(function(**fitted(function, dict(args))))
    if entry.backend is not None:
        return clean_json(entry.backend.call(args, conversation.session_context()))
    if entry.kind in (Kind.AGENT, Kind.CLIENT):
        return _on_the_loop(conversation, entry, args)
    raise AppError("app.tool_kind", entry.problem, where=entry.where)


def _on_the_loop(conversation: Conversation, entry: Entry, args: dict[str, Any]) -> Any:
    """An agent or the client answers while this thread waits; bounded by the tool's deadline."""
    reach = conversation.reach
    if reach is None:
        raise AppError(
            "app.tool_kind",
            f"the turn in which the tool {entry.name!r} could answer is over",
            where=entry.where,
        )
    deadline_s = entry.timeout_s or conversation.engine.settings.runtime.tool_timeout_s

    async def answer() -> Any:
        from gateway.agent.tools.delegate import run_agent_tool  # it runs the loop that runs tools

        turn, client = reach.turn, reach.client
        if entry.kind is Kind.AGENT:
            return await run_agent_tool(conversation, turn, client, entry, args, deadline_s)
        call_id = conversation.new_call_id()
        return await client.call(conversation, turn, entry, args, call_id, deadline_s)

    future = asyncio.run_coroutine_threadsafe(answer(), reach.loop)
    try:
        while not future.done():
            # Sleep: the deadline of the code can end it, and virtual time goes on meanwhile.
            time.sleep(POLL_S)
    finally:
        future.cancel()
    return clean_json(future.result())


def answered_by_stand_in(
    conversation: Conversation, entry: Entry, args: dict[str, Any]
) -> tuple[bool, Any]:
    """(True, result) where a mock or a fake answers; only for use in a worker thread."""
    mocked, answer = conversation.engine.mocks.answer(entry.names, args)
    if mocked:
        return True, clean_json(answer)
    faked = _faked(conversation, entry, args)
    return faked is not None, clean_json(faked)


def _faked(conversation: Conversation, entry: Entry, args: dict[str, Any]) -> Any:
    """What the tool's fake returns; None: ask the real tool."""
    fake = entry.fake
    if fake is None or not (conversation.use_fakes or fake.always):
        return None
    names = [f"fake_{name}" for name in (entry.tool_id, entry.name) if name]
    code = conversation.engine.code
    name = next((n for n in names if code.definition(fake.code, n) is not None), ANY_FAKE)
    function = conversation.function(fake.code, name)
    tool = Tool(name=entry.name, description=entry.description)
    return function(tool, dict(args), conversation.context())
