"""`environment.json`: what it overrides, and the `$names` in other files that stand for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

PLACEHOLDER = re.compile(r"\$([A-Za-z_]\w*)")
_TEMPLATE = re.compile(
    r"\$\{[A-Za-z_][\w.]*\}|\{\{ ?[A-Za-z_][\w.]* ?\}\}|\b__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__\b"
)
"""Placeholders of tools that write an app's files: Terraform, Jinja, search and replace."""
FREE_KEYS = frozenset(
    {
        *("default", "args", "response", "payload", "metadata", "properties", "uiConfig"),
        *("updatedVariables", "defaultVariables", "variableOverrides", "variables", "messages"),
    }
)
"""Keys under which an author's own data stands."""
_OWN_PLACEHOLDERS = FREE_KEYS | {
    *("gcsPathPrefix", "gcs_path_prefix", "globalInstruction", "global_instruction"),
    *("instruction", "prompt", "text", "description", "pythonCode", "python_code"),
}
"""Keys whose values are words or code, or have placeholders of another kind."""


class Environment:
    """The values of one deployment."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def app(self, content: dict[str, Any]) -> dict[str, Any]:
        """The app's own object with overrides and values."""
        overrides = self._data.get("app")
        if isinstance(overrides, Mapping):
            content = merge(content, overrides)
        return self._filled(content)

    def object(
        self, folder: str, names: tuple[str, ...], content: dict[str, Any]
    ) -> dict[str, Any]:
        """An object of `folder` with the overrides of the first of its `names`, and values."""
        overrides = self._data.get(folder)
        if isinstance(overrides, Mapping):
            found = (overrides[n] for n in names if isinstance(overrides.get(n), Mapping))
            content = merge(content, next(found, {}))
        return self._filled(content)

    def _filled(self, content: dict[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = self._value(content)
        return filled

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, str):
            match = PLACEHOLDER.fullmatch(value)
            if match and match[1] in self._data:
                return self._data[match[1]]
        return value


def unresolved(
    value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Placeholders that nothing has filled in an object: (path, placeholder)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _OWN_PLACEHOLDERS:
                yield from unresolved(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unresolved(item, (*path, index))
    elif isinstance(value, str):
        if PLACEHOLDER.fullmatch(value):
            yield path, value
        elif "\n" not in value:
            match = _TEMPLATE.search(value)
            if match:
                yield path, match[0]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over`, mappings merged."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged
