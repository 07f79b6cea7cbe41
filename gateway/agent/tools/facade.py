"""The globals through which app code reaches the session: `tools`, `async_tools`, `context`, …"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.agent.platform import AsyncTools, CallbackContext
from gateway.agent.scope import current, nested
from gateway.agent.tools.catalog import Entry
from gateway.agent.tools.here import call_here
from gateway.agent.tools.python import error_text

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation

PENDING = {"result": "pending"}


class ToolResponse:
    """What `tools.x(...)` gives: the tool's result as `.json()`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def json(self) -> Any:
        """The result."""
        return self._value

    def __getitem__(self, key: Any) -> Any:
        return self._value[key]

    def __repr__(self) -> str:
        return f"ToolResponse({self._value!r})"


class _Named:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def _find(self, name: str) -> Entry:
        entry = self._conversation.engine.catalog.find(name)
        if entry is None:
            raise AttributeError(f"the app has no tool {name!r}")
        return entry

    def _refusal(self, entry: Entry) -> str | None:
        access = self._conversation.engine.access
        refusal = access.refusal(entry.name, self._conversation.channel)
        if refusal is None and access.needs_consent(entry.name):
            # Only the agent can ask the caller; code must not go past the question.
            refusal = f"the tool {entry.name!r} needs the caller's consent: let the agent call it"
        return refusal


class Tools(_Named):
    """`tools.<name>({...})`: another tool of the app, or `<toolset>_<operation>`, here and now."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        entry = self._find(name)

        def call(args: dict[str, Any] | None = None, **more: Any) -> ToolResponse:
            refusal = self._refusal(entry)
            if refusal is not None:
                return ToolResponse({"error": refusal})
            with nested(self._conversation.context()):
                try:
                    return ToolResponse(
                        call_here(self._conversation, entry, {**(args or {}), **more})
                    )
                except Exception as error:
                    return ToolResponse({"error": error_text(error)})

        return call


class AsyncToolsFacade(_Named, AsyncTools):
    """`async_tools.<name>({...})`: started once the calling code has returned.

    The agent hears of the result as of any asynchronous tool's.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        entry = self._find(name)

        def call(args: dict[str, Any] | None = None, **more: Any) -> ToolResponse:
            refusal = self._refusal(entry)
            if refusal is not None:
                return ToolResponse({"error": refusal})
            self._conversation.ask_async(entry, {**(args or {}), **more})
            return ToolResponse(dict(PENDING))

        return call


class _Context:
    """The `context` global: the context of the call that runs in this thread."""

    def _target(self) -> CallbackContext:
        scope = current()
        if scope is None or scope.context is None:
            raise RuntimeError("context is only there while the platform calls a function")
        return scope.context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target(), name, value)


def app_globals(conversation: Conversation) -> dict[str, Any]:
    """What app code of this session finds among its globals."""

    def get_variable(name: str, default: Any = None) -> Any:
        return conversation.state.get(name, default)

    def set_variable(name: str, value: Any) -> None:
        conversation.state[name] = value

    def remove_variable(name: str) -> None:
        del conversation.state[name]

    return {
        "tools": Tools(conversation),
        "async_tools": AsyncToolsFacade(conversation),
        "context": _Context(),
        "get_variable": get_variable,
        "set_variable": set_variable,
        "remove_variable": remove_variable,
    }
