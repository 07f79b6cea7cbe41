"""References between objects, all by display name, and the tree that the agents form."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from gateway.agent.app.check.problem import Code, Severity
from gateway.agent.app.check.tree import Object, Place, Tree
from gateway.agent.app.models import SYSTEM_TOOLS
from gateway.agent.fallback import ENDINGS
from gateway.agent.tools.openapi import parse_operations
from gateway.agent.tools.python import attribute_name
from gateway.bidi import get
from gateway.errors import AppError

_UTILITY_WORDS = (
    *("escalat", "satisf", "survey", "feedback", "handoff", "hand-off", "hand off", "handover"),
    *("human", "live agent", "utility", "shared", "goodbye", "closing", "fallback", "faq"),
)
"""Words in the name or description of a childless agent that several parents may share."""


def check_references(tree: Tree) -> None:
    """Report names that nothing bears, and agents that do not form a tree."""
    _agents(tree)
    _others(tree)
    _parents(tree)


def near(name: str, known: set[str]) -> str:
    """The way out of a wrong name."""
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if close:
        return f"Did you mean {close[0]!r}? References go by display name."
    if not known:
        return "The app has none at all."
    some = ", ".join(repr(item) for item in sorted(known)[:8])
    return f"References go by display name; there is {some}."


class _Checker:
    """One kind of name."""

    def __init__(
        self,
        tree: Tree,
        folder: str,
        what: str,
        extra: frozenset[str] = frozenset(),
        severity: Severity = Severity.ERROR,
    ) -> None:
        problems = tree.problems
        self._report = problems.error if severity is Severity.ERROR else problems.warn
        self._what = what
        self._known = tree.names(folder) | extra
        # A name may be in a file that could not be parsed: then nothing is said.
        self._blind = any(path.startswith(f"{folder}/") for path in tree.broken)

    def __call__(self, item: Object, place: Place, name: Any) -> None:
        if not isinstance(name, str) or not name or name in self._known:
            return
        if self._blind or name.startswith("$"):
            return
        self._report(
            Code.REFERENCE,
            item.file,
            item.line(*place),
            f"there is no {self._what} {name!r}",
            near(name, self._known),
        )


def _agents(tree: Tree) -> None:
    agent = _Checker(tree, "agents", "agent")
    tool = _Checker(tree, "tools", "tool", SYSTEM_TOOLS)
    toolset = _Checker(tree, "toolsets", "toolset")
    guardrail = _Checker(tree, "guardrails", "guardrail")
    app = tree.app
    if app is not None:
        if not app.get("rootAgent"):
            tree.problems.error(
                Code.REFERENCE,
                app.file,
                app.line("rootAgent"),
                "the app has no rootAgent",
                near("", tree.names("agents")),
            )
        agent(app, ("rootAgent",), app.get("rootAgent"))
        for place, name in app.texts("guardrails"):
            guardrail(app, place, name)
        place = ("languageSettings", "fallbackAction")
        action = app.get(*place)
        if isinstance(action, str) and "/" not in action:
            _Checker(tree, "tools", "tool", SYSTEM_TOOLS | ENDINGS.keys())(app, place, action)
    for item in tree.agents:
        for place, name in item.texts("childAgents"):
            agent(item, place, name)
        for place, name in item.texts("tools"):
            tool(item, place, name)
        for place, name in item.texts("guardrails"):
            guardrail(item, place, name)
        for place, use in item.mappings("toolsets"):
            toolset(item, (*place, "toolset"), get(use, "toolset"))
            _operations(tree, item, place, use)
        for place, rule in item.mappings("transferRules"):
            agent(item, (*place, "childAgent"), get(rule, "childAgent"))


def _others(tree: Tree) -> None:
    agent = _Checker(tree, "agents", "agent")
    tool = _Checker(tree, "tools", "tool", SYSTEM_TOOLS)
    for item in tree.tools:
        agent(item, ("agentTool", "agent"), item.get("agentTool", "agent"))
        place: Place = ("widgetTool", "dataMapping", "sourceToolName")
        tool(item, place, item.get(*place))
        tree.text(item, "openApiTool", "openApiSchema")
    for item in tree.objects["toolsets"]:
        tree.text(item, "openApiToolset", "openApiSchema")
    for item in tree.objects["guardrails"]:
        place = ("action", "transferAgent", "agent")
        agent(item, place, item.get(*place))
    for item in tree.objects["examples"]:
        agent(item, ("entryAgent",), item.get("entryAgent"))
    evaluation = _Checker(tree, "evaluations", "evaluation")
    dataset = _Checker(tree, "evaluationDatasets", "evaluation dataset")
    expectation = _Checker(tree, "evaluationExpectations", "evaluation expectation")
    for item in tree.objects["evaluationDatasets"]:
        for place, name in item.texts("evaluations"):
            evaluation(item, place, name)
    for item in tree.objects["evaluations"]:
        for place, name in item.texts("evaluationDatasets"):
            dataset(item, place, name)
        for kind in ("golden", "scenario"):
            for place, name in item.texts(kind, "evaluationExpectations"):
                expectation(item, place, name)
        _expected(tree, item)


_CALL_KEYS = frozenset({"toolCall", "expectedToolCall", "toolResponse", "mockToolResponse"})


def _expected(tree: Tree, evaluation: Object) -> None:
    """Tools and agents that an evaluation waits for: a name that nothing bears never comes."""
    agent = _Checker(tree, "agents", "agent", severity=Severity.WARNING)
    names = {item.get("name") for item in tree.tools}
    tools = SYSTEM_TOOLS | {name for name in names if isinstance(name, str)}
    of_toolsets = _of_toolsets(tree)
    tool = _Checker(tree, "tools", "tool", tools | (of_toolsets or set()), Severity.WARNING)
    for place, value in evaluation.walk():
        key = to_camel(place[-1]) if isinstance(place[-1], str) else ""
        if not isinstance(value, Mapping):
            continue
        # Whole resource names are not names of objects here.
        if key in _CALL_KEYS and of_toolsets is not None:
            name = get(value, "tool")
            if isinstance(name, str) and "/" not in name:
                tool(evaluation, (*place, "tool"), name)
        elif key == "agentTransfer":
            name = get(value, "targetAgent")
            if isinstance(name, str) and "/" not in name:
                agent(evaluation, (*place, "targetAgent"), name)


# ---- operations of a toolset


def _operations(tree: Tree, item: Object, place: Place, use: dict[str, Any]) -> None:
    name = get(use, "toolset")
    toolset = next((t for t in tree.objects["toolsets"] if t.name == name), None)
    known = operations(tree, toolset) if toolset is not None else None
    if known is None:
        return
    for inner, operation in item.texts(*place, "toolIds"):
        if operation not in known:
            tree.problems.error(
                Code.REFERENCE,
                item.file,
                item.line(*inner),
                f"the toolset {name!r} has no operation {operation!r}",
                near(operation, known),
            )


def _of_toolsets(tree: Tree) -> set[str] | None:
    """All names that operations of toolsets go by; None where they cannot be known."""
    names: set[str] = set()
    for toolset in tree.objects["toolsets"]:
        known = operations(tree, toolset)
        if known is None:
            return None
        names |= known | {f"{toolset.name}_{name}" for name in known}
    return names | set(map(attribute_name, names))


def operations(tree: Tree, toolset: Object) -> set[str] | None:
    """The operation ids of an OpenAPI toolset; None where they cannot be known here."""
    if toolset.file not in tree.operations:
        tree.operations[toolset.file] = _read_operations(tree, toolset)
    return tree.operations[toolset.file]


def _read_operations(tree: Tree, toolset: Object) -> set[str] | None:
    schema = tree.text(toolset, "openApiToolset", "openApiSchema")
    if schema is None:
        return None
    try:
        return {operation.operation_id for operation in parse_operations(schema.text, schema.file)}
    except AppError as error:
        tree.problems.add(error, schema.file, "It is an OpenAPI document in YAML or JSON.")
        return None


# ---- the tree of agents


def _parents(tree: Tree) -> None:
    parents: dict[str, list[tuple[Object, Place]]] = {}
    for item in tree.agents:
        for place, child in item.texts("childAgents"):
            parents.setdefault(child, []).append((item, place))
    root = tree.app.get("rootAgent") if tree.app is not None else None
    for item in tree.agents:
        named = parents.get(item.name, [])
        for parent, place in named:
            _parent(tree, root, item, parent, place)
        if len({parent.name for parent, _ in named}) > 1 and not _utility(item):
            parent, place = named[1]
            tree.problems.error(
                Code.SEVERAL_PARENTS,
                parent.file,
                parent.line(*place),
                f"{item.name!r} is a child of {named[0][0].name!r} and of {parent.name!r}",
                "Give an agent one parent; shared utility agents (escalation, satisfaction) may "
                "have several, and have no children.",
            )


def _parent(tree: Tree, root: Any, item: Object, parent: Object, place: Place) -> None:
    line = parent.line(*place)
    if item.name == root:
        tree.problems.error(
            Code.ROOT_IS_CHILD,
            parent.file,
            line,
            f"the root agent {root!r} is a child of {parent.name!r}",
            "Take it out: a child can hand the caller back to its parent without that.",
        )
    elif root != parent.name and any(name == parent.name for _, name in item.texts("childAgents")):
        tree.problems.warn(
            Code.CYCLE,
            parent.file,
            line,
            f"{parent.name!r} and {item.name!r} are children of each other",
            "A child can hand back to its parent without listing it.",
        )


def _utility(item: Object) -> bool:
    if any(True for _ in item.texts("childAgents")):
        return False
    words = f"{item.name} {item.get('description') or ''}".lower().replace("_", " ")
    return any(word in words for word in _UTILITY_WORDS)


def check_reach(tree: Tree) -> None:
    """Report agents that nobody hands over to; after instructions and code were checked."""
    root = tree.app.get("rootAgent") if tree.app is not None else None
    by_name = {item.name: item for item in tree.agents}
    if root not in by_name:
        return
    reached = {root, *tree.mentioned}
    reached |= {item.get("agentTool", "agent") for item in tree.tools}
    reached |= {item.get("action", "transferAgent", "agent") for item in tree.objects["guardrails"]}
    open_ = [name for name in reached if name in by_name]
    while open_:
        for _, child in by_name[open_.pop()].texts("childAgents"):
            if child in by_name and child not in reached:
                reached.add(child)
                open_.append(child)
    for name in sorted(by_name.keys() - reached):
        tree.problems.warn(
            Code.UNREACHABLE,
            by_name[name].file,
            None,
            f"no other agent leads to {name!r}",
            "Name it among an agent's childAgents, or delete it.",
        )
