"""Run one function call: callbacks around it, the tool itself, its result or error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from gateway.agent import callbacks
from gateway.agent.conversation import Conversation
from gateway.agent.platform import FunctionCall, FunctionDeclaration, Part, Tool
from gateway.agent.runner import DeadlineExceeded
from gateway.agent.size import TooLarge
from gateway.agent.tools.catalog import Entry, Kind
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.delegate import run_agent_tool
from gateway.agent.tools.facade import PENDING
from gateway.agent.tools.here import answered_by_stand_in, call_here, stands_in
from gateway.agent.tools.python import error_text
from gateway.agent.tools.schema import function_schema
from gateway.agent.turn import Turn, clean_answer

log = structlog.get_logger()


async def execute(
    conversation: Conversation, turn: Turn, client: ClientCalls, call: FunctionCall
) -> Part:
    """The function response of one call; a tool that fails answers `{"error": …}`.

    App code that runs is waited for, also when the turn is cut short: its result is kept.
    """
    name, call_id = call.name or "", call.id or ""
    args: dict[str, Any] = dict(call.args or {})
    entry = conversation.engine.catalog.find(name)
    if entry is None:
        return response_part(call, {"error": f"there is no tool {name!r}"})
    tool = Tool(name=entry.name, description=describe(conversation, entry)[0])
    result = await callbacks.before_tool(conversation, tool, args, call_id)
    response: dict[str, Any] | None = None
    if result is None:
        if entry.asynchronous:
            conversation.start_async(entry, args, call_id)
            pending = PENDING["result"]
            response = {"response" if entry.kind is Kind.AGENT else "result": pending}
            result = dict(response)
        else:
            deadline_s = entry.timeout_s or conversation.engine.settings.runtime.tool_timeout_s
            value, _ = await _run(conversation, turn, client, entry, args, call_id, deadline_s)
            result = value if isinstance(value, dict) else {"result": value}
            response = {"result": value}
    replaced = await callbacks.after_tool(conversation, tool, args, call_id, result)
    if replaced is not None or response is None:
        response = {"result": clean_answer(result if replaced is None else replaced)}
    return Part(
        function_response=_named(call, response),
    )


def describe(conversation: Conversation, entry: Entry) -> tuple[str, dict[str, Any] | None]:
    """Description and parameters of a tool, from its file, its API or its code."""
    parameters = dict(entry.parameters) if entry.parameters is not None else None
    if entry.kind is Kind.PYTHON and entry.tool is not None and entry.tool.code is not None:
        function = entry.tool.definition.python_function
        node = conversation.engine.code.definition(
            entry.tool.code, function.name if function else ""
        )
        if node is not None:
            about, parameters = function_schema(node)
            return entry.description or about, parameters
    return entry.description, parameters


def declaration(conversation: Conversation, entry: Entry) -> FunctionDeclaration:
    """The tool as the model learns of it."""
    description, parameters = describe(conversation, entry)
    return FunctionDeclaration(name=entry.name, description=description, parameters=parameters)


def response_part(call: FunctionCall, value: Any) -> Part:
    """A function response with the platform's wrapping."""
    return Part(function_response=_named(call, {"result": value}))


def _named(call: FunctionCall, response: dict[str, Any]) -> Any:
    return {"id": call.id, "name": call.name, "response": response}


async def run_async(
    conversation: Conversation,
    turn: Turn,
    client: ClientCalls,
    entry: Entry,
    args: dict[str, Any],
    call_id: str,
) -> tuple[Any, bool]:
    """An asynchronous tool from start to end: (result, True) or ({"error": …}, False).

    `turn`: what a client is asked by; nobody waits for it, and nobody cuts it short.
    """
    deadline_s = entry.timeout_s or conversation.engine.settings.runtime.async_tool_timeout_s
    return await _run(conversation, turn, client, entry, args, call_id, deadline_s, aside=True)


async def _run(
    conversation: Conversation,
    turn: Turn,
    client: ClientCalls,
    entry: Entry,
    args: dict[str, Any],
    call_id: str,
    deadline_s: float,
    *,
    aside: bool = False,
) -> tuple[Any, bool]:
    """A tool wherever it runs: (result, True) or ({"error": …}, False). `aside`: no turn waits."""

    def here(work: Callable[[], Any]) -> Awaitable[tuple[Any, bool]]:
        return _in_thread(conversation, entry, call_id, work, deadline_s, aside=aside)

    if entry.kind not in (Kind.CLIENT, Kind.AGENT):
        return await here(lambda: call_here(conversation, entry, args))
    if stands_in(conversation, entry):
        answer, good = await here(lambda: answered_by_stand_in(conversation, entry, args))
        if not good:
            return answer, False
        answered, value = answer
        if answered:
            return value, True
    if entry.kind is Kind.CLIENT:
        value = await client.call(conversation, turn, entry, args, call_id, deadline_s)
    else:
        value = await run_agent_tool(conversation, turn, client, entry, args, deadline_s)
    return value, not (isinstance(value, dict) and "error" in value)


async def _in_thread(
    conversation: Conversation,
    entry: Entry,
    call_id: str,
    work: Callable[[], Any],
    deadline_s: float,
    *,
    aside: bool,
) -> tuple[Any, bool]:
    """What `work` returns in a worker thread, True; or ({"error": …}, False)."""
    context = conversation.context(function_call_id=call_id)
    try:
        value = await conversation.run_code(work, context, deadline_s, aside=aside)
    except DeadlineExceeded:
        log.error("tool.overran", session=conversation.identity.session, tool=entry.name)
        return {"error": f"the tool took longer than {deadline_s:g} seconds"}, False
    except TooLarge as error:
        session = conversation.identity.session
        log.error("tool.answer_dropped", session=session, tool=entry.name, **error.fields())
        return {"error": str(error)}, False
    except Exception as error:
        log.error(
            "tool.raised",
            session=conversation.identity.session,
            tool=entry.name,
            error=type(error).__name__,
        )
        return {"error": error_text(error)}, False
    return value, True
