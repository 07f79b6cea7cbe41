"""Objects by themselves: keys, values, kinds, names, and files that nothing refers to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from gateway.agent.app.check.problem import Code, Problems
from gateway.agent.app.check.schema import (
    AUDIO_KEYS,
    CALLBACK_KEYS,
    CLOUD_ONLY,
    ENUMS,
    GUARDRAIL_KINDS,
    KEYS,
    SCHEMA_TYPES,
    TOOL_KINDS,
    TOOLSET_KINDS,
)
from gateway.agent.app.check.tree import Object, Place, Tree
from gateway.agent.app.environment import unresolved
from gateway.agent.app.layout import TEMPLATE_SUFFIXES
from gateway.agent.app.models import (
    SYSTEM_TOOLS,
    AgentDefinition,
    AppDefinition,
    CallbackKind,
    Definition,
    ToolDefinition,
    duration_s,
    other_agent_kind,
)
from gateway.bidi import get
from gateway.errors import AppError

_MODELS: dict[str, type[Definition]] = {
    "": AppDefinition,
    "agents": AgentDefinition,
    "tools": ToolDefinition,
}
_DURATIONS = frozenset({"timeout", "inactivityTimeout", "retentionWindow"})
_FOLDERS_OF_FILES = ("agents", "tools", "guardrails", "toolsets")
"""Where each file should be one that an object refers to."""
_RANGE_ERRORS = ("less_than_equal", "greater_than_equal")
_TYPES: dict[str, tuple[type, ...]] = {
    "STRING": (str,),
    "INTEGER": (int,),
    "NUMBER": (int, float),
    "BOOLEAN": (bool,),
    "OBJECT": (dict,),
    "ARRAY": (list,),
}


def check_structure(tree: Tree) -> None:
    """Report what is wrong with each object by itself."""
    for item in tree.all():
        _keys(item, tree.problems)
        _values(item, tree.problems)
        for place, value in item.walk():
            _word(item, place, value, tree.problems)
        for place, placeholder in unresolved(item.data):
            tree.problems.error(
                Code.PLACEHOLDER,
                item.file,
                item.line(*place),
                f"nothing gives a value for {placeholder}",
                "Give it one in environment.json, or fill the template in.",
            )
    _names(tree)
    _kinds(tree)
    _variables(tree)


def check_files(tree: Tree) -> None:
    """Report templates, and texts and code that no object refers to."""
    for path in sorted(tree.paths - tree.used):
        if path.endswith(TEMPLATE_SUFFIXES):
            _template(tree, path)
        elif not tree.broken and path.split("/")[0] in _FOLDERS_OF_FILES:
            tree.problems.warn(
                Code.UNUSED_FILE,
                path,
                None,
                "no object refers to this file",
                "Name it (instruction, pythonCode, openApiSchema …) or delete it.",
            )


def _template(tree: Tree, path: str) -> None:
    text = tree.content(path) or ""
    line = next((n for n, words in enumerate(text.split("\n"), 1) if "${" in words), None)
    tree.problems.error(
        Code.TEMPLATE,
        path,
        line,
        "a template whose values are not filled in",
        "Let your deployment tool write the app's files, and check its output.",
    )


# ---- keys and values


def _keys(item: Object, problems: Problems) -> None:
    for key, line in item.document.find_duplicates():
        problems.error(
            Code.DUPLICATE_KEY, item.file, line, f"the key {key!r} is here twice", "Keep one."
        )
    _unknown(item, (), item.data, KEYS[item.folder], problems)
    audio = item.get("audioProcessingConfig")
    if not item.folder and isinstance(audio, dict):
        _unknown(item, ("audioProcessingConfig",), audio, AUDIO_KEYS, problems)
    if item.folder == "agents":
        for kind in CallbackKind:
            for place, callback in item.mappings(to_camel(f"{kind.value}s")):
                _unknown(item, place, callback, CALLBACK_KEYS, problems)


def _unknown(
    item: Object, place: Place, data: Mapping[str, Any], known: frozenset[str], problems: Problems
) -> None:
    for key in data:
        camel = to_camel(key) if "_" in key else key
        if camel in known:
            continue
        near = difflib.get_close_matches(camel, known, 1, 0.8)
        if near:
            problems.warn(
                Code.UNKNOWN_KEY,
                item.file,
                item.line(*place, key),
                f"{key!r} is not a key of the format",
                f"Did you mean {near[0]!r}?",
            )


def _values(item: Object, problems: Problems) -> None:
    model = _MODELS.get(item.folder)
    if model is None:
        return
    try:
        model.model_validate(item.data)
    except ValidationError as error:
        for found in error.errors():
            if found["loc"][0] == "audioProcessingConfig" and found["type"] in _RANGE_ERRORS:
                continue  # the audio check says more about it
            key = ".".join(str(part) for part in found["loc"])
            problems.error(
                Code.VALUE,
                item.file,
                item.line(*found["loc"]),
                f"{key}: {found['msg']}",
                "Give the value the type and the range that the format asks for.",
            )


def _word(item: Object, place: Place, value: Any, problems: Problems) -> None:
    """One value whose key says what it may be."""
    key = to_camel(place[-1]) if isinstance(place[-1], str) else ""
    if key in _DURATIONS and value and not str(value).startswith("$"):
        try:
            duration_s(value, "")
        except AppError as error:
            problems.error(
                Code.DURATION,
                item.file,
                item.line(*place),
                f"{key}: {error.message}",
                "Write it in seconds, like '8s' or '0.5s'.",
            )
    if not isinstance(value, str) or not value or value.startswith("$"):
        return
    words = ENUMS.get(key)
    if words is not None and value not in words and not value.endswith("_UNSPECIFIED"):
        near = difflib.get_close_matches(value, words, 1, 0.4)
        problems.error(
            Code.ENUM,
            item.file,
            item.line(*place),
            f"{key} cannot be {value[:60]!r}",
            f"Did you mean {near[0]!r}?" if near else f"It is one of {', '.join(sorted(words))}.",
        )


# ---- names and kinds


def _names(tree: Tree) -> None:
    if tree.app is not None and not tree.agents and not tree.broken:
        tree.problems.error(
            Code.NO_AGENTS,
            tree.app.file,
            None,
            "the app has no agents",
            "An agent stands in agents/NAME/NAME.yaml.",
        )
    for folder, objects in tree.objects.items():
        seen: dict[str, Object] = {}
        for item in objects:
            other = seen.setdefault(item.name, item)
            if other is not item:
                tree.problems.error(
                    Code.DUPLICATE_NAME,
                    item.file,
                    item.line("displayName"),
                    f"{item.name!r} is also the name of {other.file}",
                    "References go by display name: give each object its own.",
                )
            reserved = folder in ("tools", "toolsets") and item.name in SYSTEM_TOOLS
            if reserved and item.get("systemTool") is None:
                tree.problems.error(
                    Code.RESERVED,
                    item.file,
                    item.line("displayName"),
                    f"{item.name!r} is a reserved tool name",
                    f"Reserved are {', '.join(sorted(SYSTEM_TOOLS))}; choose another.",
                )


def _kinds(tree: Tree) -> None:
    for item in tree.agents:
        if not item.data:
            tree.problems.error(
                Code.SHAPE,
                item.file,
                None,
                "the agent's file is empty",
                "It begins with a key such as displayName.",
            )
        if item.get("remoteDialogflowAgent") is not None:
            tree.problems.warn(
                Code.NOT_AVAILABLE,
                item.file,
                item.line("remoteDialogflowAgent"),
                "an agent in Dialogflow is out of reach here; handing over to it is refused",
                "Give the app an agent of its own for this, or run it in Google's cloud.",
            )
        elif kind := other_agent_kind(item.data):
            tree.problems.warn(
                Code.NOT_AVAILABLE,
                item.file,
                item.line(kind),
                f"an agent that is a {kind} cannot be run here; handing over to it is refused",
                "Give the app an agent with an instruction for this, or run it in Google's cloud.",
            )
    for folder, kinds, what in (
        ("tools", TOOL_KINDS, "tool"),
        ("toolsets", TOOLSET_KINDS, "toolset"),
        ("guardrails", GUARDRAIL_KINDS, "guardrail"),
    ):
        for item in tree.objects[folder]:
            _kind(tree.problems, item, kinds, what)


def _kind(problems: Problems, item: Object, kinds: Iterable[str], what: str) -> None:
    found = [kind for kind in kinds if item.get(kind) is not None]
    if len(found) != 1:
        problems.error(
            Code.TOOL_KIND,
            item.file,
            item.line(found[1]) if found else None,
            f"the {what} is {' and '.join(found)} at once"
            if found
            else f"the {what} has no kind of its own",
            "Give exactly one of pythonFunction and dataStoreTool (or another kind)."
            if what == "tool"
            else f"Give exactly one of {', '.join(kinds)}.",
        )
        return
    if found[0] in CLOUD_ONLY and item.get("toolFakeConfig") is None:
        problems.warn(
            Code.NOT_AVAILABLE,
            item.file,
            item.line(found[0]),
            f"{found[0]} works in Google's cloud only; here the model hears that it is missing",
            "Give it a toolFakeConfig to try the app without the cloud.",
        )
    if found[0] == "pythonFunction" and not item.get("pythonFunction", "pythonCode"):
        problems.error(
            Code.NO_CODE,
            item.file,
            item.line("pythonFunction"),
            "a Python tool without code",
            "Set pythonFunction.pythonCode to the path of its file.",
        )


def _variables(tree: Tree) -> None:
    if tree.app is None:
        return
    seen: set[str] = set()
    for place, declaration in tree.app.mappings("variableDeclarations"):
        name = declaration.get("name")
        if not isinstance(name, str) or not name:
            continue  # reported as a value
        line = tree.app.line(*place)
        if name in seen:
            tree.problems.error(
                Code.DUPLICATE_NAME,
                tree.app.file,
                line,
                f"the variable {name!r} is declared twice",
                "Keep one declaration.",
            )
        seen.add(name)
        if not name.isidentifier():
            tree.problems.error(
                Code.VARIABLE_TYPE,
                tree.app.file,
                line,
                f"{name!r} cannot be the name of a variable",
                "Use letters, digits and underscores: snake_case.",
            )
        _variable_type(tree.app, place, name, declaration, tree.problems)


def _variable_type(
    app: Object, place: Place, name: str, declaration: Mapping[str, Any], problems: Problems
) -> None:
    schema = declaration.get("schema")
    schema = schema if isinstance(schema, Mapping) else {}
    kind = schema.get("type", "STRING")
    line = app.line(*place, "schema")
    if not isinstance(kind, str) or kind.upper() not in SCHEMA_TYPES:
        problems.error(
            Code.VARIABLE_TYPE,
            app.file,
            line,
            f"the variable {name!r} has the unknown type {kind!r}",
            f"Types are {', '.join(sorted(SCHEMA_TYPES))}.",
        )
        return
    if "type" in declaration:
        problems.warn(
            Code.VARIABLE_TYPE,
            app.file,
            app.line(*place, "type"),
            f"the type of {name!r} does not stand in its schema",
            "Write schema: {type: …}.",
        )
    default = get(schema, "default", declaration.get("default"))
    wanted = _TYPES[kind.upper()]
    if default is None:
        return
    if not isinstance(default, wanted) or (isinstance(default, bool) and bool not in wanted):
        problems.warn(
            Code.VARIABLE_TYPE,
            app.file,
            line,
            f"the default of {name!r} is not of its type {kind.upper()}",
            "Give a default of the declared type.",
        )
