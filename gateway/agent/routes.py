"""Who may hand over to whom: parents, children, siblings, and the rules of `transferRules`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import bidi
from gateway.agent.app.models import Agent, App, SourceCode
from gateway.agent.expressions import Expression, parse_expression
from gateway.agent.texts import source
from gateway.errors import AppError


@dataclass(frozen=True, slots=True)
class TransferRule:
    """A rule about the way from one agent to another.

    `condition` or `code` decides; `forbids`: the model may not go this way while it holds,
    else the hand-over happens as soon as it does.
    """

    origin: str
    target: str
    forbids: bool
    condition: Expression | None
    code: SourceCode | None
    where: str


class Routes:
    """The hierarchy of an app's agents. Raises AppError app.transfer_rule, app.expression."""

    def __init__(self, app: App) -> None:
        self._children = {
            name: list(agent.definition.child_agents) for name, agent in app.agents.items()
        }
        self._parents: dict[str, list[str]] = {name: [] for name in app.agents}
        for parent, children in self._children.items():
            for child in children:
                self._parents.setdefault(child, []).append(parent)
        self._rules: dict[str, list[TransferRule]] = {}
        for agent in app.agents.values():
            for rule in _rules(app, agent):
                self._rules.setdefault(rule.origin, []).append(rule)

    def reachable(self, agent: str) -> list[str]:
        """The agents to which the model may hand over: children, parents, siblings."""
        parents = self._parents.get(agent, [])
        siblings = [child for parent in parents for child in self._children.get(parent, [])]
        names = dict.fromkeys([*self._children.get(agent, []), *parents, *siblings])
        return [name for name in names if name != agent]

    def hand_overs(self, agent: str) -> list[TransferRule]:
        """Rules by which this agent hands over by itself, in order."""
        return [rule for rule in self._rules.get(agent, ()) if not rule.forbids]

    def forbidden(self, agent: str, target: str, variables: Mapping[str, Any]) -> bool:
        """Whether a rule keeps the model from this way now."""
        return any(
            rule.forbids
            and rule.target == target
            and rule.condition is not None
            and rule.condition.holds(variables)
            for rule in self._rules.get(agent, ())
        )

    def sources(self) -> Iterable[SourceCode]:
        """Code of conditions."""
        return [rule.code for rules in self._rules.values() for rule in rules if rule.code]


def _rules(app: App, agent: Agent) -> Iterable[TransferRule]:
    content = agent.definition.model_extra or {}
    entries = bidi.get(content, "transferRules")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        where = f"{agent.where}:transferRules[{index}]"
        if not isinstance(entry, Mapping):
            raise _fault("a transfer rule is a mapping", where)
        child = str(bidi.get(entry, "childAgent") or "").rsplit("/", 1)[-1]
        if child not in app.agents:
            place = f"{where}.childAgent"
            raise _fault(f"childAgent {child!r} is not an agent of the app", place)
        direction = str(entry.get("direction") or "PARENT_TO_CHILD")
        if direction not in ("PARENT_TO_CHILD", "CHILD_TO_PARENT"):
            raise _fault(f"{direction!r} is no direction", where)
        ways = (agent.display_name, child)
        origin, target = ways if direction == "PARENT_TO_CHILD" else ways[::-1]
        forbids = bidi.get(entry, "disablePlannerTransfer")
        moves = bidi.get(entry, "deterministicTransfer")
        body = forbids if isinstance(forbids, Mapping) else moves
        if not isinstance(body, Mapping):
            raise _fault("neither deterministicTransfer nor disablePlannerTransfer", where)
        condition = bidi.get(body, "expressionCondition")
        code = bidi.get(body, "pythonCodeCondition")
        text = condition.get("expression") if isinstance(condition, Mapping) else None
        python = bidi.get(code, "pythonCode") if isinstance(code, Mapping) else None
        if not text and not python:
            raise _fault("the rule has no condition", where)
        yield TransferRule(
            origin=origin,
            target=target,
            forbids=body is forbids,
            condition=parse_expression(str(text), f"{where}.expression") if text else None,
            code=source(app, str(python), f"{where}.pythonCode") if python and not text else None,
            where=where,
        )


def _fault(message: str, where: str) -> AppError:
    return AppError(
        "app.transfer_rule",
        message,
        where=where,
        hint="childAgent, direction and one of deterministicTransfer, disablePlannerTransfer.",
    )
