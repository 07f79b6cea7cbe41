"""The parameter schema of a tool as services take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NUMBERS = ("minimum", "maximum")
_COUNTS = ("minItems", "maxItems")
_FORMATS = {
    "STRING": frozenset({"date-time", "enum"}),
    "INTEGER": frozenset({"int32", "int64"}),
    "NUMBER": frozenset({"float", "double"}),
}
"""Formats that Gemini knows; others are errors to it."""


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the subset that Gemini's function declarations allow.

    It wants a type everywhere, items of arrays, and only strings in an `enum`.
    """
    kind = _kind(schema)
    result: dict[str, Any] = {"type": kind} if kind else {}
    description = str(schema.get("description") or "")
    options = schema.get("enum")
    if isinstance(options, list):
        texts = [str(option) for option in options if option not in ("", None)]
        if kind == "STRING":
            result["enum"] = texts
        else:
            description = f"{description} One of: {', '.join(texts)}.".strip()
    if description:
        result["description"] = description
    if schema.get("nullable") is True:
        result["nullable"] = True
    form = schema.get("format")
    if form in _FORMATS.get(kind, ()):
        result["format"] = form
    result.update(_bounds(schema))
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        result["properties"] = {name: gemini_schema(_inner(p)) for name, p in properties.items()}
        required = _required(schema, properties)
        if required:
            result["required"] = required
    if kind == "ARRAY":
        result["items"] = gemini_schema(_inner(schema.get("items")))
    if "anyOf" in schema:
        result["anyOf"] = [gemini_schema(_inner(option)) for option in schema["anyOf"]]
    return result


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as JSON Schema: types in lower case, `nullable` as a type."""
    result: dict[str, Any] = {}
    kind = str(schema.get("type") or "").lower()
    if kind:
        result["type"] = [kind, "null"] if schema.get("nullable") is True else kind
    for key in ("description", "enum", "format", "title"):
        if schema.get(key):
            result[key] = schema[key]
    result.update(_bounds(schema))
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {name: json_schema(_inner(p)) for name, p in properties.items()}
        required = _required(schema, properties)
        if required:
            result["required"] = required
    if isinstance(schema.get("items"), Mapping):
        result["items"] = json_schema(schema["items"])
    if "anyOf" in schema:
        result["anyOf"] = [json_schema(_inner(option)) for option in schema["anyOf"]]
    return result


def _kind(schema: Mapping[str, Any]) -> str:
    """The type; '' where only alternatives are given."""
    kind = str(schema.get("type") or "").upper()
    if kind or "anyOf" in schema:
        return kind
    if "properties" in schema:
        return "OBJECT"
    return "ARRAY" if "items" in schema else "STRING"


def _bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds as numbers: exports hold the long ones as text."""
    result: dict[str, Any] = {}
    for key in (*_NUMBERS, *_COUNTS):
        try:
            number = float(schema[key])
        except (KeyError, TypeError, ValueError):
            continue
        result[key] = int(number) if key in _COUNTS or number.is_integer() else number
    return result


def _required(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if name in properties] if isinstance(required, list) else []


def _inner(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
