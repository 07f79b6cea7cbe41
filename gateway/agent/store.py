"""Sessions by name, so that a client whose connection broke finds its session again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.agent.session import AgentSession

KEEP_S = 300.0
MAX_KEPT = 200
"""Sessions kept without a connection; the longest unused are forgotten first."""


class SessionStore:
    """Sessions of one process by name, kept for a while after their connection is lost."""

    def __init__(self, keep_s: float = KEEP_S, max_kept: int = MAX_KEPT) -> None:
        self._keep_s = keep_s
        self._max_kept = max_kept
        self._sessions: dict[str, AgentSession] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._sessions)

    def take_up(self, name: str) -> AgentSession | None:
        """A kept session by its name, if it is still there."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        return self._sessions.get(name)

    def add(self, session: AgentSession) -> None:
        """Know a new session."""
        self._sessions[session.name] = session

    def keep(self, session: AgentSession) -> None:
        """Its connection is lost: forget the session unless it is taken up in time.

        The longest unused is forgotten at once where there are too many.
        """
        while len(self._timers) >= max(1, self._max_kept):
            self._drop(next(iter(self._timers)))
        running = asyncio.get_running_loop()
        self._timers[session.name] = running.call_later(self._keep_s, self._drop, session.name)

    def _drop(self, name: str) -> None:
        session = self._forget(name)
        if session is not None:
            task = asyncio.create_task(session.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _forget(self, name: str) -> AgentSession | None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        return self._sessions.pop(name, None)

    async def close(self, session: AgentSession) -> None:
        """The session is over."""
        if self._sessions.get(session.name) is session:
            self._forget(session.name)
        await session.aclose()

    async def aclose(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            await self.close(session)
        await asyncio.gather(*self._closing, return_exceptions=True)
