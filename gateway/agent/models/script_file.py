"""The scripted model's file: YAML rules, read strictly; errors name file and line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gateway.agent.app.models import App
from gateway.agent.tools.python import attribute_name
from gateway.errors import AppError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")
MAX_WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Say:
    """Text of the response; `{name}`, `{result.key}` and `{user.group}` are filled in."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; strings in the arguments are filled in."""

    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Hand over to another agent."""

    agent: str


@dataclass(frozen=True, slots=True)
class End:
    """End the session: arguments of `end_session`."""

    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Thinking time before the rest."""

    seconds: float


Step = Say | Call | Transfer | End | Wait


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; all conditions that are given must hold."""

    steps: tuple[Step, ...]
    line: int
    agents: frozenset[str] = frozenset()
    user: re.Pattern[str] | None = None
    event: str | None = None
    context: re.Pattern[str] | None = None
    dtmf: re.Pattern[str] | None = None
    tool: str | None = None
    result: re.Pattern[str] | None = None
    variables: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    prompt: re.Pattern[str] | None = None
    guardrail: str | None = None
    """The rule is the verdict on a text that this guardrail asks about."""
    once: bool = False

    @property
    def about_input(self) -> bool:
        """True where the rule answers new input of the user."""
        return any(x is not None for x in (self.user, self.event, self.context, self.dtmf))


@dataclass(frozen=True, slots=True)
class Script:
    """All rules in order, and what answers where none matches."""

    rules: tuple[Rule, ...]
    default: tuple[Step, ...]


def parse_script(text: str, name: str, app: App) -> Script:
    """Read a script. Raises AppError script.* with `name:line`."""
    return _Parser(name, app).script(text)


_CONDITIONS = (
    "user",
    "event",
    "context",
    "dtmf",
    "tool",
    "result",
    "variables",
    "prompt",
    "guardrail",
    "once",
)


class _Parser:
    def __init__(self, name: str, app: App) -> None:
        self._name = name
        self._app = app

    def _error(self, node: yaml.Node, message: str, hint: str | None = None) -> AppError:
        return AppError(
            "script.value", message, where=f"{self._name}:{node.start_mark.line + 1}", hint=hint
        )

    def script(self, text: str) -> Script:
        try:
            root = yaml.compose(text, yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark is not None else 1
            problem = getattr(error, "problem", None) or "cannot be parsed"
            raise AppError(
                "script.yaml", f"not YAML: {problem}", where=f"{self._name}:{line}"
            ) from None
        except RecursionError:
            raise AppError("script.yaml", "nested too deeply", where=self._name) from None
        if root is None:
            raise AppError("script.empty", "the script has no rules", where=f"{self._name}:1")
        keys = self._mapping(root, ("rules", "default"))
        rules = (
            tuple(self._rule(n) for n in self._sequence(keys["rules"])) if "rules" in keys else ()
        )
        default = self._steps(keys["default"]) if "default" in keys else ()
        return Script(rules, default)

    # ---- nodes

    def _mapping(self, node: yaml.Node, allowed: tuple[str, ...] | None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, "this must be a mapping")
        keys: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = self._value(key_node)
            if not isinstance(key, str):
                raise self._error(key_node, "keys must be text")
            if allowed is not None and key not in allowed:
                raise self._error(
                    key_node, f"unknown key {key!r}", f"Known here: {', '.join(allowed)}."
                )
            if key in keys:
                raise self._error(key_node, f"key {key!r} stands twice")
            keys[key] = value
        return keys

    def _sequence(self, node: yaml.Node) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, "this must be a list")
        return list(node.value)

    def _value(self, node: yaml.Node) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_document(node)
        except yaml.YAMLError as error:
            raise self._error(node, f"not a value: {error}") from None
        finally:
            loader.dispose()

    def _text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            raise self._error(node, "this must be text")
        return str(node.value)

    def _regex(self, node: yaml.Node) -> re.Pattern[str]:
        try:
            return re.compile(self._text(node), re.IGNORECASE)
        except re.error as error:
            raise self._error(node, f"not a regular expression: {error}") from None

    def _flag(self, node: yaml.Node) -> bool:
        value = self._value(node)
        if not isinstance(value, bool):
            raise self._error(node, "this must be true or false")
        return value

    # ---- rules

    def _rule(self, node: yaml.Node) -> Rule:
        keys = self._mapping(node, ("agent", "when", "do"))
        if "do" not in keys:
            raise self._error(node, "a rule without 'do'")
        when = self._mapping(keys["when"], _CONDITIONS) if "when" in keys else {}
        if "result" in when and "tool" not in when:
            raise self._error(when["result"], "'result' needs 'tool'")
        patterns = {
            name: self._regex(when[name])
            for name in ("user", "context", "dtmf", "result", "prompt")
            if name in when
        }
        return Rule(
            steps=self._steps(keys["do"]),
            line=node.start_mark.line + 1,
            agents=self._agents(keys["agent"]) if "agent" in keys else frozenset(),
            event=self._text(when["event"]) if "event" in when else None,
            tool=self._tool(when["tool"]) if "tool" in when else None,
            guardrail=self._guardrail(when["guardrail"]) if "guardrail" in when else None,
            variables=self._variables(when["variables"]) if "variables" in when else {},
            once=self._flag(when["once"]) if "once" in when else False,
            **patterns,
        )

    def _agents(self, node: yaml.Node) -> frozenset[str]:
        nodes = self._sequence(node) if isinstance(node, yaml.SequenceNode) else [node]
        return frozenset(self._agent(n) for n in nodes)

    def _agent(self, node: yaml.Node) -> str:
        name = self._text(node)
        if name not in self._app.agents:
            raise self._error(
                node,
                f"the app has no agent {name!r}",
                f"Agents by display name: {', '.join(sorted(self._app.agents))}.",
            )
        return name

    def _tool(self, node: yaml.Node) -> str:
        name = self._text(node)
        known = {*self._app.tools, "end_session", "transfer_to_agent", "customize_response"}
        toolsets = tuple(attribute_name(f"{one}_") for one in self._app.resources["toolsets"])
        # What a toolset offers may be known only once its server is asked.
        if name not in known and not (toolsets and name.startswith(toolsets)):
            raise self._error(
                node, f"the app has no tool {name!r}", f"Tools: {', '.join(sorted(known))}."
            )
        return name

    def _guardrail(self, node: yaml.Node) -> str:
        name = self._text(node)
        known = self._app.resources["guardrails"]
        if name not in known:
            raise self._error(
                node,
                f"the app has no guardrail {name!r}",
                f"Guardrails: {', '.join(sorted(known)) or 'none'}.",
            )
        return name

    def _variables(self, node: yaml.Node) -> dict[str, re.Pattern[str]]:
        return {key: self._regex(value) for key, value in self._mapping(node, None).items()}

    def _steps(self, node: yaml.Node) -> tuple[Step, ...]:
        return tuple(self._step(n) for n in self._sequence(node))

    def _step(self, node: yaml.Node) -> Step:
        keys = self._mapping(node, ("say", "call", "transfer", "end", "wait"))
        if len(keys) != 1:
            raise self._error(node, "one step does one thing")
        ((kind, value),) = keys.items()
        if kind == "say":
            return Say(self._text(value))
        if kind == "transfer":
            return Transfer(self._agent(value))
        if kind == "wait":
            return Wait(self._duration(value))
        if kind == "call":
            return self._call(value)
        return self._end(value)

    def _call(self, node: yaml.Node) -> Call:
        if isinstance(node, yaml.ScalarNode):
            return Call(self._tool(node), {})
        keys = self._mapping(node, ("tool", "args"))
        if "tool" not in keys:
            raise self._error(node, "a call without 'tool'")
        args = self._value(keys["args"]) if "args" in keys else {}
        if not isinstance(args, dict):
            raise self._error(keys["args"], "'args' must be a mapping")
        return Call(self._tool(keys["tool"]), args)

    def _end(self, node: yaml.Node) -> End:
        if isinstance(node, yaml.ScalarNode):
            return End({"reason": self._text(node)})
        keys = self._mapping(node, ("reason", "session_escalated", "params"))
        args: dict[str, Any] = {"reason": self._text(keys["reason"]) if "reason" in keys else ""}
        if "session_escalated" in keys:
            args["session_escalated"] = self._flag(keys["session_escalated"])
        if "params" in keys:
            params = self._value(keys["params"])
            if not isinstance(params, dict):
                raise self._error(keys["params"], "'params' must be a mapping")
            args["params"] = params
        return End(args)

    def _duration(self, node: yaml.Node) -> float:
        match = _DURATION.fullmatch(self._text(node).strip())
        seconds = float(match[1]) * (0.001 if match[2] == "ms" else 1.0) if match else -1.0
        if not 0 <= seconds <= MAX_WAIT_S:
            raise self._error(node, "not a duration", "Write it like 300ms or 1.5s.")
        return seconds
