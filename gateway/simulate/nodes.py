"""YAML with line numbers: a small typed reader over the nodes of PyYAML.

Every complaint is a ScenarioError that names `file:line`. Scalars are taken as they stand in the
file, so `say: yes`, `dtmf: 0123` and `from: +1555` mean what they look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gateway.errors import ScenarioError

_DURATION = re.compile(r"^(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m)$")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}


@dataclass(frozen=True, slots=True)
class Node:
    """One YAML node and the name of its file."""

    yaml_node: yaml.Node
    file: str

    @property
    def line(self) -> int:
        """Line in the file, from 1."""
        return int(self.yaml_node.start_mark.line) + 1

    @property
    def where(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"

    def fail(self, code: str, message: str, hint: str | None = None) -> ScenarioError:
        """The error to raise for this node."""
        return ScenarioError(code, message, where=self.where, hint=hint)

    @property
    def is_mapping(self) -> bool:
        """True for `{key: value}`."""
        return isinstance(self.yaml_node, yaml.MappingNode)

    @property
    def is_scalar(self) -> bool:
        """True for one plain value."""
        return isinstance(self.yaml_node, yaml.ScalarNode)

    def mapping(self, what: str, allowed: tuple[str, ...] | None = None) -> dict[str, Node]:
        """The entries by key; `allowed` keys only. Raises ScenarioError naming the key's line."""
        if not isinstance(self.yaml_node, yaml.MappingNode):
            raise self.fail("scenario.type", f"{what} is not a mapping", "write key: value lines")
        entries: dict[str, Node] = {}
        for key_node, value_node in self.yaml_node.value:
            key = Node(key_node, self.file)
            name = key.text("a key")
            if name in entries:
                raise key.fail("scenario.duplicate_key", f"{what} has {name!r} twice")
            if allowed is not None and name not in allowed:
                raise key.fail(
                    "scenario.unknown_key",
                    f"{what} has no key {name!r}",
                    f"known keys: {', '.join(allowed)}",
                )
            entries[name] = Node(value_node, self.file)
        return entries

    def items(self, what: str) -> Iterator[Node]:
        """The elements of a list."""
        if not isinstance(self.yaml_node, yaml.SequenceNode):
            raise self.fail("scenario.type", f"{what} is not a list", "start each line with '- '")
        for child in self.yaml_node.value:
            yield Node(child, self.file)

    def text(self, what: str) -> str:
        """A scalar exactly as it is written."""
        if not isinstance(self.yaml_node, yaml.ScalarNode):
            raise self.fail("scenario.type", f"{what} is not a plain text")
        return str(self.yaml_node.value)

    def words(self, what: str) -> str:
        """A scalar that is not empty."""
        text = self.text(what).strip()
        if not text:
            raise self.fail("scenario.empty", f"{what} is empty")
        return text

    def seconds(self, what: str) -> float:
        """A duration such as `1.5s`, `300ms` or `2m`, in seconds."""
        text = self.text(what).strip()
        match = _DURATION.match(text)
        if match is None:
            raise self.fail(
                "scenario.duration", f"{what} is not a duration: {text!r}", "write 1.5s or 300ms"
            )
        return float(match["number"]) * _SECONDS[match["unit"]]

    def number(self, what: str) -> float:
        """A number."""
        try:
            return float(self.text(what))
        except ValueError:
            raise self.fail("scenario.number", f"{what} is not a number") from None

    def pattern(self, what: str) -> str:
        """A regular expression that compiles."""
        text = self.words(what)
        try:
            re.compile(text)
        except re.error as error:
            raise self.fail(
                "scenario.regex",
                f"{what} is not a regular expression: {error}",
                "put a backslash before a sign that is meant as it stands",
            ) from None
        return text

    def plain(self) -> Any:
        """The node as plain Python data (YAML types apply)."""
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_document(self.yaml_node)
        except yaml.YAMLError as error:
            raise self.fail("scenario.yaml", f"cannot be read: {error}") from None
        finally:
            loader.dispose()

    def plain_mapping(self, what: str) -> Mapping[str, Any]:
        """A mapping as plain data, every key a string."""
        return {key: value.plain() for key, value in self.mapping(what).items()}


def read_document(text: str, file: str) -> Node:
    """The root node of one YAML document. Raises ScenarioError with the line."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        problem = getattr(error, "problem", None) or str(error)
        raise ScenarioError(
            "scenario.yaml",
            f"not YAML: {problem}",
            where=where,
            hint="look at the indentation and the quotes of this line and the one above",
        ) from None
    if node is None:
        raise ScenarioError(
            "scenario.empty",
            "the file is empty",
            where=f"{file}:1",
            hint="add caller: with a list of steps",
        )
    return Node(node, file)
