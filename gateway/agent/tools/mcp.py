"""Tools of MCP servers through the official client (streamable HTTP). Blocks its thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gateway.agent.tools.auth import Authenticator
from gateway.agent.tools.http import ToolFailure, trusting
from gateway.agent.tools.requests import seconds_left
from gateway.agent.tools.session_context import SessionContext
from gateway.errors import AppError

T = TypeVar("T")

MAX_TOOLS = 200
MAX_PAGES = 20


@dataclass(frozen=True, slots=True)
class McpServer:
    """Where a server is and what it is told. `headers` may be `$context.variables.NAME`."""

    address: str
    authenticator: Authenticator
    authentication: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_certificates: tuple[bytes, ...] = ()
    where: str = ""

    def list_tools(self, context: SessionContext) -> list[dict[str, Any]]:
        """What the server offers: `name`, `description`, `inputSchema`. Raises ToolFailure."""

        async def work(client: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                found += [tool.model_dump(mode="json", by_alias=True) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor or len(found) >= MAX_TOOLS:
                    break
            return found[:MAX_TOOLS]

        return self._run(work, context)

    def call(self, tool: str, args: Mapping[str, Any], context: SessionContext) -> Any:
        """The tool's result: its structured content, else its text. Raises ToolFailure."""

        async def work(client: Any) -> Any:
            return await client.call_tool(tool, dict(args))

        result = self._run(work, context)
        texts = [block.text for block in result.content if getattr(block, "text", None)]
        if result.is_error:
            raise ToolFailure(" ".join(texts) or "the tool failed", where=self.where)
        if result.structured_content is not None:
            return result.structured_content
        return {"text": "\n".join(texts)}

    def _run(self, work: Callable[[Any], Awaitable[T]], context: SessionContext) -> T:
        proof = self.authenticator.prove(self.authentication, context, self.address)
        headers = {name: context.text(value) for name, value in self.headers.items()}
        limit_s = max(0.1, seconds_left())
        try:
            return asyncio.run(self._connected(work, {**headers, **proof.headers}, limit_s))
        except AppError:
            raise
        except TimeoutError:
            raise ToolFailure("the MCP server took too long", where=self.where) from None
        except Exception as error:
            inner: BaseException = error
            while isinstance(inner, BaseExceptionGroup):
                inner = inner.exceptions[0]
            raise ToolFailure(
                f"the MCP server failed: {type(inner).__name__}: {inner}", where=self.where
            ) from None

    async def _connected(
        self, work: Callable[[Any], Awaitable[T]], headers: Mapping[str, str], limit_s: float
    ) -> T:
        try:
            import httpx2
            from mcp import Client
            from mcp.client.streamable_http import streamable_http_client
        except ImportError:
            raise AppError(
                "tool.mcp",
                "MCP tools are not available here: the mcp package is not installed",
                where=self.where,
                hint="pip install 'voice-gateway[mcp]'",
            ) from None
        trust = trusting(self.ca_certificates) if self.ca_certificates else True
        # The inner bounds end the exchange a little before the thread itself is ended.
        timeout = httpx2.Timeout(limit_s)
        async with asyncio.timeout(limit_s):
            async with (
                httpx2.AsyncClient(headers=dict(headers), timeout=timeout, verify=trust) as http,
                Client(
                    streamable_http_client(self.address, http_client=http),
                    read_timeout_seconds=limit_s,
                ) as client,
            ):
                return await work(client)


@dataclass(frozen=True, slots=True)
class McpBackend:
    """One tool of a server, ready to be called."""

    server: McpServer
    tool: str

    def call(self, args: Mapping[str, Any], context: SessionContext) -> Any:
        """The answer as a JSON value. Raises ToolFailure, or AppError for what the app lacks."""
        return self.server.call(self.tool, args, context)
