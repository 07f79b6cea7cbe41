"""A MockConfig: answers for tools by name and arguments, before any real tool is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway import bidi
from gateway.errors import AppError


@dataclass(frozen=True, slots=True)
class MockedCall:
    """One answer. `tool`: a tool's name, a toolset's, or `<toolset>_<operation>`."""

    tool: str
    args: Mapping[str, Any]
    response: Any


@dataclass(frozen=True, slots=True)
class MockConfig:
    """Answers in order; the first that fits counts. `closed`: what fits none fails."""

    calls: tuple[MockedCall, ...] = ()
    closed: bool = False

    def answer(self, names: tuple[str, ...], args: Mapping[str, Any]) -> tuple[bool, Any]:
        """(True, response) where a call to a tool of one of these names is mocked.

        (False, None): ask the real tool.
        """
        for call in self.calls:
            if call.tool in names and _fits(args, call.args):
                return True, call.response
        if self.closed:
            return True, {"error": f"no mocked answer fits the call of {names[0]!r}"}
        return False, None


def _fits(value: Any, pattern: Any) -> bool:
    """Every key of the pattern is there and fits; text is a regular expression for the whole."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            key in value and _fits(value[key], one) for key, one in pattern.items()
        )
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(value) == len(pattern)
            and all(_fits(item, one) for item, one in zip(value, pattern, strict=True))
        )
    if isinstance(pattern, str):
        text = value if isinstance(value, str) else str(value)
        if text == pattern:
            return True
        try:
            return re.fullmatch(pattern, text) is not None
        except re.error:
            return False
    return bool(value == pattern)


def parse_mocks(value: Any, where: str) -> MockConfig:
    """A MockConfig from its JSON. Raises AppError app.mocks."""
    if not isinstance(value, Mapping):
        raise AppError("app.mocks", "a MockConfig is a mapping", where=where)
    behaviour = str(bidi.get(value, "unmatchedToolCallBehavior") or "PASS_THROUGH")
    if behaviour not in ("PASS_THROUGH", "FAIL", "UNMATCHED_TOOL_CALL_BEHAVIOR_UNSPECIFIED"):
        raise AppError(
            "app.mocks",
            f"{behaviour!r} is no behaviour",
            where=f"{where}:unmatchedToolCallBehavior",
            hint="FAIL or PASS_THROUGH.",
        )
    calls = []
    entries = bidi.get(value, "mockedToolCalls") or []
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        key = f"{where}:mockedToolCalls[{index}]"
        if not isinstance(entry, Mapping):
            raise AppError("app.mocks", "a mocked call is a mapping", where=key)
        calls.append(
            MockedCall(
                _tool(entry, key),
                _mapping(bidi.get(entry, "expectedArgsPattern")),
                bidi.get(entry, "mockResponse") or {},
            )
        )
    return MockConfig(tuple(calls), behaviour == "FAIL")


def _tool(entry: Mapping[str, Any], where: str) -> str:
    for key in ("toolId", "tool", "toolset"):
        named = bidi.get(entry, key)
        if isinstance(named, Mapping):
            toolset, tool_id = named.get("toolset"), bidi.get(named, "toolId")
            named = f"{_last(toolset)}_{tool_id}" if tool_id else toolset
        if isinstance(named, str) and named:
            return _last(named)
    raise AppError("app.mocks", "the mocked call names no tool", where=where, hint="toolId: NAME")


def _last(name: Any) -> str:
    return str(name).rsplit("/", 1)[-1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def read_mocks(path: Path) -> MockConfig:
    """A MockConfig from a YAML or JSON file. Raises AppError app.mocks."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AppError(
            "app.mocks", f"cannot read the mocks: {type(error).__name__}", where=str(path)
        ) from None
    return parse_mocks(value, str(path))
