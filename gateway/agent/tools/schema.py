"""JSON Schema and Python signatures as the model's parameter schemas (`type: STRING`, …)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 12
"""Deeper parts of a schema are left open; a schema may refer to itself."""
MAX_PARTS = 2_000
"""Schemas within one, counted as often as they are referred to."""

_PYTHON_TYPES = {
    "str": "STRING",
    "int": "INTEGER",
    "float": "NUMBER",
    "bool": "BOOLEAN",
    "dict": "OBJECT",
    "Dict": "OBJECT",
    "Mapping": "OBJECT",
    "list": "ARRAY",
    "List": "ARRAY",
    "tuple": "ARRAY",
    "Tuple": "ARRAY",
    "set": "ARRAY",
    "Iterable": "ARRAY",
    "Iterator": "ARRAY",
}
_KEPT = ("description", "enum", "format", "minimum", "maximum", "minItems", "maxItems", "title")
_ARGUMENT = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?)\s*:\s*$")


def model_schema(
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    *,
    without: str = "",
    levels: int = MAX_DEPTH,
) -> dict[str, Any]:
    """A JSON Schema as the model's; `root` is the document that `$ref` points into.

    Properties that have the key `without` are left out. Schemas that refer to each other unfold
    without end: one of more than MAX_PARTS parts is left open at a lesser depth.
    """
    for depth in range(levels, 1, -1):
        try:
            return _Unfolding(root, without, MAX_PARTS).of(schema, depth)
        except _TooLarge:
            continue
    # What a call's own arguments are called has to be known, however many there are.
    return _Unfolding(root, without, sys.maxsize).of(schema, 1)


class _TooLarge(Exception):
    """More parts than a model should read."""


class _Unfolding:
    """One schema with all that it refers to in its place."""

    def __init__(self, root: Mapping[str, Any], without: str, parts: int) -> None:
        self._root = root
        self._without = without
        self._parts = parts

    def of(self, schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
        """The schema, left open below `levels`. Raises _TooLarge."""
        self._parts -= 1
        if self._parts < 0:
            raise _TooLarge
        schema = resolved(schema, self._root)
        result: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
        kind = schema.get("type")
        if isinstance(kind, list):
            # 3.1 says "may be null" by a list of types.
            result["nullable"] = "null" in kind
            kind = next((one for one in kind if one != "null"), None)
        if schema.get("nullable") is True:
            result["nullable"] = True
        properties = schema.get("properties")
        if kind is None and isinstance(properties, Mapping):
            kind = "object"
        if kind is None and "items" in schema:
            kind = "array"
        if isinstance(kind, str):
            result["type"] = kind.upper()
        if levels <= 0:
            return result
        if isinstance(properties, Mapping):
            result["properties"] = self._properties(properties, levels - 1)
            required = schema.get("required")
            if isinstance(required, list):
                known = [name for name in required if name in result["properties"]]
                if known:
                    result["required"] = known
        if isinstance(schema.get("items"), Mapping):
            result["items"] = self.of(schema["items"], levels - 1)
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list):
            result["anyOf"] = [self.of(one, levels - 1) for one in options if isinstance(one, dict)]
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                _join(result, self.of(part, levels - 1))
        return result

    def _properties(self, properties: Mapping[str, Any], levels: int) -> dict[str, Any]:
        return {
            str(name): self.of(one, levels)
            for name, one in properties.items()
            if isinstance(one, Mapping)
            and not (self._without and resolved(one, self._root).get(self._without))
        }


def _join(result: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if key == "properties":
            result["properties"] = {**result.get("properties", {}), **value}
        elif key == "required":
            result["required"] = [*result.get("required", []), *value]
        else:
            result.setdefault(key, value)


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a chain of local `$ref` ends at; empty where it leads nowhere."""
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            return {}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside}
    return {}


def function_schema(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, dict[str, Any]]:
    """Description and parameters of a Python tool, from its docstring and type hints."""
    description, about = _docstring(ast.get_docstring(node) or "")
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    optional = {arg.arg for arg in positional[len(positional) - len(arguments.defaults) :]}
    optional |= {
        arg.arg
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    properties: dict[str, Any] = {}
    for arg in (*positional, *arguments.kwonlyargs):
        schema = _annotation(arg.annotation)
        if arg.arg in about:
            schema["description"] = about[arg.arg]
        properties[arg.arg] = schema
    parameters: dict[str, Any] = {"type": "OBJECT", "properties": properties}
    required = [name for name in properties if name not in optional]
    if required:
        parameters["required"] = required
    return description, parameters


def _annotation(node: ast.expr | None) -> dict[str, Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return {}
    if isinstance(node, ast.Attribute):
        node = ast.Name(node.attr)
    if isinstance(node, ast.Name):
        kind = _PYTHON_TYPES.get(node.id)
        return {"type": kind} if kind else {}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        name = node.value.id if isinstance(node.value, ast.Name) else name
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            return {**_annotation(inner[0]), "nullable": True}
        if name == "Union":
            return _union(inner)
        if name == "Literal":
            values = [one.value for one in inner if isinstance(one, ast.Constant)]
            return {"type": "STRING", "enum": [str(value) for value in values]}
        schema = _annotation(ast.Name(name))
        if schema.get("type") == "ARRAY" and inner:
            items = _annotation(inner[0])
            return {**schema, "items": items} if items else schema
        return schema
    return {}


def _union(options: list[ast.expr]) -> dict[str, Any]:
    plain = [o for o in options if not (isinstance(o, ast.Constant) and o.value is None)]
    schema = _annotation(plain[0]) if len(plain) == 1 else {}
    return {**schema, "nullable": True} if len(plain) < len(options) else schema


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the sections, and what the section of arguments says of each."""
    summary: list[str] = []
    about: dict[str, str] = {}
    section = ""
    name = ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading is not None:
            section, name = heading[1], ""
        elif not section:
            summary.append(line)
        elif section in ("Args", "Arguments", "Parameters"):
            match = _ARGUMENT.match(line)
            if match is not None:
                name = match[1]
                about[name] = match[2]
            elif name and line.strip():
                about[name] += " " + line.strip()
    return "\n".join(summary).strip(), about
