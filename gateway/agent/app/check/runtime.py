"""The app as a session would load it: what the runtime's own readers refuse is a problem too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gateway.agent.app.check.tree import Object, Place, Tree
from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.app.models import App
from gateway.agent.app.read import read_most
from gateway.agent.code import AppCode
from gateway.agent.failures import read_failure_handling
from gateway.agent.guardrails.definition import read_guardrail
from gateway.agent.models.choose import SCRIPT_FILE
from gateway.agent.models.script_file import parse_script
from gateway.agent.routes import Routes
from gateway.agent.tools.catalog import Catalog
from gateway.config import ToolSettings
from gateway.errors import AppError

_BODIES = ("openApiToolset", "openApiTool", "mcpToolset", "mcpTool")
"""Parts of an object that are read by themselves, so that places in them begin there."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def check_runtime(tree: Tree) -> None:
    """Load the app piece by piece; each piece that is refused is reported, if nothing was yet.

    What the reader itself cannot make sense of is left out of the pieces. Where a file cannot be
    parsed there are none: too much would be missing.
    """
    try:
        app, faults = read_most(tree.files)
    except AppError as error:
        faults, app = [error], None
    if not tree.problems.has_errors:
        # Else the checks that find all problems have found these in their own words.
        for fault in faults:
            tree.problems.add(fault)
    if app is None:
        return
    for item, load in _pieces(tree, app, bool(faults)):
        with _reported(tree, item):
            load()


def _pieces(
    tree: Tree, app: App, partial_app: bool
) -> Iterator[tuple[Object | None, Callable[[], object]]]:
    """What a session loads: (the object it is about, how to load it)."""
    settings = ToolSettings()
    for name, tool in app.tools.items():
        alone = replace(app, tools={name: tool}, resources={})
        item = _named(tree, tool.where)
        if not partial_app or (item is not None and not tree.problems.known_in(item.file)):
            yield item, partial(Catalog, alone, settings)
    for name, content in app.resources.get("toolsets", {}).items():
        alone = replace(app, tools={}, resources={"toolsets": {name: content}})
        yield _named(tree, f"toolsets/{name}"), partial(Catalog, alone, settings)
    for name, content in app.resources.get("guardrails", {}).items():
        yield _named(tree, f"guardrails/{name}"), partial(read_guardrail, app, name, content)
    yield None, partial(Routes, app)
    yield tree.app, partial(read_failure_handling, app)
    yield None, partial(AppCode, app)
    for name, content in app.resources.get("evaluations", {}).items():
        one = {**app.resources, "evaluations": {name: content}, "evaluationDatasets": {}}
        yield None, partial(read_evaluations, replace(app, resources=one))
    yield None, partial(read_evaluations, app)
    if SCRIPT_FILE in tree.paths:
        script = tree.content(SCRIPT_FILE)
        if script is not None:
            yield None, partial(parse_script, script, SCRIPT_FILE, app)


@contextmanager
def _reported(tree: Tree, item: Object | None) -> Iterator[None]:
    try:
        yield
    except AppError as error:
        file, line = _place(tree, item, error.where or "")
        if not tree.problems.known(file, line):
            where = f"{file}:{line}" if line is not None else file
            tree.problems.add(AppError(error.code, error.message, where=where, hint=error.hint))


def _place(tree: Tree, about: Object | None, where: str) -> tuple[str, int | None]:
    """File and line of a place as the runtime names it.

    It is `file:line`, `file:key[0].key`, `folder/name:key`, or a key of the object `about`.
    """
    name, _, rest = where.partition(":")
    if rest.isdigit():
        return name, int(rest)
    item = _named(tree, name)
    if item is None:
        if name in tree.paths or about is None:
            return name, None
        item, rest = about, where
    steps: Place = tuple(
        int(step[2]) if step[2] else step[1] for step in _STEP.finditer(rest) if rest
    )
    inside = next((kind for kind in _BODIES if item.get(kind, *steps) is not None), None)
    return item.file, item.line(*steps) if inside is None else item.line(inside, *steps)


def _named(tree: Tree, name: str) -> Object | None:
    if name == "app":
        return tree.app
    return next(
        (item for item in tree.all() if name in (item.file, f"{item.folder}/{item.name}")), None
    )
