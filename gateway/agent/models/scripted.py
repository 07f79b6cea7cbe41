"""The scripted model: rules from a file answer, so that an app runs with no account."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.agent.app.models import END_SESSION, TRANSFER_TO_AGENT
from gateway.agent.models.base import ModelStep, Purpose
from gateway.agent.models.script_file import Call, End, Rule, Say, Script, Step, Transfer, Wait
from gateway.agent.platform import Content, LlmRequest, Part
from gateway.agent.variables import substitute_dynamic, text_of
from gateway.bidi import event_text

_TAGGED = re.compile(r"<(context|event|state_update)>(.*?)</\1>", re.DOTALL)
_DTMF = re.compile(r"user pressed (\S+) on keypad")
_FINISHED = re.compile(r"function \[(?P<tool>.*?)\] (?:completed with response|failed with error) ")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


@dataclass(frozen=True, slots=True)
class _Situation:
    """What the model step is about, as the rules ask for it."""

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


class ScriptedModel:
    """Answers by the first rule that matches."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self._script = script

    async def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """The parts of the first matching rule, or of the default.

        A verdict for a guardrail is TRIGGER only where a rule says so; in place of what a
        guardrail stopped only rules speak.
        """
        if step.purpose is Purpose.GUARDRAIL:
            yield Part(text=self._verdict(step))
            return
        situation = _situation(step)
        used: set[int] = step.memory.setdefault("used_rules", set())
        steps = self._script.default if step.purpose is Purpose.ANSWER else ()
        groups: dict[str, str] = {}
        tool = next(iter(situation.tools), None)
        for rule in self._script.rules:
            matched = _match(rule, situation, step, used)
            if matched is not None:
                steps, groups = rule.steps, matched
                tool = rule.tool or tool
                if rule.once:
                    used.add(rule.line)
                break
        result = _unwrapped(situation.tools.get(tool or ""))
        if result is None:
            result = _finished_result(situation)
        values = _Values(step.variables, groups, result)
        for one in steps:
            if isinstance(one, Wait):
                await asyncio.sleep(one.seconds)
            else:
                yield _part(one, values)

    def _verdict(self, step: ModelStep) -> str:
        for rule in self._script.rules:
            if rule.guardrail == step.about and (rule.user is None or rule.user.search(step.text)):
                return " ".join(one.text for one in rule.steps if isinstance(one, Say))
        return "OK"


def _situation(step: ModelStep) -> _Situation:
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
    words, events, contexts = _read(last)
    last_words = next((w for c in reversed(inputs) if (w := _read(c)[0])), "")
    digits = "".join(m[1] for text in contexts for m in _DTMF.finditer(text))
    prompt = ""
    if request.config is not None and request.config.system_instruction is not None:
        prompt = "\n".join(p.text for p in request.config.system_instruction.parts if p.text)
    return _Situation(
        words=words,
        last_words=last_words,
        events=events,
        contexts=contexts,
        digits=digits,
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


def _read(content: Content | None) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
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


def _match(
    rule: Rule, situation: _Situation, step: ModelStep, used: set[int]
) -> dict[str, str] | None:
    """The named groups of the rule's `user` pattern; None where the rule does not match."""
    if rule.line in used or (rule.agents and step.agent not in rule.agents):
        return None
    if rule.guardrail is not None:
        return None
    if rule.tool is not None:
        if rule.tool not in situation.tools:
            return None
        response = json.dumps(situation.tools[rule.tool], ensure_ascii=False, default=str)
        if rule.result is not None and not rule.result.search(response):
            return None
    for name, pattern in rule.variables.items():
        if not pattern.search(text_of(step.variables.get(name))):
            return None
    if rule.prompt is not None and not rule.prompt.search(situation.prompt):
        return None
    if rule.event is not None:
        wanted = event_text(rule.event)
        if not any(event_text(name) == wanted for name in situation.events):
            return None
    if rule.context is not None and not any(map(rule.context.search, situation.contexts)):
        return None
    if rule.dtmf is not None and not (situation.digits and rule.dtmf.search(situation.digits)):
        return None
    if rule.user is None:
        return {}
    match = rule.user.search(situation.last_words if rule.tool else situation.words)
    # No words never match, not even a pattern that matches everything.
    if match is None or not (situation.last_words if rule.tool else situation.words):
        return None
    return {name: group or "" for name, group in match.groupdict().items()}


def _unwrapped(response: Any) -> Any:
    """The tool's own result inside `{"result": …}`."""
    if isinstance(response, Mapping) and set(response) == {"result"}:
        return response["result"]
    return response


def _finished_result(situation: _Situation) -> Any:
    """The result that a finished asynchronous tool's context text carries."""
    for text in reversed(situation.contexts):
        match = _FINISHED.match(text)
        if match is not None:
            try:
                return _unwrapped(json.loads(text[match.end() :]))
            except ValueError:
                return None
    return None


class _Values:
    """What placeholders stand for."""

    def __init__(
        self, variables: Mapping[str, Any], groups: Mapping[str, str], result: Any
    ) -> None:
        self._variables = variables
        self._roots = {"user": dict(groups), "result": result}

    def get(self, path: str) -> Any:
        """The value of `name`, `result.key` or `user.group`; None where there is none."""
        first, *rest = path.split(".")
        if rest or first == "result":
            value = self._roots.get(first, self._variables.get(first))
        else:
            value = self._variables.get(first)
        for key in rest:
            if isinstance(value, Mapping):
                value = value.get(key)
            elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                return None
        return value

    def fill(self, text: str) -> str:
        """The text with its placeholders replaced; what is not there leaves nothing."""
        return _PLACEHOLDER.sub(lambda m: text_of(self.get(m[1])), text)

    def fill_all(self, value: Any) -> Any:
        """Strings anywhere in a JSON value filled; one that is a placeholder keeps its type."""
        if isinstance(value, Mapping):
            return {key: self.fill_all(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill_all(item) for item in value]
        if isinstance(value, str):
            whole = _PLACEHOLDER.fullmatch(value)
            return self.get(whole[1]) if whole else self.fill(value)
        return value


def _part(step: Step, values: _Values) -> Part:
    if isinstance(step, Say):
        return Part(text=values.fill(step.text))
    if isinstance(step, Transfer):
        return Part.from_agent_transfer(step.agent)
    if isinstance(step, End):
        return Part.from_function_call(END_SESSION, values.fill_all(step.args))
    assert isinstance(step, Call)
    return Part.from_function_call(step.tool, values.fill_all(step.args))
