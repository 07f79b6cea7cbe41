"""An app as its files have it, read so tolerantly that every problem can be found at once."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gateway.agent.app.check.problem import Code, Problems
from gateway.agent.app.document import Document
from gateway.agent.app.environment import FREE_KEYS, Environment
from gateway.agent.app.files import AppFiles, clean_path
from gateway.agent.app.layout import (
    ENVIRONMENT_FILE,
    RESOURCE_FOLDERS,
    app_file,
    display_name,
    environment_object,
    object_files,
)
from gateway.bidi import get
from gateway.errors import AppError

PATH_LIKE = re.compile(r"^[\w./\\@+-]+\.(txt|md|py|yaml|yml|json)$")
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the app: a file's (`first_line` 1) or one that stands inside an object."""

    file: str
    text: str
    first_line: int = 1
    on_one_line: bool = False
    """True where the whole text stands on one line of the file, as texts in JSON do."""

    def line_of(self, number: int) -> int:
        """The file's line of a line of the text, which counts from 1."""
        return self.first_line + (0 if self.on_one_line else number - 1)

    def line(self, offset: int) -> int:
        """The file's line of a position in the text."""
        return self.line_of(1 + bisect_left(_breaks(self.text), offset))


@lru_cache(maxsize=8)
def _breaks(text: str) -> list[int]:
    """Where the lines of a text end: counting from its beginning each time takes too long."""
    return [match.start() for match in re.finditer("\n", text)]


@dataclass(slots=True)
class Object:
    """One object. `data`: with environment values; keys in either spelling."""

    folder: str
    directory: str
    name: str
    document: Document
    data: dict[str, Any]

    @property
    def file(self) -> str:
        """The file that describes it."""
        return self.document.name

    def line(self, *place: str | int) -> int | None:
        """The line of a key."""
        return self.document.line(*place)

    def get(self, *place: str | int) -> Any:
        """The value at a path in either spelling; None where there is none."""
        value: Any = self.data
        for part in place:
            if isinstance(part, str) and isinstance(value, Mapping):
                value = get(value, part)
            elif isinstance(part, int) and isinstance(value, list) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def texts(self, *place: str | int) -> Iterator[tuple[Place, str]]:
        """The texts of a list, with the path of each."""
        value = self.get(*place)
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    yield (*place, index), item

    def mappings(self, *place: str | int) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The mappings of a list, with the path of each."""
        value = self.get(*place)
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield (*place, index), item

    def walk(self) -> Iterator[tuple[Place, Any]]:
        """All values at any depth with their paths; what is an author's own data is left out."""
        return _walk(self.data, ())


def _walk(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in FREE_KEYS:
                yield (*place, key), inner
                yield from _walk(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*place, index))


@dataclass(slots=True)
class Tree:
    """All objects and texts of an app, as far as they can be read."""

    files: AppFiles
    problems: Problems
    paths: frozenset[str] = frozenset()
    app: Object | None = None
    objects: dict[str, list[Object]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Files that an object is described in or refers to."""
    mentioned: set[str] = field(default_factory=set)
    """Agents that instructions and code name as the ones to hand over to."""
    operations: dict[str, set[str] | None] = field(default_factory=dict)
    """Toolset file → its operation ids, once they were looked up."""
    broken: set[str] = field(default_factory=set)
    """Files that could not be parsed, so that nothing follows from what is not in them."""

    @property
    def agents(self) -> list[Object]:
        """All agents."""
        return self.objects["agents"]

    @property
    def tools(self) -> list[Object]:
        """All tools."""
        return self.objects["tools"]

    def all(self) -> Iterator[Object]:
        """The app's own object, if it can be read, and all others."""
        if self.app is not None:
            yield self.app
        for objects in self.objects.values():
            yield from objects

    def names(self, folder: str) -> set[str]:
        """Display names of the objects in a folder."""
        return {item.name for item in self.objects[folder]}

    def content(self, rel: str) -> str | None:
        """A file's text; None (and a problem) where it is not UTF-8."""
        try:
            return self.files.read(rel).decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            self.problems.error(
                Code.ENCODING, rel, None, f"not UTF-8: {error.reason}", "Save the file as UTF-8."
            )
        except AppError as error:
            self.problems.add(error, rel)
        return None

    def text(self, item: Object, *place: str | int) -> Text | None:
        """The text that the value at `place` stands for: a file's or its own."""
        value = item.get(*place)
        if not isinstance(value, str) or not value:
            return None
        line = item.line(*place)
        if "\n" not in value and len(value) < 1024:
            try:
                path = clean_path(value)
            except AppError:
                path = ""
            if path in self.paths:
                self.used.add(path)
                text = self.content(path)
                return None if text is None else Text(path, text)
            if PATH_LIKE.match(value):
                self._missing(item, line, value, path)
                return None
        if line is not None and item.document.begins_block(line):
            return Text(item.file, value, line + 1)
        return Text(item.file, value, line or 1, on_one_line=True)

    def _missing(self, item: Object, line: int | None, value: str, path: str) -> None:
        if path:
            self.problems.error(
                Code.MISSING_FILE,
                item.file,
                line,
                f"the app has no file {value!r}",
                "Paths are relative to the app's root folder; mind upper and lower case.",
            )
        else:
            self.problems.error(
                Code.PATH,
                item.file,
                line,
                f"the path {value!r} leaves the app",
                "Paths are relative to the app's root folder, without '..'.",
            )


def read_tree(files: AppFiles, problems: Problems) -> Tree:
    """The app's objects; what cannot be parsed becomes a problem and is left out."""
    return _TreeReader(files, problems).tree()


class _TreeReader:
    def __init__(self, files: AppFiles, problems: Problems) -> None:
        self._paths = files.paths()
        self._tree = Tree(files, problems, frozenset(self._paths))
        self._environment = Environment({})

    def tree(self) -> Tree:
        tree = self._tree
        if ENVIRONMENT_FILE in tree.paths:
            document = self._document(ENVIRONMENT_FILE)
            if document is not None:
                self._environment = Environment(document.data)
        try:
            own = app_file(self._paths)
        except AppError as error:
            tree.problems.add(error, (error.where or "").split(",")[0])
            own = None
        document = self._document(own) if own is not None else None
        if document is not None:
            data = self._environment.app(document.data)
            name = str(get(data, "displayName") or get(data, "name") or "")
            tree.app = Object("", "", name, document, data)
        else:
            tree.broken.add(own or "")
        for folder in ("agents", "tools", *RESOURCE_FOLDERS):
            tree.objects[folder] = list(self._objects(folder))
        python_environment = environment_object(self._paths)
        if python_environment is not None:
            self._document(python_environment)
        return tree

    def _document(self, rel: str) -> Document | None:
        self._tree.used.add(rel)
        text = self._tree.content(rel)
        if text is not None:
            try:
                return Document(rel, text)
            except AppError as error:
                self._tree.problems.add(error)
        self._tree.broken.add(rel)
        return None

    def _objects(self, folder: str) -> Iterator[Object]:
        for directory, files in object_files(self._paths, folder).items():
            if len(files) > 1:
                self._tree.problems.error(
                    Code.AMBIGUOUS,
                    files[0],
                    None,
                    f"{', '.join(files)} describe the same object",
                    "Keep one of them.",
                )
            document = self._document(files[0])
            if document is not None:
                name = display_name(document.data, document.name)
                data = self._environment.object(folder, (name, directory), document.data)
                yield Object(folder, directory, display_name(data, document.name), document, data)
