"""Read an exported agent app: a folder or zip whose files may be JSON or YAML, mixed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from gateway.agent.app.document import Document
from gateway.agent.app.environment import Environment, unresolved
from gateway.agent.app.files import AppFiles, clean_path, open_files
from gateway.agent.app.layout import (
    ENVIRONMENT_FILE,
    PYTHON_ENVIRONMENT,
    RESOURCE_FOLDERS,
    TEMPLATE_SUFFIXES,
    app_file,
    display_name,
    environment_object,
    object_files,
)
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

_PATH_LIKE = re.compile(r"^[\w./\\@+-]+\.(txt|md|py)$")

D = TypeVar("D", bound=Definition)
T = TypeVar("T")


def read_app(path: Path) -> App:
    """Read and link the app at `path` (folder or zip). Raises AppError naming file and key."""
    return read_files(open_files(path))


def read_files(files: AppFiles) -> App:
    """Read and link the app of these files. Raises AppError naming file and key."""
    return _Reader(files).app()


def read_most(files: AppFiles) -> tuple[App, list[AppError]]:
    """As much of an app as can be read, and why the rest is not there; for who looks for faults.

    Raises AppError where a file cannot be parsed. What an object says wrongly is left out of it.
    """
    faults: list[AppError] = []
    return _Reader(files, faults).app(), faults


class _Reader:
    def __init__(self, files: AppFiles, faults: list[AppError] | None = None) -> None:
        self._faults = faults
        """What was wrong, to go on without it; None: the first fault ends it."""
        self._files = files
        self._paths = files.paths()
        self._known = set(self._paths)
        self._warnings: list[AppWarning] = []
        self._environment = Environment(
            self._document(ENVIRONMENT_FILE).data if ENVIRONMENT_FILE in self._known else {}
        )

    def app(self) -> App:
        where = app_file(self._paths)
        if where is None:
            raise no_app_file(self._files)
        document = self._document(where)
        content = self._environment.app(document.data)
        self._report_unresolved(document, content)
        definition = self._definition(AppDefinition, content, where)
        agents: dict[str, Agent] = {}
        for place, content in self._objects("agents"):
            agent = self._agent(place, content)
            self._unique(agents, agent.display_name, place)
            agents.setdefault(agent.display_name, agent)
        tools: dict[str, Tool] = {}
        for place, content in self._objects("tools"):
            tool = self._tool(place, content)
            self._unique(tools, tool.display_name, place)
            tools.setdefault(tool.display_name, tool)
        resources: dict[str, dict[str, Mapping[str, Any]]] = {}
        for folder in RESOURCE_FOLDERS:
            resources[folder] = {}
            for place, content in self._objects(folder):
                name = display_name(content, place)
                self._unique(resources[folder], name, place)
                resources[folder].setdefault(name, content)
        python_environment = environment_object(self._paths)
        if python_environment is not None:
            content = self._document(python_environment).data
            resources[PYTHON_ENVIRONMENT] = {PYTHON_ENVIRONMENT: content}
        self._tried(lambda: self._link(definition, where, agents, tools, resources), None)
        return App(
            definition=definition,
            global_instruction=self._tried(
                lambda: self._text(definition.global_instruction, f"{where}:globalInstruction"), ""
            ),
            agents=agents,
            tools=tools,
            resources=resources,
            files=self._files,
            warnings=tuple(self._warnings),
        )

    def _tried(self, read: Callable[[], T], otherwise: T) -> T:
        """What is read, or something else where it is wrong and only noted."""
        try:
            return read()
        except AppError as error:
            self._note(error)
            return otherwise

    def _note(self, error: AppError) -> None:
        if self._faults is None:
            raise error
        self._faults.append(error)

    # ---- files

    def _string(self, rel: str) -> str:
        try:
            text = self._files.read(rel).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise AppError("app.encoding", f"not UTF-8: {error.reason}", where=rel) from None
        return text.replace("\r\n", "\n")

    def _document(self, rel: str) -> Document:
        return Document(rel, self._string(rel))

    def _objects(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """The objects in `folder`, one a subfolder: (path, content with environment applied)."""
        objects = []
        for directory, files in object_files(self._paths, folder).items():
            if len(files) > 1:
                self._note(
                    AppError(
                        "app.ambiguous",
                        f"more than one file describes {folder}/{directory}",
                        where=", ".join(files),
                        hint="Keep one of them.",
                    )
                )
            document = self._document(files[0])
            names = (display_name(document.data, files[0]), directory)
            content = self._environment.object(folder, names, document.data)
            self._report_unresolved(document, content)
            objects.append((files[0], content))
        return objects

    def _report_unresolved(self, document: Document, content: dict[str, Any]) -> None:
        for path, placeholder in unresolved(content):
            self._warnings.append(
                AppWarning(
                    "app.placeholder",
                    f"{document.name}:{document.line(*path)}",
                    f"nothing gives a value for {placeholder}",
                )
            )

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

    def _definition(self, model: type[D], content: Mapping[str, Any], where: str) -> D:
        return self._tried(lambda: self._validate(model, content, where), model())

    def _unique(self, known: Mapping[str, object], name: str, where: str) -> None:
        if name in known:
            message = f"two objects have the display name {name!r}"
            self._note(AppError("app.duplicate_name", message, where=where))

    def _agent(self, where: str, content: dict[str, Any]) -> Agent:
        definition = self._definition(AgentDefinition, content, where)
        callbacks: dict[CallbackKind, tuple[SourceCode, ...]] = {}
        proactive: list[SourceCode] = []
        for kind in CallbackKind:
            entries = getattr(definition, f"{kind.value}s")
            sources = []
            for index, entry in enumerate(entries):
                if entry.disabled or not entry.python_code:
                    continue
                key = f"{where}:{kind.value}s[{index}].pythonCode"
                source = self._source(entry.python_code, key)
                if source is None:
                    continue
                sources.append(source)
                if kind is CallbackKind.AFTER_MODEL and entry.proactive_execution_enabled:
                    proactive.append(source)
            callbacks[kind] = tuple(sources)
        return Agent(
            display_name=display_name(content, where),
            definition=definition,
            instruction=self._tried(
                lambda: self._text(definition.instruction, f"{where}:instruction"), ""
            ),
            callbacks=callbacks,
            where=where,
            proactive=tuple(proactive),
        )

    def _tool(self, where: str, content: dict[str, Any]) -> Tool:
        definition = self._definition(ToolDefinition, content, where)
        code = None
        function = definition.python_function
        if function is not None:
            place = f"{where}:pythonFunction.pythonCode"
            if not function.python_code:
                self._note(AppError("app.no_code", "a Python tool without code", where=place))
            else:
                code = self._source(function.python_code, place)
        timeout = definition.timeout
        return Tool(
            display_name=display_name(content, where),
            definition=definition,
            code=code,
            timeout_s=self._tried(
                lambda: duration_s(timeout, f"{where}:timeout") if timeout else None, None
            ),
            where=where,
        )

    def _source(self, value: str, where: str) -> SourceCode | None:
        """The code; None where there is none and that is only noted."""
        text = self._tried(lambda: self._text(value, where), None)
        if text is None:
            return None
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
            raise AppError(
                "app.no_agents",
                "the app has no agents",
                where=self._files.origin,
                hint="Each agent has a folder with a file of its name: agents/<name>/<name>.yaml.",
            )
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


def no_app_file(files: AppFiles) -> AppError:
    """What to say of a folder that is no app: most often a template or the folder around one."""
    templates = [path for path in files.paths() if path.endswith(TEMPLATE_SUFFIXES)]
    if templates:
        return AppError(
            "app.template",
            f"the app is a template ({templates[0]}) whose values are not filled in yet",
            where=files.origin,
            hint="Let your deployment tool write the app's files, then point at its output.",
        )
    return AppError(
        "app.no_app_file",
        "no app.yaml or app.json at the app's root",
        where=files.origin,
        hint="Point at the folder that holds app.yaml.",
    )
