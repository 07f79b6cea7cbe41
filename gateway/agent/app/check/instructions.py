"""What instructions refer to: `{@TOOL: …}`, `{@AGENT: …}`, `{name}` and `{{name}}`."""

from __future__ import annotations

import re

from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.references import near, operations
from gateway.agent.app.check.schema import PREDEFINED_VARIABLES
from gateway.agent.app.check.tree import Object, Text, Tree
from gateway.agent.app.models import SYSTEM_TOOLS

_REFERENCE = re.compile(r"\{@(TOOL|AGENT):\s*([^{}]+?)\s*\}")
_ALMOST = re.compile(r"\{\s*@?\s*(?:tool|agent)\b\s*:?[^{}\n]*\}", re.IGNORECASE)
_STATIC = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_DYNAMIC = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")


def declared_variables(tree: Tree) -> set[str]:
    """The names that the app declares, with those of the platform."""
    names = set(PREDEFINED_VARIABLES)
    if tree.app is not None:
        for key in ("variableDeclarations", "predefinedVariableDeclarations"):
            for _, declaration in tree.app.mappings(key):
                names.add(str(declaration.get("name")))
    return names


def declare(name: str, variables: set[str]) -> str:
    """The way out of a variable that is not declared."""
    known = near(name, variables)
    suggestion = known.split("?")[0] + "? " if known.startswith("Did") else ""
    return f"{suggestion}Declare it under variableDeclarations in the app's file."


def check_instructions(tree: Tree) -> None:
    """Report references in texts that lead nowhere."""
    checker = _Checker(tree)
    if tree.app is not None:
        text = tree.text(tree.app, "globalInstruction")
        if text is not None:
            checker.check(text, None)
    for agent in tree.agents:
        text = tree.text(agent, "instruction")
        if text is not None:
            checker.check(text, agent)


class _Checker:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._problems = tree.problems
        self._agents = tree.names("agents")
        self._variables = declared_variables(tree)
        self._tools = tree.names("tools") | SYSTEM_TOOLS | tree.names("toolsets")
        for toolset in tree.objects["toolsets"]:
            known = operations(tree, toolset)
            if known is None:
                # Its operations cannot be known, so any name with its prefix may be one.
                self._tools.add(f"{toolset.name}_")
            else:
                self._tools |= known | {f"{toolset.name}_{name}" for name in known}
        self._blind = bool(tree.broken)

    def check(self, text: Text, agent: Object | None) -> None:
        for match in _REFERENCE.finditer(text.text):
            self._reference(text, text.line(match.start()), match[1], match[2], agent)
        for match in _ALMOST.finditer(text.text):
            if not _REFERENCE.fullmatch(match[0]):
                self._problems.warn(
                    Code.REFERENCE_SYNTAX,
                    text.file,
                    text.line(match.start()),
                    f"{match[0][:60]!r} is almost a reference",
                    "Write {@TOOL: display_name} or {@AGENT: Display Name}.",
                )
        for match in _STATIC.finditer(text.text):
            if match[1] not in self._variables and not self._blind:
                self._problems.error(
                    Code.UNDECLARED,
                    text.file,
                    text.line(match.start()),
                    f"{{{{{match[1]}}}}} is not a declared variable: nothing would stand there",
                    declare(match[1], self._variables),
                )
        for match in _DYNAMIC.finditer(text.text):
            if match[1] not in self._variables and not self._blind:
                self._problems.warn(
                    Code.UNDECLARED,
                    text.file,
                    text.line(match.start()),
                    f"{{{match[1]}}} is not a declared variable",
                    declare(match[1], self._variables),
                )

    def _reference(self, text: Text, line: int, kind: str, name: str, agent: Object | None) -> None:
        if kind == "AGENT":
            self._tree.mentioned.add(name)
            if name not in self._agents and not self._blind:
                self._problems.error(
                    Code.REFERENCE,
                    text.file,
                    line,
                    f"there is no agent {name!r}",
                    near(name, self._agents),
                )
            return
        unknown = name not in self._tools and not any(
            prefix.endswith("_") and name.startswith(prefix) for prefix in self._tools
        )
        if unknown and not self._blind:
            self._problems.error(
                Code.REFERENCE,
                text.file,
                line,
                f"there is no tool {name!r}",
                near(name, self._tools),
            )
        elif (
            agent is not None
            and name in self._tree.names("tools") | SYSTEM_TOOLS
            and name not in {tool for _, tool in agent.texts("tools")}
        ):
            self._problems.warn(
                Code.NOT_LISTED,
                text.file,
                line,
                f"{agent.name!r} speaks of the tool {name!r} but does not list it",
                f"Add it to the tools in {agent.file}.",
            )
