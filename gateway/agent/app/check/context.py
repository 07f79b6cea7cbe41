"""What is named of the session: `$context.…` in headers, tokens, schemas and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.agent.app.check.instructions import declare, declared_variables
from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.secrets import CONTEXT_KINDS, contextual
from gateway.agent.app.check.tree import Tree
from gateway.agent.tools.openapi import CONTEXT_KEY
from gateway.agent.tools.session_context import PLAIN, PREFIX

_IN_SCHEMA = re.compile(rf"""{CONTEXT_KEY}["']?\s*:\s*["']?([^\s"',}}#]+)""")
_IN_TEXT = re.compile(r"\$context\.[a-z]\w*(?:\.\w+)*")
_VARIABLE = "variables."
_SCHEMAS = (("toolsets", "openApiToolset"), ("tools", "openApiTool"))


def check_context(tree: Tree) -> None:
    """Report values of the session that do not exist, and ones that nothing fills in."""
    variables = declared_variables(tree)
    for file, line, reference in _references(tree):
        name = reference.removeprefix(PREFIX)
        if name.startswith(_VARIABLE):
            _variable(tree, file, line, name.removeprefix(_VARIABLE), variables)
        elif not reference.startswith(PREFIX) or name not in (*PLAIN, "variables"):
            tree.problems.error(
                Code.REFERENCE,
                file,
                line,
                f"the session has no value {reference[:80]!r}",
                f"There is {', '.join(PREFIX + one for one in (*PLAIN, 'variables.NAME'))}.",
            )
    _instructions(tree)


def _references(tree: Tree) -> Iterator[tuple[str, int | None, str]]:
    """Each value that a tool takes from the session: (file, line, reference)."""
    for folder, kind in _SCHEMAS:
        for item in tree.objects[folder]:
            text = tree.text(item, kind, "openApiSchema")
            for match in _IN_SCHEMA.finditer(text.text) if text is not None else ():
                assert text is not None
                yield text.file, text.line(match.start()), match[1]
    for folder, kinds in CONTEXT_KINDS:
        for item in tree.objects[folder]:
            for kind in kinds:
                for place, value in contextual(item, kind):
                    # Others are reported where secrets are looked for.
                    if value.startswith(PREFIX):
                        yield item.file, item.line(*place), value


def _variable(tree: Tree, file: str, line: int | None, name: str, variables: set[str]) -> None:
    if name in variables or name.startswith("_") or tree.broken:
        return
    tree.problems.warn(
        Code.UNDECLARED,
        file,
        line,
        f"{name!r} is not a declared variable: no client can set it",
        declare(name, variables),
    )


def _instructions(tree: Tree) -> None:
    """Values of the session are for tools: a text has them as they are written."""
    texts = [tree.text(agent, "instruction") for agent in tree.agents]
    if tree.app is not None:
        texts.append(tree.text(tree.app, "globalInstruction"))
    for text in texts:
        for match in _IN_TEXT.finditer(text.text) if text is not None else ():
            assert text is not None
            tree.problems.warn(
                Code.REFERENCE_SYNTAX,
                text.file,
                text.line(match.start()),
                f"{match[0]!r} stands for nothing in an instruction",
                "Only OpenAPI and MCP tools take values of the session; write {variable} for a "
                "variable.",
            )
