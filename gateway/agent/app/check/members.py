"""What app code asks of the platform's own objects: members that they do not have."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.tree import Text, Tree
from gateway.agent.platform import INJECTED, CallbackContext, LlmRequest, LlmResponse, ToolContext

_ARGUMENTS: dict[str, type] = {
    "callback_context": CallbackContext,
    "llm_request": LlmRequest,
    "llm_response": LlmResponse,
}
"""Parameters by the names that the platform's samples give them; annotations say more."""
_CONTEXT = "context"
_ASKING = frozenset({"hasattr", "getattr", "setattr", "delattr"})
_MEMBERS: dict[type, frozenset[str]] = {}


def check_members(tree: Tree, text: Text, module: ast.Module) -> None:
    """Warn of members that an object of the platform does not have."""
    # Who asks whether there is a member knows that there may be none.
    asked = {
        name
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and _name(node.func) in _ASKING
        for name in _texts(node.args)
    }
    for node, kind in _uses(module):
        if node.attr in asked or node.attr.startswith("__") or node.attr in _members(kind):
            continue
        near = difflib.get_close_matches(node.attr, _members(kind), 1, 0.6)
        known = sorted(n for n in _members(kind) - set(dir(BaseModel)) if not n.startswith("_"))
        tree.problems.warn(
            Code.UNKNOWN_MEMBER,
            text.file,
            text.line_of(node.lineno),
            f"{kind.__name__} has no {node.attr!r}",
            f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(known)}.",
        )


def _uses(module: ast.Module) -> Iterator[tuple[ast.Attribute, type]]:
    """Attributes that are read of what is known to be the platform's, with its class."""
    bound = _stored(module)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
    everywhere: dict[str, type] = {**INJECTED, _CONTEXT: ToolContext}
    yield from _reads(module, {n: kind for n, kind in everywhere.items() if n not in bound})
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        stored = _stored(function)
        given = {
            argument.arg: kind
            for argument in (*function.args.posonlyargs, *function.args.args)
            if (kind := _kind(argument)) is not None and argument.arg not in stored
        }
        yield from _reads(function, given)


def _kind(argument: ast.arg) -> type | None:
    annotation = argument.annotation
    if annotation is None:
        return _ARGUMENTS.get(argument.arg)
    return INJECTED.get(annotation.id) if isinstance(annotation, ast.Name) else None


def _reads(within: ast.AST, kinds: dict[str, type]) -> Iterator[tuple[ast.Attribute, type]]:
    for node in ast.walk(within):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id in kinds
        ):
            yield node, kinds[node.value.id]


def _stored(within: ast.AST) -> set[str]:
    """Names that get a value of their own there, so that they may be anything."""
    names = {
        node.id
        for node in ast.walk(within)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    # What is hung on to a name by `x.y = …` is there afterwards.
    return names | {
        node.value.id
        for node in ast.walk(within)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.attr not in _members(_ARGUMENTS.get(node.value.id, object))
    }


def _members(kind: type) -> frozenset[str]:
    if kind not in _MEMBERS:
        names = set(dir(kind))
        if issubclass(kind, BaseModel):
            names |= kind.model_fields.keys()
        elif issubclass(kind, CallbackContext):
            names |= vars(kind()).keys()
        _MEMBERS[kind] = frozenset(names)
    return _MEMBERS[kind]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _texts(nodes: list[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
