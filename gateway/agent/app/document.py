"""One JSON or YAML file of an app: its data, and the line on which each key stands.

What comes out is JSON data whatever the format, so that an app can be written in either. YAML is
read with the scalars of its 1.2 schema: `no`, `1:30`, `0123` and dates are texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from gateway.bidi import snake
from gateway.errors import AppError

MAX_VALUES = 500_000
"""Values in one file, aliases counted as often as they are used."""

MAX_REPEATED = 20_000
"""Of these, the ones that aliases repeat."""

MAX_DEPTH = 64
"""Levels of mappings and lists in one file."""

Path = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_SCALARS: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))"
        r"(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)


def _with_scalars(base: dict[Any, list[Any]]) -> dict[Any, list[Any]]:
    """The scalars of `base` and the ones above, by first character."""
    table = {first: list(entries) for first, entries in base.items()}
    for tag, pattern, firsts in _SCALARS:
        entry = (_TAG + tag, re.compile(rf"(?:{pattern})\Z"))
        for first in [*firsts, ""] if tag == "null" else firsts:
            table.setdefault(first, []).append(entry)
    return table


_BLOCK = re.compile(r":\s*[|>][-+0-9]*\s*(#.*)?$")
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
"""Line ends that a block of text would not keep."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = _with_scalars({})


class _Dumper(yaml.SafeDumper):
    """Quotes every text that either schema of YAML would take for something else."""

    yaml_implicit_resolvers = _with_scalars(yaml.SafeDumper.yaml_implicit_resolvers)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _OTHER_BREAKS.search(text):
        style = '"'
    elif "\n" in text and not dumper.default_style:
        style = "|"
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)


class Document:
    """A file that holds one mapping. `name` is its path in the app, for messages."""

    def __init__(self, name: str, text: str) -> None:
        """Parse `text`. Raises AppError app.json, app.yaml, app.shape or app.encoding."""
        self.name = name
        self.duplicates: list[tuple[str, int]] = []
        """Keys that one mapping has twice: (key, line of the second)."""
        self._lines: dict[Path, int] | None = None
        self._text = text
        self.data: dict[str, Any] = self._json() if name.endswith(".json") else self._yaml()

    def line(self, *path: str | int) -> int | None:
        """The line of the key or item at `path`, of the nearest around it where it has none."""
        lines = self._located()
        place = tuple(map(_key, path))
        while place and place not in lines:
            place = place[:-1]
        return lines.get(place)

    def begins_block(self, line: int) -> bool:
        """True where a block of text begins below `line` (`key: |`)."""
        lines = self._text.split("\n")[line - 1 : line]
        return not self.name.endswith(".json") and bool(lines and _BLOCK.search(lines[0]))

    def find_duplicates(self) -> list[tuple[str, int]]:
        """The keys that one mapping has twice, with the line of the second."""
        self._located()
        return self.duplicates

    # ---- JSON

    def _json(self) -> dict[str, Any]:
        try:
            try:
                value = _loads(self._text)
            except json.JSONDecodeError:
                plain = _COMMENT.sub(_blanked, self._text)
                if plain == self._text:
                    raise
                value = _loads(plain)
                self._text = plain
        except json.JSONDecodeError as error:
            raise AppError(
                "app.json",
                f"not JSON: {error.msg}",
                where=f"{self.name}:{error.lineno}",
                hint="Mind missing or trailing commas and quotes.",
            ) from None
        except ValueError as error:
            raise AppError("app.json", f"not JSON: {error}", where=self.name) from None
        except RecursionError:
            raise AppError("app.json", "nested too deeply", where=self.name) from None
        return self._checked(value)

    def _located(self) -> dict[Path, int]:
        if self._lines is None:
            self._lines = {}
            seen: set[Path] = set()
            for path, line in _json_places(self._text):
                if path in seen:
                    self.duplicates.append((str(path[-1]), line))
                seen.add(path)
                self._lines[tuple(map(_key, path))] = line
        return self._lines

    # ---- YAML

    def _yaml(self) -> dict[str, Any]:
        self._lines = {}
        self._budget = MAX_VALUES
        self._repeated = MAX_REPEATED
        self._seen: set[int] = set()
        try:
            node = yaml.compose(self._text, _Loader)
            value = None if node is None else self._value(node, ())
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            # What is missing at the end is reported for the last line, not the one after it.
            last = max(len(self._text.splitlines()), 1)
            line = f":{min(mark.line + 1, last)}" if mark is not None else ""
            problem = getattr(error, "problem", None) or "cannot be parsed"
            raise AppError(
                "app.yaml",
                f"not YAML: {problem}",
                where=f"{self.name}{line}",
                hint="Mind the indentation, and quote texts with colons or braces.",
            ) from None
        except RecursionError:
            raise AppError("app.yaml", "nested too deeply", where=self.name) from None
        return self._checked(value)

    def _refused(self, node: yaml.Node, message: str, hint: str | None = None) -> AppError:
        return AppError(
            "app.yaml", message, where=f"{self.name}:{node.start_mark.line + 1}", hint=hint
        )

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._budget -= 1
        if self._budget < 0:
            raise self._refused(node, f"more than {MAX_VALUES} values")
        if id(node) in self._seen:
            self._repeated -= 1
            if self._repeated < 0:
                raise self._refused(node, f"aliases repeat more than {MAX_REPEATED} values")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self._place((*path, index), item)
                items.append(self._value(item, (*path, index)))
            return items
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        if node.tag != _TAG + "map":
            raise self._refused(node, f"unknown tag {node.tag}")
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._refused(
                    key_node,
                    "keys must be texts",
                    "Quote texts that begin with a brace; fill in the placeholders of a template.",
                )
            if key_node.tag == _TAG + "merge":
                for source in _merge_sources(value_node):
                    content = self._value(source, path)
                    if not isinstance(content, dict):
                        raise self._refused(source, "'<<' merges mappings only")
                    merged = {**content, **merged}
                continue
            # Whatever the key looks like (`no`, `200`), it stands for its own letters.
            key: str = key_node.value
            if key in own:
                self.duplicates.append((key, key_node.start_mark.line + 1))
            self._place((*path, key), key_node)
            own[key] = self._value(value_node, (*path, key))
        return {**merged, **own}

    def _place(self, path: Path, node: yaml.Node) -> None:
        assert self._lines is not None
        self._lines[tuple(map(_key, path))] = node.start_mark.line + 1

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        try:
            if kind in ("str", "merge"):
                return text
            if kind == "null":
                return None
            if kind == "bool":
                return {"true": True, "false": False}[text.lower()]
            if kind == "int":
                return int(text)
            if kind == "float":
                number = float(text)
                if math.isfinite(number):
                    return number
        except (KeyError, ValueError):
            pass
        raise self._refused(
            node, f"{text[:40]!r} has no place here as {kind}", "Quote it to make it a text."
        )

    # ---- both

    def _checked(self, value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise AppError(
                "app.shape",
                "the file is not a mapping",
                where=self.name,
                hint="It begins with a key such as displayName.",
            )
        if _deeper_than(value, MAX_DEPTH):
            kind = "app.json" if self.name.endswith(".json") else "app.yaml"
            raise AppError(kind, f"nested deeper than {MAX_DEPTH} levels", where=self.name)
        if "\\u" in self._text or "\\U" in self._text:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                raise AppError(
                    "app.encoding", "half of a surrogate pair in a text", where=self.name
                ) from None
        return value


def _deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in inner)


