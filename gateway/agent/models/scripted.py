"""The scripted model: rules from a file answer, so that an app runs with no account."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from gateway.agent.app.models import END_SESSION
from gateway.agent.models.base import ModelStep, Purpose
from gateway.agent.models.script_file import Call, End, Rule, Say, Script, Step, Transfer, Wait
from gateway.agent.models.situation import Situation, finished_result, situation_of, unwrapped
from gateway.agent.platform import Part
from gateway.agent.variables import text_of
from gateway.bidi import event_text

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w.]*)\}")


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
        situation = situation_of(step)
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
        result = unwrapped(situation.tools.get(tool or ""))
        if result is None:
            result = finished_result(situation)
        values = _Values(step.variables, groups, result)
        for one in steps:
            if isinstance(one, Wait):
                await asyncio.sleep(one.seconds)
            else:
                yield _part(one, values)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _verdict(self, step: ModelStep) -> str:
        for rule in self._script.rules:
            if rule.guardrail == step.about and (rule.user is None or rule.user.search(step.text)):
                return " ".join(one.text for one in rule.steps if isinstance(one, Say))
        return "OK"


def _match(
    rule: Rule, situation: Situation, step: ModelStep, used: set[int]
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
