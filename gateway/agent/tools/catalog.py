"""Every tool of an app by the name that the model calls: what it is and what runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from gateway import bidi
from gateway.agent.app.models import SYSTEM_TOOLS, Agent, App, SourceCode, Tool, duration_s
from gateway.agent.texts import source
from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.http import Api, HttpBackend, certificates
from gateway.agent.tools.mcp import McpBackend, McpServer
from gateway.agent.tools.openapi import parse_operations
from gateway.agent.tools.python import attribute_name
from gateway.agent.tools.schema import model_schema
from gateway.agent.tools.session_context import SessionContext
from gateway.config import ToolSettings
from gateway.errors import AppError

LISTING_S = 300.0
"""How long a list of an MCP server's tools is good."""
RETRY_S = 120.0
"""A server that did not answer is asked again after this."""
ANY_FAKE = "fake_tool_call"


class Kind(Enum):
    """What runs a tool."""

    PYTHON = auto()
    HTTP = auto()
    MCP = auto()
    CLIENT = auto()
    AGENT = auto()
    NONE = auto()
    """Nothing here does; a fake may stand in."""


class Backend(Protocol):
    """A remote tool; blocks its thread."""

    def call(self, args: Mapping[str, Any], context: SessionContext) -> Any:
        """The answer as a JSON value. Raises AppError."""
        ...


@dataclass(frozen=True, slots=True)
class Fake:
    """Code that stands in for a tool. `always`: also where the session does not ask for it."""

    code: SourceCode
    always: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool. `name`: a tool's display name, or `<toolset>_<operation>`."""

    name: str
    kind: Kind
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """None: known from the code only."""
    asynchronous: bool = False
    timeout_s: float | None = None
    tool_id: str = ""
    """The operation, remote tool or agent behind it."""
    toolset: str = ""
    tool: Tool | None = None
    backend: Backend | None = None
    fake: Fake | None = None
    where: str = ""
    problem: str = ""
    """Why nothing here runs it, for the model."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which mocks and fakes may mean it."""
        return tuple(dict.fromkeys(n for n in (self.name, self.tool_id, self.toolset) if n))


