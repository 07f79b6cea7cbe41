"""The state of one session that turns work on: agent, variables, history, code, model memory."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from gateway import bidi
from gateway.agent import prompt, variables
from gateway.agent.app.models import Agent, App, ModelConfig, SourceCode
from gateway.agent.code import AppCode, CodeSpace
from gateway.agent.failures import FailureHandling, fallback_text
from gateway.agent.history import History
from gateway.agent.models.base import Model
from gateway.agent.platform import Content, Event, Part, ToolContext
from gateway.agent.routes import Routes
from gateway.agent.runner import CodeRunner
from gateway.agent.scope import app_print, scoped
from gateway.agent.tools.access import Access
from gateway.agent.tools.catalog import Catalog, Entry
from gateway.agent.tools.facade import app_globals
from gateway.agent.tools.mocks import MockConfig
from gateway.agent.tools.requests import CesRequests
from gateway.agent.tools.session_context import SessionContext
from gateway.config import Settings

if TYPE_CHECKING:
    from gateway.agent.consent import Pending
    from gateway.agent.guardrails.guard import Guards
    from gateway.agent.tools.client import ClientCalls
    from gateway.agent.turn import Turn

T = TypeVar("T")


CURRENT_DATE = "current_date"
"""A variable that is always there for instructions: today in the session's time zone."""


MAX_AT_ONCE = 8
"""Calls of app code that run at the same time for the turns of a session."""


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
    catalog: Catalog
    guards: Guards
    routes: Routes
    failures: FailureHandling
    access: Access
    mocks: MockConfig = field(default_factory=MockConfig)


@dataclass(slots=True)
class AsyncCall:
    """An asynchronous tool that app code asked for through `async_tools`."""

    tool: Entry
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reach:
    """The turn that runs, for app code that asks for what only the event loop can do."""

    loop: asyncio.AbstractEventLoop
    turn: Turn
    client: ClientCalls


@dataclass(slots=True)
class Conversation:
    """One session's state. App code reaches it through contexts and injected globals only."""

    engine: Engine
    identity: Identity
    agent: Agent
    start_async: Callable[[Entry, dict[str, Any], str], None]
    """Start an asynchronous tool: (tool, arguments, function call id)."""
    channel: str = ""
    """The dialect by which the caller came, where the gateway said so."""
    use_fakes: bool = False
    """The session asked for the fakes of tools."""
    time_zone: datetime.tzinfo = datetime.UTC
    depth: int = 0
    """0: the caller's own session; more: an agent that works as a tool."""
    history: History = field(default_factory=History)
    state: dict[str, Any] = field(init=False)
    memory: dict[str, Any] = field(default_factory=dict)
    """The model's own memory of this session."""
    turn_index: int = 0
    user_content: Content | None = None
    asked_async: list[AsyncCall] = field(default_factory=list)
    pending: Pending | None = None
    """A call that waits for the caller's consent."""
    failures: int = 0
    """Turns in a row that failed."""
    fell_back_for: str = ""
    """The unsupported language for which the app's fallback has been taken."""
    reach: Reach | None = None
    """What app code reaches the event loop by, while a turn runs."""
    _space: CodeSpace = field(init=False)
    _share: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_AT_ONCE))
    _told: dict[str, str] = field(default_factory=dict)
    _calls: int = 0
    _epoch_s: float = field(default_factory=lambda: time.time() - asyncio.get_running_loop().time())
    """The Unix time at which the event loop's clock was zero: that clock may be a virtual one."""

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

    async def run_code(
        self, fn: Callable[[], T], context: ToolContext, deadline_s: float, *, aside: bool = False
    ) -> T:
        """Run app code in a worker thread. Raises what it raises, or DeadlineExceeded.

        A session has a share of the threads, and what is above it waits, so that other sessions
        always get theirs. `aside`: no turn waits for it, and the turns' share is not for it.
        """
        show = self.engine.settings.log.app_output
        call = scoped(fn, self.identity.session, context, deadline_s, show=show)
        try:
            async with nullcontext() if aside else self._share:
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
            language_code=self.language,
            project_id=self.identity.project,
            location=self.identity.location,
            app_id=self.identity.app,
            turn_index=self.turn_index,
        )

    def session_context(self) -> SessionContext:
        """What OpenAPI and MCP tools may take from this session now."""
        identity = self.identity
        return SessionContext(
            project_id=identity.project,
            location=identity.location,
            app_id=identity.app,
            session_id=identity.session,
            turn_index=self.turn_index,
            variables=self.state,
        )

    @property
    def language(self) -> str:
        """The language of the conversation: what the app set, else the app's default."""
        value = self.state.get(self.engine.settings.call.language_variable)
        return bidi.language_code(value) or self.engine.app.language

    def model_config(self, own: ModelConfig | None = None) -> ModelConfig:
        """Model and temperature: `own` ones, else the agent's, else the app's."""
        agent, app = self.agent.definition.model_settings, self.engine.app.definition.model_settings
        wishes = [wish for wish in (own, agent, app) if wish is not None]
        temperatures = (w.temperature for w in wishes if w.temperature is not None)
        return ModelConfig(
            model=next((wish.model for wish in wishes if wish.model), ""),
            temperature=next(temperatures, None),
        )

    def branch(self, agent: Agent) -> Conversation:
        """A conversation of its own over the same variables, for an agent that works as a tool."""
        branch = Conversation(
            self.engine,
            self.identity,
            agent,
            start_async=self.start_async,
            channel=self.channel,
            use_fakes=self.use_fakes,
            time_zone=self.time_zone,
            depth=self.depth + 1,
        )
        branch.state = self.state
        branch.turn_index = self.turn_index
        return branch

    def fallback_text(self) -> str:
        """What the caller hears in place of what failed."""
        return fallback_text(self)

    def ask_async(self, tool: Entry, args: dict[str, Any]) -> None:
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

    def add_model(self, parts: list[Part], author: str = "") -> Event:
        """Append what the agent (default: the one at work) said or asked for."""
        return self._add(author or self.agent.display_name, Content(parts=parts, role="model"))

    def add_responses(self, parts: list[Part]) -> Event:
        """Append what tools answered."""
        return self._add(self.agent.display_name, Content(parts=parts, role="user"))

    def _add(self, author: str, content: Content) -> Event:
        unix_s = int(self._epoch_s + asyncio.get_running_loop().time())
        return self.history.add(author, content, self.invocation_id, unix_s)

    # ---- instructions

    def system_instruction(self) -> str:
        """Global and agent instruction with static variables filled in, and the examples."""
        app = self.engine.app
        values = {**self._built_in(), **self.state}
        text = variables.substitute(prompt.instructions(app, self.agent), values)
        examples = prompt.examples(app, self.agent)
        return f"{text}\n\n{examples}" if text and examples else text or examples

    def _built_in(self) -> Mapping[str, str]:
        today = datetime.datetime.now(self.time_zone)
        return {CURRENT_DATE: f"{today:%A}, {today.day} {today:%B} {today.year}"}

    def note_changes(self) -> list[str]:
        """Note dynamic variables that changed since the model last heard; the texts it reads."""
        values = {**self._built_in(), **self.state}
        notes: list[str] = []
        names = variables.dynamic_names(prompt.instructions(self.engine.app, self.agent))
        for name in sorted(names & values.keys()):
            text = variables.state_update(name, values[name])
            if self._told.get(name) != text:
                self._told[name] = text
                notes.append(text)
        self.history.note(notes)
        return notes
