"""The state of one session that turns work on: agent, variables, history, code, model memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gateway.agent import variables
from gateway.agent.app.models import Agent, App, SourceCode
from gateway.agent.app.models import Tool as AppTool
from gateway.agent.code import AppCode, CodeSpace
from gateway.agent.history import History
from gateway.agent.models.base import Model
from gateway.agent.platform import Content, Event, Part, ToolContext
from gateway.agent.runner import CodeRunner
from gateway.agent.scope import app_print, scoped
from gateway.agent.tools.facade import app_globals
from gateway.agent.tools.requests import CesRequests
from gateway.config import Settings

T = TypeVar("T")

log = logging.getLogger("gateway.agent")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the session is: the parts of its resource name."""

    project: str = "local"
    location: str = "local"
    app: str = "app"
    session: str = "session"

    @property
    def app_name(self) -> str:
        """Resource name of the app."""
        return f"projects/{self.project}/locations/{self.location}/apps/{self.app}"


@dataclass(frozen=True, slots=True)
class Engine:
    """What all sessions of a process share."""

    app: App
    code: AppCode
    model: Model
    settings: Settings
    runner: CodeRunner


@dataclass(slots=True)
class AsyncCall:
    """An asynchronous tool that app code asked for through `async_tools`."""

    tool: AppTool
    args: dict[str, Any]


@dataclass(slots=True)
class Conversation:
    """One session's state. App code reaches it through contexts and injected globals only."""

    engine: Engine
    identity: Identity
    agent: Agent
    start_async: Callable[[AppTool, dict[str, Any], str], None]
    """Start an asynchronous tool: (tool, arguments, function call id)."""
    history: History = field(default_factory=History)
    state: dict[str, Any] = field(init=False)
    memory: dict[str, Any] = field(default_factory=dict)
    """The model's own memory of this session."""
    turn_index: int = 0
    user_content: Content | None = None
    asked_async: list[AsyncCall] = field(default_factory=list)
    _space: CodeSpace = field(init=False)
    _told: dict[str, str] = field(default_factory=dict)
    _calls: int = 0

    def __post_init__(self) -> None:
        self.state = variables.initial(self.engine.app)
        self._space = CodeSpace(
            self.engine.code,
            {
                "print": app_print,
                "ces_requests": CesRequests(),
                **app_globals(self),
            },
        )

    # ---- app code

    def function(self, source: SourceCode, name: str) -> Callable[..., Any]:
        """A function of the app's code; only for use in a worker thread."""
        return self._space.function(source, name)

    async def run_code(self, fn: Callable[[], T], context: ToolContext, deadline_s: float) -> T:
        """Run app code in a worker thread. Raises what it raises, or DeadlineExceeded."""
        call = scoped(fn, self.identity.session, context, deadline_s)
        try:
            return await self.engine.runner.run(call, deadline_s)
        finally:
            asked, self.asked_async = self.asked_async, []
            for wish in asked:
                self.start_async(wish.tool, wish.args, self.new_call_id())

    def context(
        self, extra_events: list[Event] | None = None, function_call_id: str | None = None
    ) -> ToolContext:
        """A fresh context over this session for one call of app code."""
        return ToolContext(
            function_call_id=function_call_id,
            user_content=self.user_content,
            invocation_id=self.invocation_id,
            agent_name=self.agent.display_name,
            session_id=self.identity.session,
            state=self.state,
            events=self.history.events() + (extra_events or []),
            language_code=self.engine.app.language,
            project_id=self.identity.project,
            location=self.identity.location,
            app_id=self.identity.app,
            turn_index=self.turn_index,
        )

    def ask_async(self, tool: AppTool, args: dict[str, Any]) -> None:
        """App code wishes an asynchronous tool; it starts when that code has returned."""
        self.asked_async.append(AsyncCall(tool, args))

    # ---- history

    @property
    def invocation_id(self) -> str:
        """The id of the current turn."""
        return f"turn-{self.turn_index}"

    def new_call_id(self) -> str:
        """An id for a function call."""
        self._calls += 1
        return f"call-{self._calls}"

    def add_user(self, parts: list[Part]) -> Event:
        """Append what the user said."""
        self.user_content = Content(parts=parts, role="user")
        return self._add("user", self.user_content)

    def add_model(self, parts: list[Part]) -> Event:
        """Append what the agent said or asked for."""
        return self._add(self.agent.display_name, Content(parts=parts, role="model"))

    def add_responses(self, parts: list[Part]) -> Event:
        """Append what tools answered."""
        return self._add(self.agent.display_name, Content(parts=parts, role="user"))

    def _add(self, author: str, content: Content) -> Event:
        seconds = int(asyncio.get_running_loop().time())
        return self.history.add(author, content, self.invocation_id, seconds)

    # ---- instructions

    def system_instruction(self) -> str:
        """Global and agent instruction with static variables filled in."""
        texts = (self.engine.app.global_instruction, self.agent.instruction)
        return variables.substitute("\n\n".join(text for text in texts if text), self.state)

    def note_changes(self) -> list[str]:
        """Note dynamic variables that changed since the model last heard; the texts it reads."""
        names = variables.dynamic_names(
            self.engine.app.global_instruction + "\n" + self.agent.instruction
        )
        notes: list[str] = []
        for name in sorted(names & self.state.keys()):
            text = variables.state_update(name, self.state[name])
            if self._told.get(name) != text:
                self._told[name] = text
                notes.append(text)
        self.history.note(notes)
        return notes
