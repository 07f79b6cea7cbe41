"""What app code names: variables, tools, agents."""

from __future__ import annotations

import ast

from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.references import near, operations
from gateway.agent.app.check.tree import Object, Text, Tree
from gateway.agent.app.models import END_SESSION, SYSTEM_TOOLS, TRANSFER_TO_AGENT
from gateway.agent.tools.python import attribute_name

_VARIABLE_CALLS = frozenset({"get_variable", "set_variable", "remove_variable"})
_STATES = frozenset({"state", "variables"})


def check_calls(
    tree: Tree, item: Object, text: Text, module: ast.Module, variables: set[str]
) -> None:
    """Report names in the code that lead nowhere."""
    if tree.broken:
        return  # what is named may stand in a file that cannot be read
    visitor = _Visitor(tree, item, text, variables)
    for node in ast.walk(module):
        visitor.node(node)


class _Visitor:
    def __init__(self, tree: Tree, item: Object, text: Text, variables: set[str]) -> None:
        self._tree = tree
        self._problems = tree.problems
        self._text = text
        self._variables = variables
        self._listed = (
            {name for _, name in item.texts("tools")} if item.folder == "agents" else None
        )
        self._agent = item.name
        self._names = tree.names("tools")
        self._attributes = {attribute_name(name) for name in self._names}
        self._prefixes: list[str] = []
        for toolset in tree.objects["toolsets"]:
            prefix = attribute_name(toolset.name) + "_"
            known = operations(tree, toolset)
            if known is None:
                self._prefixes.append(prefix)
            else:
                self._attributes |= {prefix + attribute_name(name) for name in known}

    def node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Subscript):
            value = node.value
            if isinstance(value, ast.Attribute) and value.attr in _STATES:
                self._variable(node, node.slice)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ("tools", "async_tools"):
                self._attribute(node)
        elif isinstance(node, ast.Call):
            self._call(node)

    def _call(self, node: ast.Call) -> None:
        name = _name(node.func)
        first = node.args[0] if node.args else None
        if name in _VARIABLE_CALLS:
            self._variable(node, first)
        elif name in ("get", "setdefault", "pop") and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Attribute) and owner.attr in _STATES:
                self._variable(node, first)
        elif name == "from_agent_transfer":
            self._transfer(node, first or _keyword(node, "agent"))
        elif name == "from_end_session":
            self._tool(node, END_SESSION)
        elif name == "from_function_call":
            called = first or _keyword(node, "name")
            if isinstance(called, ast.Constant) and isinstance(called.value, str):
                self._tool(node, called.value)

    def _line(self, node: ast.expr) -> int:
        return self._text.line_of(node.lineno)

    def _variable(self, node: ast.expr, key: ast.AST | None) -> None:
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        name = key.value
        # Names with an underscore in front are a session's scratch paper by custom.
        if name in self._variables or name.startswith("_"):
            return
        self._problems.warn(
            Code.UNDECLARED,
            self._text.file,
            self._line(node),
            f"{name!r} is not a declared variable: no client can set it, no instruction sees it",
            "Declare it under variableDeclarations, or begin its name with an underscore.",
        )

    def _attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if name in self._attributes or name.startswith("_"):
            return
        if any(name.startswith(prefix) for prefix in self._prefixes):
            return
        self._problems.error(
            Code.REFERENCE,
            self._text.file,
            self._line(node),
            f"there is no tool {name!r}",
            near(name, self._attributes),
        )

    def _transfer(self, node: ast.Call, target: ast.AST | None) -> None:
        if not isinstance(target, ast.Constant) or not isinstance(target.value, str):
            return
        agents = self._tree.names("agents")
        self._tree.mentioned.add(target.value)
        if target.value not in agents:
            self._problems.error(
                Code.REFERENCE,
                self._text.file,
                self._line(node),
                f"there is no agent {target.value!r}",
                near(target.value, agents),
            )

    def _tool(self, node: ast.Call, name: str) -> None:
        """A function call that the code makes on the model's behalf."""
        if self._listed is None or name in self._listed or name == TRANSFER_TO_AGENT:
            return
        if name in self._names | SYSTEM_TOOLS:
            self._problems.warn(
                Code.NOT_LISTED,
                self._text.file,
                self._line(node),
                f"{self._agent!r} calls the tool {name!r} but does not list it: "
                "the platform refuses the call",
                f"Add {name} to the agent's tools.",
            )
        elif not self._prefixes and attribute_name(name) not in self._attributes:
            self._problems.error(
                Code.REFERENCE,
                self._text.file,
                self._line(node),
                f"there is no tool {name!r}",
                near(name, self._names | SYSTEM_TOOLS),
            )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in node.keywords if word.arg == name), None)
