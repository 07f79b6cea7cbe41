"""Python tools: how arguments reach the function and results come back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gateway.agent.app.models import Tool
from gateway.agent.turn import clean_json
from gateway.bidi import snake
from gateway.errors import AppError

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation

_NOT_A_NAME = re.compile(r"\W")


def attribute_name(display_name: str) -> str:
    """The name by which app code reaches a tool: `tools.<this>`."""
    return _NOT_A_NAME.sub("_", display_name)


def fitted(function: Callable[..., Any], args: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the function's own names: camelCase where it says snake_case."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return args
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return args
    return {
        (name if name in parameters or snake(name) not in parameters else snake(name)): value
        for name, value in args.items()
    }


def call_tool(conversation: Conversation, tool: Tool, args: dict[str, Any]) -> Any:
    """Run a Python tool here and now; only for use in a worker thread.

    Returns a JSON value. Raises what the tool raises.
    """
    function_definition = tool.definition.python_function
    if tool.code is None or function_definition is None:
        raise AppError(
            "app.tool_kind",
            f"tools of the kind {tool.kind or 'unknown'} are not available here",
            where=tool.where,
        )
    function = conversation.function(tool.code, function_definition.name)
    return clean_json(function(**fitted(function, dict(args))))


def error_text(error: BaseException) -> str:
    """What the model reads of an error."""
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