def _key(part: str | int) -> str | int:
    return snake(part) if isinstance(part, str) else part


def _merge_sources(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


# ---- JSON with comments and places

_COMMENT = re.compile(
    r'(?P<keep>"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*', re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


def _blanked(match: re.Match[str]) -> str:
    """A comment as blanks, so that lines keep their numbers."""
    return match["keep"] or re.sub(r"[^\n]", " ", match[0])


def _loads(text: str) -> Any:
    if not text.strip():
        return None
    return json.loads(text, parse_constant=_not_finite, parse_float=_finite)


def _not_finite(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _json_places(text: str) -> Iterator[tuple[Path, int]]:
    """Path and line of each key and item of a valid JSON text."""
    line = 1
    stack: list[str | int | None] = []
    """What leads to the value being read: a list index, a key, or None before the key."""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "\n":
            line += 1
        elif word in "}]":
            stack.pop()
        elif word == ",":
            top = stack[-1]
            stack[-1] = top + 1 if isinstance(top, int) else None
        elif word == ":":
            continue
        elif stack and stack[-1] is None:
            stack[-1] = json.loads(word)
            yield tuple(part for part in stack if part is not None), line
        else:
            if stack and isinstance(stack[-1], int):
                yield tuple(part for part in stack if part is not None), line
            if word == "{":
                stack.append(None)
            elif word == "[":
                stack.append(0)


# ---- writing


def to_json(data: dict[str, Any]) -> str:
    """The data as a JSON file."""
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def to_yaml(data: dict[str, Any]) -> str:
    """The data as a YAML file that reads back as the same data."""
    text = _dumped(data, None)
    # Block texts have corner cases in the emitter; quotes have none.
    return text if _reads_as(text, data) else _dumped(data, '"')


def _dumped(data: dict[str, Any], style: str | None) -> str:
    text: str = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=1 << 20,
        default_style=style,
        default_flow_style=False,
    )
    return text


def _reads_as(text: str, data: dict[str, Any]) -> bool:
    try:
        return Document("written.yaml", text).data == data
    except AppError:
        return False
