"""App code: syntax, the function that will be called, its signature, and what it imports."""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pydantic.alias_generators import to_camel

from gateway.agent.app.check.calls import check_calls
from gateway.agent.app.check.instructions import declared_variables
from gateway.agent.app.check.members import check_members
from gateway.agent.app.check.payloads import check_payloads
from gateway.agent.app.check.problem import Code, Problems
from gateway.agent.app.check.schema import PLATFORM_MODULES
from gateway.agent.app.check.tree import Object, Place, Text, Tree
from gateway.agent.app.models import CallbackKind
from gateway.agent.code import taken_for_granted, undefined

Function = ast.FunctionDef | ast.AsyncFunctionDef

PARAMETERS = {
    CallbackKind.BEFORE_AGENT: ("callback_context",),
    CallbackKind.AFTER_AGENT: ("callback_context",),
    CallbackKind.BEFORE_MODEL: ("callback_context", "llm_request"),
    CallbackKind.AFTER_MODEL: ("callback_context", "llm_response"),
    CallbackKind.BEFORE_TOOL: ("tool", "input", "callback_context"),
    CallbackKind.AFTER_TOOL: ("tool", "input", "callback_context", "tool_response"),
}
"""What each kind of callback is called with, by position."""
_FAKE_PARAMETERS = ("tool", "input", "callback_context")
_GUARDRAIL_KINDS = (
    CallbackKind.BEFORE_AGENT,
    CallbackKind.AFTER_AGENT,
    CallbackKind.BEFORE_MODEL,
    CallbackKind.AFTER_MODEL,
)


@dataclass(frozen=True, slots=True)
class _Module:
    """One parsed source of one object."""

    item: Object
    text: Text
    tree: ast.Module

    @property
    def functions(self) -> dict[str, Function]:
        """Top-level functions in order."""
        return {
            node.name: node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }

    def line(self, node: ast.stmt | ast.expr | ast.arg) -> int:
        """The file's line of a node."""
        return self.text.line_of(node.lineno)


def check_code(tree: Tree) -> None:
    """Report what is wrong with callbacks, tools, fakes and guardrail code."""
    variables = declared_variables(tree)
    for item, place, check in _sources(tree):
        text = tree.text(item, *place)
        if text is None or item.get(*place[:-1], "disabled"):
            continue
        module = _parsed(tree.problems, item, text)
        if module is None:
            continue
        check(tree.problems, module)
        _imports(tree.problems, module)
        _undefined(tree.problems, module)
        check_calls(tree, item, module.text, module.tree, variables)
        check_members(tree, module.text, module.tree)
        check_payloads(tree, module.text, module.tree)


_Check = Callable[[Problems, _Module], None]


def _sources(tree: Tree) -> Iterator[tuple[Object, Place, _Check]]:
    """All code that may run: (object, path of its key, what is expected of it)."""
    for item in tree.agents:
        for kind in CallbackKind:
            for place, _ in item.mappings(to_camel(f"{kind.value}s")):
                yield item, (*place, "pythonCode"), partial(_callback, kind)
        for place, _ in item.mappings("transferRules"):
            where = (*place, "deterministicTransfer", "pythonCodeCondition", "pythonCode")
            yield item, where, _anything
    for item in tree.objects["guardrails"]:
        for kind in _GUARDRAIL_KINDS:
            place = ("codeCallback", to_camel(kind.value), "pythonCode")
            yield item, place, partial(_callback, kind)
    for item in tree.tools:
        yield item, ("pythonFunction", "pythonCode"), _tool
        yield item, ("widgetTool", "dataMapping", "pythonFunction", "pythonCode"), _anything
    for item in (*tree.tools, *tree.objects["toolsets"]):
        yield item, ("toolFakeConfig", "codeBlock", "pythonCode"), _fake


