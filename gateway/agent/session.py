"""One BidiRunSession as a server: inputs, turns, interruption, end."""

from __future__ import annotations

from gateway.agent.app import App
from gateway.agent.link import Link
from gateway.agent.runner import CodeRunner
from gateway.config import Settings


class SessionStore:
    """Sessions of one process by name, so that a lost connection can be taken up again."""


async def serve_link(
    link: Link,
    app: App,
    settings: Settings,
    runner: CodeRunner,
    store: SessionStore | None = None,
) -> None:
    """Serve one connection until it closes. Without a `store` the session ends with the link."""
    raise NotImplementedError
