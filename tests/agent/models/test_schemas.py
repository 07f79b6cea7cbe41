"""Parameters of tools in the two dialects of schemas."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types

from gateway.agent.models.schemas import gemini_schema, json_schema


@pytest.mark.parametrize(
    ("schema", "gemini", "plain"),
    [
        ({}, {"type": "STRING"}, {}),
        ({"type": "BOOLEAN", "default": True}, {"type": "BOOLEAN"}, {"type": "boolean"}),
        (
            {"type": "STRING", "enum": ["", "a"], "format": "email"},
            {"type": "STRING", "enum": ["a"]},
            {"type": "string", "enum": ["", "a"], "format": "email"},
        ),
        (
            {"properties": {"a": {"type": "NUMBER", "minimum": 0.5}}, "required": ["a"]},
            {
                "type": "OBJECT",
                "properties": {"a": {"type": "NUMBER", "minimum": 0.5}},
                "required": ["a"],
            },
            {"properties": {"a": {"type": "number", "minimum": 0.5}}, "required": ["a"]},
        ),
        (
            {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
            {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        (
            {"type": "ARRAY", "maxItems": "many", "items": {"type": "OBJECT"}},
            {"type": "ARRAY", "items": {"type": "OBJECT"}},
            {"type": "array", "items": {"type": "object"}},
        ),
    ],
)
def test_each_service_gets_what_it_takes(
    schema: dict[str, Any], gemini: dict[str, Any], plain: dict[str, Any]
) -> None:
    assert gemini_schema(schema) == gemini
    assert json_schema(schema) == plain
    types.Schema.model_validate(gemini)
