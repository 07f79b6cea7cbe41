"""Python tools: how arguments reach the function and results come back."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from gateway.bidi import snake

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


def error_text(error: BaseException) -> str:
    """What the model reads of an error."""
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
