"""Read an exported agent app: a folder or zip whose files may be JSON or YAML, mixed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from gateway.agent.app.files import APP_FILES, AppFiles, clean_path, open_files
from gateway.agent.app.models import (
    SYSTEM_TOOLS,
    Agent,
    AgentDefinition,
    App,
    AppDefinition,
    AppWarning,
    CallbackKind,
    Definition,
    SourceCode,
    Tool,
    ToolDefinition,
    duration_s,
)
from gateway.errors import AppError

_FOLDERS = (
    "toolsets",
    "guardrails",
    "examples",
    "evaluations",
    "evaluationDatasets",
    "evaluationExpectations",
)
_SUFFIXES = (".yaml", ".yml", ".json")
_PATH_LIKE = re.compile(r"^[\w./\\@+-]+\.(txt|md|py)$")

D = TypeVar("D", bound=Definition)


def read_app(path: Path) -> App:
    """Read and link the app at `path` (folder or zip). Raises AppError naming file and key."""
    return _Reader(open_files(path)).app()


class _Reader:
    def __init__(self, files: AppFiles) -> None:
        self._files = files
        self._paths = files.paths()
        self._known = set(self._paths)
        self._warnings: list[AppWarning] = []
        self._environment = self._read_environment()

    def app(self) -> App:
        app_file = next((name for name in APP_FILES if name in self._known), None)
        if app_file is None:
            raise AppError(
                "app.no_app_file",
                "no app.yaml or app.json at the app's root",
                where=self._files.origin,
                hint="Point at the folder that holds app.yaml.",
            )
        content = self._mapping(app_file)
        overrides = self._environment.get("app")
        if isinstance(overrides, Mapping):
            content = _merge(content, overrides)
        definition = self._validate(AppDefinition, content, app_file)
        agents: dict[str, Agent] = {}
        for where, content in self._objects("agents"):
            agent = self._agent(where, content)
            self._unique(agents, agent.display_name, where)
            agents[agent.display_name] = agent
        tools: dict[str, Tool] = {}
        for where, content in self._objects("tools"):
            tool = self._tool(where, content)
            self._unique(tools, tool.display_name, where)
            tools[tool.display_name] = tool
        resources: dict[str, dict[str, Mapping[str, Any]]] = {}
        for folder in _FOLDERS:
            resources[folder] = {}
            for where, content in self._objects(folder):
                resources[folder][_display_name(content, where)] = content
        self._link(definition, app_file, agents, tools, resources)
        return App(
            definition=definition,
            global_instruction=self._text(
                definition.global_instruction, f"{app_file}:globalInstruction"
            ),
            agents=agents,
            tools=tools,
            resources=resources,
            files=self._files,
            warnings=tuple(self._warnings),
        )

    # ---- files

    def _read_environment(self) -> dict[str, Any]:
        return self._mapping("environment.json") if "environment.json" in self._known else {}

    def _string(self, rel: str) -> str:
        try:
            text = self._files.read(rel).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise AppError("app.encoding", f"not UTF-8: {error.reason}", where=rel) from None
        return text.replace("\r\n", "\n")

    def _mapping(self, rel: str) -> dict[str, Any]:
        text = self._string(rel)
        try:
            content = json.loads(text) if rel.endswith(".json") else yaml.safe_load(text)
        except json.JSONDecodeError as error:
            raise AppError(
                "app.json", f"not JSON: {error.msg}", where=f"{rel}:{error.lineno}"
            ) from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f":{mark.line + 1}" if mark is not None else ""
            problem = getattr(error, "problem", None) or "cannot be parsed"
            raise AppError("app.yaml", f"not YAML: {problem}", where=f"{rel}{line}") from None
        except RecursionError:
            raise AppError("app.yaml", "nested too deeply", where=rel) from None
        if content is None:
            return {}
        if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
            raise AppError("app.shape", "the file is not a mapping", where=rel)
        return content

    def _objects(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """The objects in `folder`, one a subfolder: (path, content with environment applied)."""
        by_directory: dict[str, list[str]] = {}
        for path in self._paths:
            parts = path.split("/")
            if len(parts) == 3 and parts[0] == folder and parts[2].endswith(_SUFFIXES):
                by_directory.setdefault(parts[1], []).append(path)
        objects = []
        for directory, candidates in sorted(by_directory.items()):
            exact = [p for p in candidates if p.split("/")[2].rsplit(".", 1)[0] == directory]
            chosen = exact or candidates
            if len(chosen) > 1:
                raise AppError(
                    "app.ambiguous",
                    f"more than one file describes {folder}/{directory}",
                    where=", ".join(chosen),
                )
            content = self._mapping(chosen[0])
            overrides = self._environment.get(folder)
            if isinstance(overrides, Mapping):
                for key in (_display_name(content, chosen[0]), directory):
                    if isinstance(overrides.get(key), Mapping):
                        content = _merge(content, overrides[key])
                        break
            objects.append((chosen[0], self._substituted(content)))
        return objects

    def _substituted(self, value: Any) -> Any:
        """`$env_var` strings replaced by the value of that key in environment.json."""
        if isinstance(value, dict):
            return {key: self._substituted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._substituted(item) for item in value]
        if isinstance(value, str) and value.startswith("$") and value[1:] in self._environment:
            return self._environment[value[1:]]
        return value

    def _text(self, value: str, where: str) -> str:
        """The text that `value` stands for: a file of the app, or the text itself."""
        if not value:
            return ""
        if "\n" not in value and len(value) < 1024:
            try:
                path = clean_path(value)
            except AppError:
                if not _PATH_LIKE.match(value):
                    return value
                raise AppError("app.path", "path leaves the app", where=where) from None
            if path in self._known:
                return self._string(path)
            if _PATH_LIKE.match(value):
                raise AppError(
                    "app.missing_file",
                    f"the app has no file {value!r}",
                    where=where,
                    hint="Paths are relative to the app's root folder.",
                )
        return value

    # ---- objects

    def _validate(self, model: type[D], content: Mapping[str, Any], where: str) -> D:
        try:
            return model.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise AppError("app.value", f"{key}: {first['msg']}", where=f"{where}:{key}") from None

    def _unique(self, known: Mapping[str, object], name: str, where: str) -> None:
        if name in known:
            raise AppError(
                "app.duplicate_name", f"two objects have the display name {name!r}", where=where
            )

    def _agent(self, where: str, content: dict[str, Any]) -> Agent:
        definition = self._validate(AgentDefinition, content, where)
        callbacks: dict[CallbackKind, tuple[SourceCode, ...]] = {}
        for kind in CallbackKind:
            entries = getattr(definition, f"{kind.value}s")
            sources = []
            for index, entry in enumerate(entries):
                if entry.disabled or not entry.python_code:
                    continue
                key = f"{where}:{kind.value}s[{index}].pythonCode"
                sources.append(self._source(entry.python_code, key))
            callbacks[kind] = tuple(sources)
        return Agent(
            display_name=_display_name(content, where),
            definition=definition,
            instruction=self._text(definition.instruction, f"{where}:instruction"),
            callbacks=callbacks,
            where=where,
        )

    def _tool(self, where: str, content: dict[str, Any]) -> Tool:
        definition = self._validate(ToolDefinition, content, where)
        code = None
        function = definition.python_function
        if function is not None:
            if not function.python_code:
                raise AppError(
                    "app.no_code",
                    "a Python tool without code",
                    where=f"{where}:pythonFunction.pythonCode",
                )
            code = self._source(function.python_code, f"{where}:pythonFunction.pythonCode")
        timeout = definition.timeout
        return Tool(
            display_name=_display_name(content, where),
            definition=definition,
            code=code,
            timeout_s=duration_s(timeout, f"{where}:timeout") if timeout else None,
            where=where,
        )

    def _source(self, value: str, where: str) -> SourceCode:
        text = self._text(value, where)
        return SourceCode(where=value if text != value else where, text=text)

    # ---- references

    def _link(
        self,
        definition: AppDefinition,
        app_file: str,
        agents: Mapping[str, Agent],
        tools: Mapping[str, Tool],
        resources: Mapping[str, Mapping[str, Mapping[str, Any]]],
    ) -> None:
        if not agents:
            raise AppError("app.no_agents", "the app has no agents", where=self._files.origin)
        if definition.root_agent not in agents:
            raise AppError(
                "app.reference",
                f"rootAgent {definition.root_agent!r} is not an agent of the app",
                where=f"{app_file}:rootAgent",
                hint=f"Agents by display name: {', '.join(sorted(agents))}.",
            )
        for name in tools:
            if name in SYSTEM_TOOLS and tools[name].code is not None:
                raise AppError(
                    "app.reserved", f"{name!r} is a reserved tool name", where=tools[name].where
                )
        for agent in agents.values():
            for index, child in enumerate(agent.definition.child_agents):
                if child not in agents:
                    raise AppError(
                        "app.reference",
                        f"child agent {child!r} is not an agent of the app",
                        where=f"{agent.where}:childAgents[{index}]",
                    )
            for index, name in enumerate(agent.tools):
                if name not in tools and name not in SYSTEM_TOOLS:
                    self._warn(f"{agent.where}:tools[{index}]", f"tool {name!r} is not in the app")
            for index, toolset in enumerate(agent.definition.toolsets):
                if toolset.toolset not in resources["toolsets"]:
                    self._warn(
                        f"{agent.where}:toolsets[{index}]",
                        f"toolset {toolset.toolset!r} is not in the app",
                    )

    def _warn(self, where: str, message: str) -> None:
        self._warnings.append(AppWarning("app.reference", where, message))


def _display_name(content: Mapping[str, Any], where: str) -> str:
    for key in ("displayName", "display_name", "name"):
        value = content.get(key)
        if isinstance(value, str) and value:
            return value
    return where.split("/")[1]


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged
