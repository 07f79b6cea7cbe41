"""Session variables: defaults, updates from the API, and what instructions say of them.

`{{name}}` in an instruction is replaced by the value before each model step. `{name}` is not: the
model learns of its value, and of each change, from `<state_update>` texts in the history.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.agent.app.models import App

_STATIC = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_DYNAMIC = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_REFERENCE = re.compile(r"\{@(?:TOOL|AGENT):\s*([^}]+?)\s*\}")


def initial(app: App) -> dict[str, Any]:
    """The variables at the start of a session: those with a default."""
    return {
        declaration.name: _typed(copy.deepcopy(declaration.default_value), declaration.schema_)
        for declaration in app.definition.variable_declarations
        if declaration.default_value is not None
    }


def accepted(app: App, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the values that a client sets: those of declared names, in the declared type."""
    declared = {v.name: v.schema_ for v in app.definition.variable_declarations}
    return {
        name: _typed(value, declared[name]) for name, value in values.items() if name in declared
    }


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in its declared type where that loses nothing, else as it is."""
    kind = str(schema.get("type", "")).upper()
    if isinstance(value, str):
        value = _of_text(value, kind)
    if isinstance(value, list) and kind == "ARRAY" and isinstance(schema.get("items"), Mapping):
        return [_typed(item, schema["items"]) for item in value]
    # Numbers of the wire are doubles: a whole one stands for an integer.
    if isinstance(value, float) and kind == "INTEGER" and value.is_integer():
        return int(value)
    if kind == "STRING" and isinstance(value, int | float) and not isinstance(value, bool):
        return text_of(value)
    return value


def _of_text(value: str, kind: str) -> Any:
    """What a text means where `kind` is declared: lists are JSON or parted by commas."""
    text = value.strip()
    if kind == "BOOLEAN" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "INTEGER" and re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if kind == "NUMBER" and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text):
        return float(text)
    if kind == "OBJECT":
        data = _of_json(text, dict)
        return value if data is None else data
    if kind == "ARRAY":
        data = _of_json(text, list)
        parts = [part.strip() for part in text.split(",")] if text else []
        return parts if data is None else data
    return value


def _of_json(text: str, wanted: type) -> Any:
    """The JSON of a text where that is of the wanted type, else None."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return data if isinstance(data, wanted) else None


def text_of(value: Any) -> str:
    """A value as an instruction or a sentence shows it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def substitute(instruction: str, values: Mapping[str, Any]) -> str:
    """The instruction with `{{name}}` replaced and tool and agent references by name."""
    text = _STATIC.sub(lambda m: text_of(values.get(m.group(1))), instruction)
    return _REFERENCE.sub(lambda m: m.group(1), text)


def substitute_dynamic(text: str, values: Mapping[str, Any]) -> str:
    """`{name}` replaced as well, for names that have a value."""
    return _DYNAMIC.sub(
        lambda m: text_of(values[m.group(1)]) if m.group(1) in values else m.group(0), text
    )


def dynamic_names(instruction: str) -> set[str]:
    """The names that an instruction refers to as `{name}`."""
    return set(_DYNAMIC.findall(instruction))


def state_update(name: str, value: Any) -> str:
    """The text by which the model learns of a value."""
    return f"<state_update>{name}: {text_of(value)}</state_update>"