class Catalog:
    """The tools of an app. Lists of MCP servers come in later, as sessions need them."""

    def __init__(self, app: App, settings: ToolSettings) -> None:
        self._authenticator = Authenticator(settings)
        self._app = app
        self._entries: dict[str, Entry] = {}
        self._servers: dict[str, _Listed] = {}
        self._lock = threading.Lock()
        for tool in app.tools.values():
            if tool.display_name not in SYSTEM_TOOLS:
                self._add(self._of_tool(tool))
        for name, content in app.resources.get("toolsets", {}).items():
            self._add_toolset(name, content)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.name] = entry

    def sources(self) -> Iterable[SourceCode]:
        """Code of fakes."""
        fakes = {e.fake.code.where: e.fake.code for e in self._entries.values() if e.fake}
        fakes.update({s.fake.code.where: s.fake.code for s in self._servers.values() if s.fake})
        return fakes.values()

    # ---- looking up

    def find(self, name: str) -> Entry | None:
        """The tool of this name; `tools.x` spells odd characters as `_`."""
        entry = self._entries.get(name)
        if entry is not None:
            return entry
        for known, candidate in self._entries.items():
            if attribute_name(known) == attribute_name(name):
                return candidate
        return None

    def of_agent(self, agent: Agent) -> list[Entry]:
        """The tools that an agent lists, in order; without the system's own."""
        entries = [self._entries[name] for name in agent.tools if name in self._entries]
        for listed in agent.definition.toolsets:
            for entry in self._entries.values():
                wanted = not listed.tool_ids or entry.tool_id in listed.tool_ids
                if entry.toolset == listed.toolset and entry.tool_id and wanted:
                    entries.append(entry)
        return entries

    # ---- tools

    def _of_tool(self, tool: Tool) -> Entry:
        content = _content(tool)
        common: dict[str, Any] = {
            "name": tool.display_name,
            "asynchronous": tool.asynchronous,
            "timeout_s": tool.timeout_s,
            "tool": tool,
            "where": tool.where,
            "fake": self._fake(content, tool.where),
        }
        definition = tool.definition
        if tool.code is not None and definition.python_function is not None:
            return Entry(
                kind=Kind.PYTHON, description=definition.python_function.description, **common
            )
        client = definition.client_function
        if client is not None:
            schema = model_schema(client.parameters, client.parameters)
            return Entry(
                kind=Kind.CLIENT,
                description=client.description,
                parameters=schema or None,
                **common,
            )
        special = self._special(content, tool.where)
        if special is not None:
            return Entry(**{**common, **special})
        kind = tool.kind
        body = bidi.get(content, kind) if kind else None
        about = body if isinstance(body, Mapping) else {}
        return Entry(
            kind=Kind.NONE,
            description=str(about.get("description") or ""),
            problem=f"tools of the kind {kind or 'unknown'} are not available here",
            **common,
        )

    def _special(self, content: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        agent = bidi.get(content, "agentTool")
        if isinstance(agent, Mapping):
            return {
                "kind": Kind.AGENT,
                "description": str(agent.get("description") or ""),
                "tool_id": str(agent.get("agent") or "").rsplit("/", 1)[-1],
                "parameters": {
                    "type": "OBJECT",
                    "properties": {
                        "request": {"type": "STRING", "description": "What the agent shall do."}
                    },
                    "required": ["request"],
                },
            }
        mcp = bidi.get(content, "mcpTool")
        if isinstance(mcp, Mapping):
            schema = bidi.get(mcp, "inputSchema")
            remote = str(mcp.get("name") or "")
            return {
                "kind": Kind.MCP,
                "description": str(mcp.get("description") or ""),
                "parameters": model_schema(schema, schema) if isinstance(schema, dict) else None,
                "tool_id": remote,
                "backend": McpBackend(self._server(mcp, where), remote),
            }
        api = bidi.get(content, "openApiTool")
        if isinstance(api, Mapping):
            operations = self._operations(api, f"{where}:openApiTool")
            wanted = str(api.get("name") or "")
            chosen = [o for o in operations if o.operation.operation_id == wanted] or operations
            if not chosen:
                raise AppError("app.openapi", "the API has no operations", where=where)
            backend = chosen[0]
            return {
                "kind": Kind.HTTP,
                "description": str(api.get("description") or backend.operation.description),
                "parameters": backend.operation.arguments(),
                "tool_id": backend.operation.operation_id,
                "backend": backend,
            }
        return None

    def _fake(self, content: Mapping[str, Any], where: str) -> Fake | None:
        config = bidi.get(content, "toolFakeConfig")
        block = bidi.get(config, "codeBlock") if isinstance(config, Mapping) else None
        code = bidi.get(block, "pythonCode") if isinstance(block, Mapping) else None
        if not isinstance(code, str) or not code:
            return None
        key = f"{where}:toolFakeConfig.codeBlock.pythonCode"
        return Fake(source(self._app, code, key), bidi.get(config, "enableFakeMode") is True)

    # ---- toolsets

    def _add_toolset(self, name: str, content: Mapping[str, Any]) -> None:
        where = f"toolsets/{name}"
        timeout = content.get("timeout")
        common: dict[str, Any] = {
            "toolset": name,
            "where": where,
            "timeout_s": duration_s(str(timeout), f"{where}:timeout") if timeout else None,
            "asynchronous": str(bidi.get(content, "executionType")).upper() == "ASYNCHRONOUS",
            "fake": self._fake(content, where),
        }
        api = bidi.get(content, "openApiToolset")
        mcp = bidi.get(content, "mcpToolset")
        if isinstance(api, Mapping):
            for backend in self._operations(api, f"{where}:openApiToolset"):
                operation = backend.operation
                self._add(
                    Entry(
                        name=_joint(name, operation.operation_id),
                        kind=Kind.HTTP,
                        description=operation.description,
                        parameters=operation.arguments(),
                        tool_id=operation.operation_id,
                        backend=backend,
                        **common,
                    )
                )
        elif isinstance(mcp, Mapping):
            listed = _Listed(self._server(mcp, where), common, _overrides(mcp))
            self._servers[name] = listed
            for entry in listed.entries(listed.snapshots()):
                self._add(entry)
        else:
            self._add_unavailable(name, content, common)

    def _add_unavailable(
        self, name: str, content: Mapping[str, Any], common: Mapping[str, Any]
    ) -> None:
        connector = bidi.get(content, "connectorToolset")
        actions = bidi.get(connector, "connectorActions") if isinstance(connector, dict) else None
        for action in actions or ():
            tool_id = str(bidi.get(action, "connectionActionId") or "")
            operation = bidi.get(action, "entityOperation")
            if not tool_id and isinstance(operation, Mapping):
                entity = bidi.get(operation, "entityId")
                tool_id = f"{operation.get('operation', '')}_{entity}".lower()
            if tool_id:
                self._add(
                    Entry(
                        name=_joint(name, tool_id),
                        kind=Kind.NONE,
                        tool_id=tool_id,
                        problem="tools of the kind connectorToolset are not available here",
                        **common,
                    )
                )

    def _operations(self, api: Mapping[str, Any], where: str) -> list[HttpBackend]:
        schema = source(
            self._app, str(bidi.get(api, "openApiSchema") or ""), f"{where}.openApiSchema"
        )
        shared = Api(
            authentication=_mapping(bidi.get(api, "apiAuthentication")),
            ca_certificates=certificates(bidi.get(api, "tlsConfig")),
            ignore_unknown_fields=bidi.get(api, "ignoreUnknownFields") is True,
            where=where,
        )
        server = str(api.get("url") or "")
        return [
            HttpBackend(operation, shared, self._authenticator)
            for operation in parse_operations(schema.text, schema.where, server)
        ]

    def _server(self, mcp: Mapping[str, Any], where: str) -> McpServer:
        headers = _mapping(bidi.get(mcp, "customHeaders"))
        return McpServer(
            address=str(bidi.get(mcp, "serverAddress") or ""),
            authenticator=self._authenticator,
            authentication=_mapping(bidi.get(mcp, "apiAuthentication")),
            headers={str(name): str(value) for name, value in headers.items()},
            ca_certificates=certificates(bidi.get(mcp, "tlsConfig")),
            where=where,
        )

    # ---- lists of MCP servers

    def unlisted_servers(self, agent: Agent) -> list[str]:
        """Toolsets of the agent whose server should be asked (again) for its tools."""
        now = time.monotonic()
        names = (listed.toolset for listed in agent.definition.toolsets)
        return [n for n in names if n in self._servers and now >= self._servers[n].due_s]

    def list_server(self, toolset: str, context: SessionContext) -> None:
        """Ask a server for its tools; blocks the thread. Raises AppError; asked again later."""
        listed = self._servers[toolset]
        with listed.lock:
            if time.monotonic() < listed.due_s:
                # Another session has asked while this one waited.
                return
            listed.due_s = time.monotonic() + RETRY_S
            found = {str(tool["name"]): tool for tool in listed.server.list_tools(context)}
            with self._lock:
                # A new mapping: others read the old one at this moment.
                kept = {n: e for n, e in self._entries.items() if e.toolset != toolset}
                self._entries = {**kept, **{e.name: e for e in listed.entries(found)}}
            listed.due_s = time.monotonic() + LISTING_S


class _Listed:
    """An MCP toolset: its server, what its author changed, when to ask it again."""

    def __init__(
        self,
        server: McpServer,
        common: Mapping[str, Any],
        overrides: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.server = server
        self.due_s = 0.0
        self.lock = threading.Lock()
        self._common = common
        self._overrides = overrides

    @property
    def fake(self) -> Fake | None:
        """The toolset's fake, also before any tool is known."""
        fake: Fake | None = self._common["fake"]
        return fake

    def snapshots(self) -> dict[str, Mapping[str, Any]]:
        """The tools as the export remembers them, until the server has been asked."""
        return {
            name: bidi.get(override, "snapshot")
            for name, override in self._overrides.items()
            if isinstance(bidi.get(override, "snapshot"), Mapping)
        }

    def entries(self, tools: Mapping[str, Mapping[str, Any]]) -> list[Entry]:
        """The tools under the names and descriptions that the author gave them."""
        entries = []
        for name, tool in tools.items():
            override = self._overrides.get(name, {})
            schema = bidi.get(tool, "inputSchema")
            shown = str(bidi.get(override, "nameOverride") or name)
            about = bidi.get(override, "descriptionOverride") or tool.get("description")
            entries.append(
                Entry(
                    name=_joint(str(self._common["toolset"]), shown),
                    kind=Kind.MCP,
                    description=str(about or ""),
                    parameters=model_schema(schema, schema) if isinstance(schema, dict) else None,
                    tool_id=name,
                    backend=McpBackend(self.server, name),
                    **self._common,
                )
            )
        return entries


def _overrides(mcp: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    entries = bidi.get(mcp, "toolOverrides")
    return {
        str(entry["tool"]): entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping) and entry.get("tool")
    }


def _joint(toolset: str, tool_id: str) -> str:
    return attribute_name(f"{toolset}_{tool_id}")


def _content(tool: Tool) -> Mapping[str, Any]:
    """What the tool's file says beyond the fields that the reader knows."""
    return tool.definition.model_extra or {}


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
