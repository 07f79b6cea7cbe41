"""Run one function call: callbacks around it, the tool itself, its result or error."""

from __future__ import annotations

import logging
from typing import Any

from gateway.agent import callbacks
from gateway.agent.app.models import Tool as AppTool
from gateway.agent.conversation import Conversation
from gateway.agent.platform import FunctionCall, Part, Tool
from gateway.agent.runner import DeadlineExceeded
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.facade import PENDING
from gateway.agent.tools.python import call_tool, error_text
from gateway.agent.turn import Turn, clean_json

log = logging.getLogger("gateway.agent")


async def execute(
    conversation: Conversation, turn: Turn, client: ClientCalls, call: FunctionCall
) -> Part:
    """The function response of one call; a tool that fails answers `{"error": …}`.

    App code that runs is waited for, also when the turn is cut short: its result is kept.
    """
    name, call_id = call.name or "", call.id or ""
    args: dict[str, Any] = dict(call.args or {})
    app_tool = conversation.engine.app.tools.get(name)
    if app_tool is None:
        return response_part(call, {"error": f"there is no tool {name!r}"})
    tool = describe(app_tool)
    result = await callbacks.before_tool(conversation, tool, args, call_id)
    response: dict[str, Any] | None = None
    if result is None:
        if app_tool.asynchronous:
            conversation.start_async(app_tool, args, call_id)
            result = response = dict(PENDING)
        else:
            value = await _run(conversation, turn, client, app_tool, args, call_id)
            result = value if isinstance(value, dict) else {"result": value}
            response = {"result": value}
    replaced = await callbacks.after_tool(conversation, tool, args, call_id, result)
    if replaced is not None or response is None:
        response = {"result": clean_json(result if replaced is None else replaced)}
    return Part(
        function_response=_named(call, response),
    )


def describe(app_tool: AppTool) -> Tool:
    """The tool as callbacks see it."""
    definition = app_tool.definition
    function = definition.python_function or definition.client_function
    return Tool(name=app_tool.display_name, description=function.description if function else "")


def response_part(call: FunctionCall, value: Any) -> Part:
    """A function response with the platform's wrapping."""
    return Part(function_response=_named(call, {"result": value}))


def _named(call: FunctionCall, response: dict[str, Any]) -> Any:
    return {"id": call.id, "name": call.name, "response": response}


async def run_python(
    conversation: Conversation, tool: AppTool, args: dict[str, Any], call_id: str, deadline_s: float
) -> tuple[Any, bool]:
    """A Python tool in a worker thread: (result, True) or ({"error": …}, False)."""
    context = conversation.context(function_call_id=call_id)
    try:
        value = await conversation.run_code(
            lambda: call_tool(conversation, tool, args), context, deadline_s
        )
    except DeadlineExceeded:
        log.error("session %s: tool %s overran", conversation.identity.session, tool.display_name)
        return {"error": f"the tool took longer than {deadline_s:g} seconds"}, False
    except Exception as error:
        log.error(
            "session %s: tool %s raised %s",
            conversation.identity.session,
            tool.display_name,
            type(error).__name__,
        )
        return {"error": error_text(error)}, False
    return value, True


async def _run(
    conversation: Conversation,
    turn: Turn,
    client: ClientCalls,
    tool: AppTool,
    args: dict[str, Any],
    call_id: str,
) -> Any:
    limits = conversation.engine.settings.runtime
    deadline_s = tool.timeout_s or limits.tool_timeout_s
    if tool.definition.client_function is not None:
        return await client.call(conversation, turn, tool, args, call_id, deadline_s)
    if tool.code is None:
        return {"error": f"tools of the kind {tool.kind or 'unknown'} are not available here"}
    value, _ = await run_python(conversation, tool, args, call_id, deadline_s)
    return value
