"""Texts and mappings that code puts together, as far as they stand there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
Pairs = tuple[int, dict[str, Any]]
"""A line, and the keys and values that stand there."""
UNKNOWN: Any = object()
"""A value that only the running code knows."""
HOLE = "707070707"
"""What stands in a text for a value that only the running code knows: fit for JSON anywhere."""
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0-9.]*[a-zA-Z]")
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Written:
    """A text in the code; `whole`: it is all there, no value comes in and nothing follows."""

    line: int
    text: str
    whole: bool


def written_texts(module: ast.Module) -> Iterator[Written]:
    """All texts; those that code puts together once, with holes."""
    inside: set[int] = set()
    for node in ast.walk(module):
        if id(node) in inside or not isinstance(node, ast.expr):
            continue
        text = _text(node)
        if text is None:
            continue
        inside |= {id(part) for part in ast.walk(node) if part is not node}
        yield Written(node.lineno, text, isinstance(node, ast.Constant))


def _text(node: ast.expr) -> str | None:
    """The text that an expression makes; None where it is none or is all hole."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(value) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts: list[str | None] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts.append(_text(node.right))
            node = node.left
        parts.append(_text(node))
        if not any(parts):
            return None
        return "".join(HOLE if part is None else part for part in reversed(parts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        left = _text(node.left)
        return None if left is None else _PERCENT.sub(HOLE, left).replace("%%", "%")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = _text(node.func.value) if node.func.attr == "format" else None
        return None if owner is None else _BRACES.sub(_brace, owner)
    return None


def _part(node: ast.expr) -> str:
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) else HOLE


def _brace(match: re.Match[str]) -> str:
    return match[0][0] if match[0] in ("{{", "}}") else HOLE


def written_mappings(module: ast.Module) -> Iterator[Pairs]:
    """All mappings by line: literals, `dict(…)`, and names that are given key after key."""
    for node in ast.walk(module):
        if isinstance(node, ast.Dict):
            yield node.lineno, dict(_literal(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "dict":
                yield node.lineno, {w.arg: _value(w.value) for w in node.keywords if w.arg}
        elif isinstance(node, Function):
            yield from _given(node)


def _given(function: Function) -> Iterator[Pairs]:
    """`name[key] = value` where the name also has an `audioUri`: what else it has is looked at."""
    groups: dict[str, list[Pairs]] = {}
    done: list[list[Pairs]] = []
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(assigned, key=lambda node: (node.lineno, node.col_offset)):
        target = node.targets[0]
        if isinstance(target, ast.Name):
            done.append(groups.pop(target.id, []))
            if isinstance(node.value, ast.Dict):
                keys = dict.fromkeys(dict(_literal(node.value)), UNKNOWN)
                groups[target.id] = [(node.lineno, keys)]
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            key = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if isinstance(key, str):
                entry = (node.lineno, {key: _value(node.value)})
                groups.setdefault(target.value.id, []).append(entry)
    for group in (*done, *groups.values()):
        if any("audioUri" in keys for _, keys in group):
            yield from ((line, {"audioUri": UNKNOWN, **keys}) for line, keys in group)


def _literal(node: ast.Dict) -> Iterator[tuple[str, Any]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, _value(value)


def _value(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else UNKNOWN
