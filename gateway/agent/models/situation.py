"""What a model step is about: the user's words, events, contexts, digits, answers of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.agent.app.models import TRANSFER_TO_AGENT
from gateway.agent.models.base import ModelStep
from gateway.agent.platform import Content, LlmRequest
from gateway.agent.variables import substitute_dynamic

_TAGGED = re.compile(r"<(context|event|state_update)>(.*?)</\1>", re.DOTALL)
_DTMF = re.compile(r"user pressed (\S+) on keypad")
_FINISHED = re.compile(r"function \[(?P<tool>.*?)\] (?:completed with response|failed with error) ")


@dataclass(frozen=True, slots=True)
class Situation:
    """What the model step is about."""

    words: str
    """Plain words of the last user input ('' where it holds none)."""
    last_words: str
    """Plain words of the last input that holds any."""
    events: tuple[str, ...]
    contexts: tuple[str, ...]
    digits: str
    tools: Mapping[str, Any]
    """Tools whose response this step follows: name → response."""
    prompt: str

    @property
    def tool_finished(self) -> bool:
        """Whether an asynchronous tool has come to its end."""
        return any(_FINISHED.match(text) for text in self.contexts)


def situation_of(step: ModelStep) -> Situation:
    """Read the request of the step."""
    request = step.request
    answered = _last_input(request)
    tools = {
        part.function_response.name or "": part.function_response.response
        for part in (answered.parts if answered else [])
        if part.function_response is not None
    }
    inputs = [c for c in request.contents if _is_input(c) and not _has_response(c)]
    # A transfer hands the open question over: the new agent answers the user, not the tool.
    new_input = not tools or set(tools) == {TRANSFER_TO_AGENT}
    last = inputs[-1] if inputs and new_input else None
    words, events, contexts = read_input(last)
    last_words = next((w for c in reversed(inputs) if (w := read_input(c)[0])), "")
    prompt = ""
    if request.config is not None and request.config.system_instruction is not None:
        prompt = "\n".join(p.text for p in request.config.system_instruction.parts if p.text)
    return Situation(
        words=words,
        last_words=last_words,
        events=events,
        contexts=contexts,
        digits=pressed(contexts),
        tools=tools,
        prompt=substitute_dynamic(prompt, step.variables),
    )


def _last_input(request: LlmRequest) -> Content | None:
    return next((c for c in reversed(request.contents) if _is_input(c)), None)


def _is_input(content: Content) -> bool:
    """False for what the platform notes by itself: changed variables."""
    return content.is_user() and any(
        part.text is None or not part.text.startswith("<state_update>") for part in content.parts
    )


def _has_response(content: Content) -> bool:
    return any(part.function_response is not None for part in content.parts)


def read_input(content: Content | None) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Plain words, event names and context texts of one content."""
    words: list[str] = []
    tagged: dict[str, list[str]] = {"event": [], "context": [], "state_update": []}
    for part in content.parts if content is not None else []:
        text = part.text or ""
        for match in _TAGGED.finditer(text):
            tagged[match[1]].append(match[2])
        plain = _TAGGED.sub(" ", text).strip()
        if plain:
            words.append(plain)
    return " ".join(words), tuple(tagged["event"]), tuple(tagged["context"])


def pressed(contexts: Iterable[str]) -> str:
    """The keys that context texts tell of."""
    return "".join(m[1] for text in contexts for m in _DTMF.finditer(text))


def unwrapped(response: Any) -> Any:
    """The tool's own result inside `{"result": …}`."""
    if isinstance(response, Mapping) and set(response) == {"result"}:
        return response["result"]
    return response


def finished_result(situation: Situation) -> Any:
    """The result that a finished asynchronous tool's context text carries."""
    for text in reversed(situation.contexts):
        match = _FINISHED.match(text)
        if match is not None:
            try:
                return unwrapped(json.loads(text[match.end() :]))
            except ValueError:
                return None
    return None
