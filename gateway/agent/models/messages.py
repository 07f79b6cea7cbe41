"""The conversation as services insist on it: every call answered, the user last, plain names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gateway.agent.platform import Content, FunctionCall, FunctionResponse, LlmRequest, Part
from gateway.bidi import context_text

GO_ON = context_text("go on")
"""What the model reads where its own words come last."""
UNANSWERED = {"result": {"error": "the call was interrupted"}}
MAX_NAME_CHARS = 64
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_MODULE = re.compile(r"^.*[.:]")


def conversation(request: LlmRequest) -> list[Content]:
    """The contents of a request, fit for services that check them.

    Each function call is answered in the content that follows it, and by nothing else there;
    answers to no call are left out; neighbours of one role are one content; the last is the user.
    """
    answers = _answers(request.contents)
    result: list[Content] = []
    for content in request.contents:
        parts = [p for p in content.parts if p.text or p.function_call or p.inline_data]
        if not parts:
            continue
        role = "model" if content.is_model() else "user"
        if result and result[-1].role == role and not _answering(result[-1]):
            result[-1].parts.extend(parts)
        else:
            result.append(Content(parts=parts, role=role))
        calls = [part.function_call for part in parts if part.function_call is not None]
        if calls:
            found = [Part(function_response=_answer(call, answers)) for call in calls]
            result.append(Content(parts=found, role="user"))
    if not result or result[-1].is_model():
        result.append(Content(parts=[Part(text=GO_ON)], role="user"))
    return result


def _answering(content: Content) -> bool:
    return any(part.function_response is not None for part in content.parts)


def _answers(contents: Iterable[Content]) -> dict[str, FunctionResponse]:
    return {
        part.function_response.id or part.function_response.name or "": part.function_response
        for content in contents
        for part in content.parts
        if part.function_response is not None
    }


def _answer(call: FunctionCall, answers: Mapping[str, FunctionResponse]) -> FunctionResponse:
    key = call.id or call.name or ""
    found = answers.get(key)
    response = found.response if found is not None else None
    return FunctionResponse(id=call.id, name=call.name, response=response or UNANSWERED)


class Names:
    """Names of tools as services allow them, and back."""

    def __init__(self, request: LlmRequest) -> None:
        declared = request.config.tools if request.config is not None else None
        names = [one.name or "" for tool in declared or () for one in tool.function_declarations]
        names += [
            part.function_call.name or ""
            for content in request.contents
            for part in content.parts
            if part.function_call is not None
        ]
        self._plain: dict[str, str] = {}
        self._own: dict[str, str] = {}
        for name in dict.fromkeys(names):
            plain = _ODD.sub("_", name)[:MAX_NAME_CHARS] or "tool"
            if plain[0].isdigit() or plain[0] == "-":
                plain = f"_{plain[1:]}"
            number = 2
            while plain in self._own:
                end = f"_{number}"
                plain, number = plain[: MAX_NAME_CHARS - len(end)] + end, number + 1
            self._plain[name], self._own[plain] = plain, name

    def plain(self, name: str | None) -> str:
        """The name that the service is given."""
        return self._plain.get(name or "", name or "")

    def own(self, plain: str | None) -> str:
        """The tool's own name; a name that the service made up stays as it is.

        Some models write the name of a module of theirs before it: `functions.look_up`.
        """
        name = plain or ""
        bare = _MODULE.sub("", name)
        return self._own.get(name, self._own.get(bare, name))


def instruction_of(request: LlmRequest) -> str:
    """The system instruction as one text."""
    config = request.config
    content = config.system_instruction if config is not None else None
    return "\n\n".join(part.text for part in content.parts if part.text) if content else ""