def _parsed(problems: Problems, item: Object, text: Text) -> _Module | None:
    try:
        tree = ast.parse(text.text, filename=text.file)
        compile(tree, text.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        problems.error(
            Code.SYNTAX,
            text.file,
            text.line_of(error.lineno or 1),
            f"Python syntax: {error.msg}",
            "The platform runs Python 3.12.",
        )
    except (ValueError, RecursionError, MemoryError) as error:
        problems.error(
            Code.SYNTAX, text.file, None, f"Python cannot read it: {error}", "Simplify the file."
        )
    else:
        return _Module(item, text, tree)
    return None


# ---- functions


def _callback(kind: CallbackKind, problems: Problems, module: _Module) -> None:
    _called(problems, module, kind.value, PARAMETERS[kind])


def _anything(problems: Problems, module: _Module) -> None:
    """Code whose function the format does not name."""


def _fake(problems: Problems, module: _Module) -> None:
    wanted = [name for name in module.functions if name.startswith("fake_")]
    for name in wanted or ["fake_tool_call"]:
        _called(problems, module, name, _FAKE_PARAMETERS)


def _called(problems: Problems, module: _Module, name: str, wanted: tuple[str, ...]) -> None:
    """A function that is called by position with the arguments `wanted`."""
    function = module.functions.get(name)
    shape = f"def {name}({', '.join(wanted)})"
    if function is None:
        near = difflib.get_close_matches(name, module.functions, 1, 0.8)
        problems.error(
            Code.NO_FUNCTION,
            module.text.file,
            module.line(module.functions[near[0]]) if near else None,
            f"the code has no function {name!r}" + (f", only {near[0]!r}" if near else ""),
            f"Write {shape}.",
        )
        return
    if isinstance(function, ast.AsyncFunctionDef):
        problems.error(
            Code.SIGNATURE,
            module.text.file,
            module.line(function),
            f"{name} is asynchronous, but the platform does not await it",
            f"Write {shape} without async.",
        )
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    unfit = required > len(wanted) or (given.vararg is None and len(positional) < len(wanted))
    keyword = [
        argument
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None
    ]
    if unfit or keyword:
        problems.error(
            Code.SIGNATURE,
            module.text.file,
            module.line(function),
            f"{name} is called with {len(wanted)} positional arguments, which it does not take",
            f"Write {shape}.",
        )


def _tool(problems: Problems, module: _Module) -> None:
    wanted = module.item.get("pythonFunction", "name")
    functions = module.functions
    if not functions or (wanted and wanted not in functions):
        problems.error(
            Code.NO_FUNCTION,
            module.text.file,
            None,
            f"the code has no function {wanted!r}" if wanted else "the code has no function",
            f"Write a function of the name in {module.item.file}, pythonFunction.name.",
        )
        return
    name = wanted or next(iter(functions))
    function = functions[name]
    if isinstance(function, ast.AsyncFunctionDef):
        problems.error(
            Code.SIGNATURE,
            module.text.file,
            module.line(function),
            f"the tool {name} is asynchronous, but the platform does not await it",
            "Write it without async; executionType: ASYNCHRONOUS makes a tool run aside.",
        )
    given = function.args
    if given.kwarg is not None:
        problems.error(
            Code.TOOL_KWARGS,
            module.text.file,
            module.line(given.kwarg),
            f"the tool {name} takes **{given.kwarg.arg}: the platform drops it without a word",
            "Name each argument.",
        )
    positional = [*given.posonlyargs, *given.args]
    defaults = [
        *zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    for argument, default in defaults:
        if isinstance(default, ast.Constant) and default.value is None:
            problems.error(
                Code.TOOL_NONE_DEFAULT,
                module.text.file,
                module.line(argument),
                f"{argument.arg!r} of the tool {name} defaults to None: "
                "the platform drops the tool without a word",
                f'Give a default of the type itself, such as {argument.arg}: str = "".',
            )


# ---- imports


def _imports(problems: Problems, module: _Module) -> None:
    missing = taken_for_granted(module.tree)
    if missing:
        problems.warn(
            Code.IMPORT,
            module.text.file,
            module.text.line_of(min(missing.values())),
            f"uses without importing: {', '.join(missing)}",
            "Import them (typing, json, re); only the platform's own types are given.",
        )
    for node in _unguarded(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "." * node.level]
        else:
            continue
        for name in names:
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in PLATFORM_MODULES:
                problems.error(
                    Code.MODULE,
                    module.text.file,
                    module.line(node),
                    f"the platform has no module {name!r}",
                    "Use the standard library, pydantic, numpy or protobuf; each file stands "
                    "alone, and the platform's types need no import.",
                )


def _unguarded(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes outside `try` and `if`: who guards an import has a way to go on without it."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        left += (n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.Try | ast.If))


def _undefined(problems: Problems, module: _Module) -> None:
    for name, line in undefined(module.tree).items():
        problems.warn(
            Code.UNDEFINED_NAME,
            module.text.file,
            module.text.line_of(line),
            f"nothing defines {name!r}",
            "Define or import it in this file: each file stands alone.",
        )
