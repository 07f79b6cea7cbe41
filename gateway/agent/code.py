"""Compile app code once, run it once for each session, find its functions.

Each file is self-contained: it has a namespace of its own with the platform's names in it.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from gateway.agent.app.models import App, AppWarning, SourceCode
from gateway.agent.platform import INJECTED
from gateway.errors import AppError

FALLBACKS: dict[str, Any] = {
    **{
        name: getattr(typing, name)
        for name in (
            "Optional",
            "Any",
            "Union",
            "List",
            "Dict",
            "Tuple",
            "Iterator",
            "Iterable",
            "Callable",
        )
    },
    "json": json,
    "re": re,
}
"""Names that the platform does not promise but widely used samples take for granted."""
SESSION_NAMES = frozenset(
    {
        *("print", "ces_requests", "tools", "async_tools", "context"),
        *("get_variable", "set_variable", "remove_variable"),
    }
)
"""Names that each session gives its app code."""
_KNOWN = {*dir(builtins), *FALLBACKS, *INJECTED, *SESSION_NAMES}


@dataclass(frozen=True, slots=True)
class Compiled:
    """One file of app code, ready to run. `functions`: its top-level functions in order."""

    where: str
    code: CodeType
    functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]


class AppCode:
    """All code of an app, compiled. Raises AppError app.syntax on construction.

    `more`: sources beside those of callbacks and Python tools.
    """

    def __init__(self, app: App, more: Iterable[SourceCode] = ()) -> None:
        self._compiled: dict[str, Compiled] = {}
        self.warnings: list[AppWarning] = []
        for source in (*app.code(), *more):
            if source.where not in self._compiled:
                self._compiled[source.where] = self._compile(source)

    def _compile(self, source: SourceCode) -> Compiled:
        try:
            tree = ast.parse(source.text, filename=source.where)
            code = compile(tree, source.where, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise AppError(
                "app.syntax",
                f"Python syntax: {error.msg}",
                where=f"{source.where}:{error.lineno}",
                hint="All problems of an app at once: voice-gateway app check PATH",
            ) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise AppError(
                "app.syntax", f"Python cannot read it: {error}", where=source.where
            ) from None
        missing = taken_for_granted(tree)
        if missing:
            self.warnings.append(
                AppWarning(
                    "app.import",
                    f"{source.where}:{min(missing.values())}",
                    f"uses without importing: {', '.join(missing)}",
                )
            )
        functions = {
            node.name: node
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        return Compiled(source.where, code, functions)

    def compiled(self, source: SourceCode) -> Compiled:
        """The compiled form of one of the app's sources."""
        return self._compiled[source.where]

    def definition(
        self, source: SourceCode, name: str
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function `name` of a source as written; empty: the first in the file."""
        functions = self._compiled[source.where].functions
        return functions.get(name or next(iter(functions), ""))


def taken_for_granted(tree: ast.Module) -> dict[str, int]:
    """Names that a source uses without importing them and that are given to it nevertheless.

    With the line of their first use.
    """
    used, defined = _names(tree)
    return {name: used[name] for name in sorted((used.keys() & FALLBACKS.keys()) - defined)}


def undefined(tree: ast.Module) -> dict[str, int]:
    """Names that nothing defines, with the line of their first use.

    What is defined anywhere in the file counts as defined everywhere.
    """
    used, defined = _names(tree)
    # Who asks whether a name exists knows that it may not; what a star brings cannot be known.
    if "NameError" in used or "*" in defined:
        return {}
    return {name: line for name, line in used.items() if name not in defined | _KNOWN}


def _names(tree: ast.Module) -> tuple[dict[str, int], set[str]]:
    used: dict[str, int] = {}
    defined: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used[node.id] = min(node.lineno, used.get(node.id, node.lineno))
            else:
                defined.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.MatchMapping):
            defined.add(node.rest or "")
        else:
            # Functions, classes, caught exceptions, captures of a pattern, type parameters.
            name = getattr(node, "name", None)
            if isinstance(name, str):
                defined.add(name)
    return used, defined


class CodeSpace:
    """The namespaces of one session: each file of code runs at its first use.

    Only `function` runs app code; call it in a worker thread.
    """

    def __init__(self, code: AppCode, globals_: Mapping[str, Any]) -> None:
        self._code = code
        self._globals = {**FALLBACKS, **INJECTED, **globals_}
        self._namespaces: dict[str, dict[str, Any]] = {}

    def function(self, source: SourceCode, name: str) -> Callable[..., Any]:
        """The function `name` of a source; empty: the first in the file.

        Raises AppError app.no_function, or what the file's top level raises.
        """
        compiled = self._code.compiled(source)
        namespace = self._namespaces.get(source.where)
        if namespace is None:
            namespace = {**self._globals, "__name__": "app_code", "__file__": source.where}
            exec(compiled.code, namespace)
            self._namespaces[source.where] = namespace
        wanted = name or next(iter(compiled.functions), "")
        function = namespace.get(wanted)
        if not wanted or not callable(function):
            raise AppError(
                "app.no_function",
                f"the code has no function {wanted!r}" if wanted else "the code has no function",
                where=source.where,
                hint="A callback's function bears the name of its kind.",
            )
        return typing.cast("Callable[..., Any]", function)
