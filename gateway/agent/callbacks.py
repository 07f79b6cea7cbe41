"""The six kinds of callback: run in list order, the first that returns something decides.

A callback that raises or overruns its deadline counts as one that returned nothing; the session
goes on and the log says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import structlog

from gateway.agent.app.models import CallbackKind, SourceCode
from gateway.agent.conversation import Conversation
from gateway.agent.platform import Content, Event, LlmRequest, LlmResponse, Part, Tool, ToolContext
from gateway.agent.size import MAX_PARTS, TooLarge
from gateway.errors import GatewayError

log = structlog.get_logger()


async def _chain(
    conversation: Conversation,
    kind: CallbackKind,
    arguments: Callable[[ToolContext], dict[str, Any]],
    accept: Callable[[Any], Any],
    extra_events: list[Event] | None = None,
    function_call_id: str | None = None,
    sources: Iterable[SourceCode] | None = None,
) -> Any:
    """`sources`: the callbacks; default: all of the agent's of this kind."""
    if sources is None:
        sources = conversation.agent.callbacks.get(kind, ())
    for source in sources:
        context = conversation.context(extra_events, function_call_id)
        value = await _call(conversation, kind, source, context, arguments(context))
        if value is None:
            continue
        accepted = accept(value)
        if accepted is not None:
            return accepted
        log.warning(
            "callback.value_ignored",
            session=conversation.identity.session,
            callback=kind.value,
            where=source.where,
            returned=type(value).__name__,
        )
    return None


async def _call(
    conversation: Conversation,
    kind: CallbackKind,
    source: SourceCode,
    context: ToolContext,
    arguments: dict[str, Any],
) -> Any:
    def call() -> Any:
        # By position: the names of the parameters are the author's own.
        return conversation.function(source, kind.value)(*arguments.values())

    deadline_s = conversation.engine.settings.runtime.callback_timeout_s
    try:
        return await conversation.run_code(call, context, deadline_s)
    except GatewayError as error:
        log.error(
            "callback.failed",
            session=conversation.identity.session,
            callback=kind.value,
            **{"where": source.where, **error.fields()},
        )
    except Exception as error:
        log.error(
            "callback.raised",
            session=conversation.identity.session,
            callback=kind.value,
            where=source.where,
            error=type(error).__name__,
            place=_place(error),
        )
    return None


def _place(error: BaseException) -> str:
    """File and line where app code raised; the message may hold caller words, so it stays out."""
    trace = error.__traceback__
    place = "no line"
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _parts(content: Content) -> Content:
    """Raises TooLarge."""
    if len(content.parts) > MAX_PARTS:
        raise TooLarge("a response", MAX_PARTS, "parts")
    content.parts = [part for part in content.parts if isinstance(part, Part)]
    return content


def _as_content(value: Any) -> Content | None:
    if isinstance(value, LlmResponse):
        value = value.content
    if isinstance(value, Part):
        value = Content(parts=[value], role="model")
    return _parts(value) if isinstance(value, Content) else None


def _as_response(value: Any) -> LlmResponse | None:
    if isinstance(value, Content | Part):
        content = _as_content(value)
        return LlmResponse(content=content)
    if isinstance(value, LlmResponse):
        value.content = _parts(value.content or Content(role="model"))
        return value
    return None


def _as_dict(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


async def guard_decision(
    conversation: Conversation, kind: CallbackKind, source: SourceCode, arguments: tuple[Any, ...]
) -> bool:
    """Whether a guardrail's code says TRIGGER; code that fails counts as if it did."""
    context = conversation.context()

    def call() -> Any:
        name = kind.value if conversation.engine.code.definition(source, kind.value) else ""
        return conversation.function(source, name)(context, *arguments)

    deadline_s = conversation.engine.settings.runtime.callback_timeout_s
    try:
        value = await conversation.run_code(call, context, deadline_s)
    except Exception as error:
        log.error(
            "guardrail.raised",
            session=conversation.identity.session,
            where=source.where,
            error=type(error).__name__,
            place=_place(error),
        )
        return True
    decision = value.get("decision") if isinstance(value, dict) else None
    return str(decision).upper() == "TRIGGER"


async def transfer_condition(conversation: Conversation, source: SourceCode) -> bool:
    """Whether the code of a transfer rule says yes; code that fails says no."""
    context = conversation.context()
    deadline_s = conversation.engine.settings.runtime.callback_timeout_s
    try:
        value = await conversation.run_code(
            lambda: conversation.function(source, "")(context), context, deadline_s
        )
    except Exception as error:
        log.error(
            "transfer_rule.raised",
            session=conversation.identity.session,
            where=source.where,
            error=type(error).__name__,
            place=_place(error),
        )
        return False
    return bool(value)


async def around_agent(conversation: Conversation, kind: CallbackKind) -> Content | None:
    """before_agent or after_agent: the content that stands for the agent's output, if any."""
    result: Content | None = await _chain(
        conversation, kind, lambda context: {"callback_context": context}, _as_content
    )
    return result


async def before_model(conversation: Conversation, request: LlmRequest) -> LlmResponse | None:
    """The response that stands for the model's, if any. The request may be changed in place."""
    result: LlmResponse | None = await _chain(
        conversation,
        CallbackKind.BEFORE_MODEL,
        lambda context: {"callback_context": context, "llm_request": request},
        _as_response,
    )
    return result


async def after_model(
    conversation: Conversation, response: LlmResponse, response_event: Event
) -> LlmResponse | None:
    """The response that replaces the model's, if any; of a partial one, proactive callbacks'."""
    result: LlmResponse | None = await _chain(
        conversation,
        CallbackKind.AFTER_MODEL,
        lambda context: {"callback_context": context, "llm_response": response},
        _as_response,
        extra_events=[response_event],
        sources=conversation.agent.proactive if response.partial else None,
    )
    return result


async def before_tool(
    conversation: Conversation, tool: Tool, args: dict[str, Any], call_id: str
) -> dict[str, Any] | None:
    """The result that stands for the tool's, if any. `args` may be changed in place."""
    result: dict[str, Any] | None = await _chain(
        conversation,
        CallbackKind.BEFORE_TOOL,
        lambda context: {"tool": tool, "input": args, "callback_context": context},
        _as_dict,
        function_call_id=call_id,
    )
    return result


async def after_tool(
    conversation: Conversation,
    tool: Tool,
    args: dict[str, Any],
    call_id: str,
    tool_response: dict[str, Any],
) -> dict[str, Any] | None:
    """The result that replaces the tool's, if any."""
    result: dict[str, Any] | None = await _chain(
        conversation,
        CallbackKind.AFTER_TOOL,
        lambda context: {
            "tool": tool,
            "input": args,
            "callback_context": context,
            "tool_response": tool_response,
        },
        _as_dict,
        function_call_id=call_id,
    )
    return result
