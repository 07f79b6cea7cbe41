"""One BidiRunSession as a server: inputs, turns, interruption, end.

`serve_link` serves one connection. A session outlives its connection for a while when a
`SessionStore` is given, so that the client may take it up again by the same name.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import structlog

from gateway import bidi
from gateway.agent import failures, inputs, loop, variables
from gateway.agent.app.models import App
from gateway.agent.build import build_engine
from gateway.agent.conversation import Conversation, Engine
from gateway.agent.diagnostics import turn_report
from gateway.agent.historical import Past
from gateway.agent.link import Link
from gateway.agent.platform import Part
from gateway.agent.runner import CodeRunner
from gateway.agent.store import SessionStore
from gateway.agent.tools.catalog import Entry, Kind
from gateway.agent.tools.client import ClientCalls
from gateway.agent.tools.execute import run_async
from gateway.agent.turn import Turn, TurnCancelled, clean_answer
from gateway.config import Settings
from gateway.errors import GatewayError, ProtocolError

log = structlog.get_logger()

MAX_UNSENT = 256
MAX_PENDING_PARTS = 1000
MAX_ASYNC = 16
CLOSE_WAIT_S = 5.0
"""How long the client may take to close after `endSession`."""
SEND_TIMEOUT_S = 10.0
OPEN_TURN_S = 15.0
"""How long a turn that the caller has opened and not completed holds back the agent's own turns."""


class AgentSession:
    """One session: its conversation, its turns and the connection it speaks over, if any."""

    def __init__(self, engine: Engine, config: inputs.Config, channel: str = "") -> None:
        self.name = config.session
        self.ended = asyncio.Event()
        self._engine = engine
        self._conversation = Conversation(
            engine,
            config.identity,
            self._entry_agent(engine.app, config),
            start_async=self._start_async,
            channel=channel,
            use_fakes=config.use_fakes or engine.settings.tools.fakes,
            time_zone=config.time_zone or inputs.zone_of(engine.app),
        )
        self._client = ClientCalls()
        self._language = engine.app.language
        self._link: Link | None = None
        self._unsent: list[dict[str, Any]] = []
        self._turn: Turn | None = None
        self._open: list[Part] = []
        self._is_open = False
        self._pending: list[Part] = []
        self._ready = False
        self._hangup = False
        self._finished_async: list[Part] = []
        self._wake = asyncio.Event()
        self._async_tasks: set[asyncio.Task[None]] = set()
        self._open_timer: asyncio.TimerHandle | None = None
        for past in config.history:
            self._remember(past)
        self._pump_task = asyncio.create_task(self._pump())

    @staticmethod
    def _entry_agent(app: App, config: inputs.Config) -> Any:
        if not config.entry_agent:
            return app.root_agent
        for agent in app.agents.values():
            if config.entry_agent in (agent.display_name, agent.definition.name):
                return agent
        raise inputs.invalid("the app has no such entryAgent", "config.entryAgent")

    def _remember(self, past: Past) -> None:
        """Take one stretch of what was said before this session."""
        conversation, app = self._conversation, self._engine.app
        if past.variables:
            conversation.state.update(variables.accepted(app, past.variables))
        elif past.transfer:
            conversation.agent = app.agents.get(past.transfer, conversation.agent)
        elif past.role == "user":
            conversation.add_user(list(past.parts))
        elif past.tools:
            conversation.add_responses(list(past.parts))
        else:
            conversation.add_model(list(past.parts), author=past.role)

    # ---- connection

    async def attach(self, link: Link) -> None:
        """Speak over this connection from now on; what could not be sent before goes out."""
        old, self._link = self._link, link
        if old is not None:
            await old.aclose(1000, "the session goes on elsewhere")
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            await self._send(message)

    def detach(self, link: Link) -> bool:
        """The connection is gone. True where it was the current one."""
        if self._link is not link:
            return False
        self._link = None
        return True

    async def _send(self, message: dict[str, Any]) -> None:
        link = self._link
        if link is None:
            # The oldest go first: what a client that comes back needs most is the latest.
            self._unsent = [*self._unsent[-(MAX_UNSENT - 1) :], message]
            return
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await link.send(message)
        except TimeoutError:
            log.error("session.client_does_not_read", session=self._id)
            self._link = None
            await link.aclose(1008, "the client does not read")

    @property
    def _id(self) -> str:
        return self._conversation.identity.session

    async def aclose(self) -> None:
        """End everything that the session runs."""
        self.ended.set()
        if self._open_timer is not None:
            self._open_timer.cancel()
        if self._turn is not None:
            # App code may wait, in a thread of its own, for something that will never come.
            self._turn.abandon()
        tasks = [self._pump_task, *self._async_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- inputs

    async def take(self, message: dict[str, Any]) -> None:
        """Act on one message of the client. Raises ProtocolError."""
        given = inputs.read_input(message)
        if self.ended.is_set():
            return
        if isinstance(given, inputs.SetVariables):
            self._conversation.state.update(variables.accepted(self._engine.app, given.values))
        elif isinstance(given, inputs.ToolAnswers):
            self._client.answer(given.items)
        else:
            await self._take_user(given)

    async def _take_user(self, given: inputs.UserInput) -> None:
        if len(self._open) + len(self._pending) + len(given.parts) > MAX_PENDING_PARTS:
            raise ProtocolError(
                "protocol.flood", "too much input before the agent could answer", close_code=1008
            )
        self._open.extend(given.parts)
        if given.complete:
            self._close_open()
            self._pending.extend(self._open)
            self._open = []
            self._hangup = self._hangup or given.hangup
            self._ready = True
        elif not self._is_open:
            self._is_open = True
            running = asyncio.get_running_loop()
            self._open_timer = running.call_later(OPEN_TURN_S, self._close_open)
        # The caller's turn begins: whatever the agent was saying or thinking is over.
        if self._turn is not None:
            await self._turn.cancel()
        self._wake.set()

    def _close_open(self) -> None:
        self._is_open = False
        if self._open_timer is not None:
            self._open_timer.cancel()
            self._open_timer = None
        self._wake.set()

    # ---- turns

    async def _pump(self) -> None:
        while not self.ended.is_set():
            await self._wake.wait()
            self._wake.clear()
            while (parts := self._next_input()) is not None:
                hangup, self._hangup = self._hangup, False
                await self._run(parts, hangup)
                if self.ended.is_set():
                    return

    def _next_input(self) -> list[Part] | None:
        """The parts that the next turn answers; None: nothing to do now."""
        if not self._ready and (self._is_open or not self._finished_async):
            return None
        parts = [*self._finished_async, *self._pending]
        self._finished_async, self._pending, self._ready = [], [], False
        return parts

    async def _run(self, parts: list[Part], hangup: bool) -> None:
        conversation = self._conversation
        conversation.turn_index += 1
        told = self._engine.settings.runtime.diagnostics
        report = turn_report(conversation) if told else None
        turn = self._turn = Turn(conversation.turn_index, self._say, report)
        try:
            await loop.run_turn(conversation, turn, self._client, parts)
        except TurnCancelled:
            log.debug("turn.cut_short", session=self._id, turn=turn.index)
        except Exception as error:
            expected = error if isinstance(error, GatewayError) else None
            fields = expected.fields() if expected else {"code": "internal.turn"}
            log.error(
                "turn.failed",
                session=self._id,
                turn=turn.index,
                exc_info=expected is None,
                **fields,
            )
            await self._say_sorry(turn)
        finally:
            self._turn = None
        await turn.complete()
        if turn.end_metadata is not None:
            await self._end(turn.end_metadata)
        elif hangup:
            await self._end({"reason": "remote_disconnected"})

    async def _say(self, message: dict[str, Any]) -> None:
        """Send an output of a turn, after the language that it is in where that has changed."""
        variable = self._engine.settings.call.language_variable
        language = bidi.language_code(self._conversation.state.get(variable))
        if language and language != self._language:
            self._language = language
            turn = message["sessionOutput"]["turnIndex"]
            payload = {bidi.SESSION_LANGUAGE: language}
            await self._send({"sessionOutput": {"payload": payload, "turnIndex": turn}})
        await self._send(message)

    async def _say_sorry(self, turn: Turn) -> None:
        try:
            await failures.apologise(self._conversation, turn)
        except TurnCancelled:
            log.debug("turn.cut_short", session=self._id, turn=turn.index)

    async def _end(self, metadata: dict[str, Any]) -> None:
        await self._send({"endSession": {"metadata": metadata}})
        self.ended.set()

    # ---- asynchronous tools

    def _start_async(self, tool: Entry, args: dict[str, Any], call_id: str) -> None:
        if len(self._async_tasks) >= MAX_ASYNC:
            self._finish_async(tool, {"error": "too many asynchronous tools are running"}, False)
            return
        task = asyncio.create_task(self._run_async(tool, args, call_id))
        self._async_tasks.add(task)
        task.add_done_callback(self._async_tasks.discard)

    async def _run_async(self, tool: Entry, args: dict[str, Any], call_id: str) -> None:
        # The caller's next words cut short the turn that has started it, and not this one.
        turn = Turn(self._conversation.turn_index, self._say)
        value, good = await run_async(self._conversation, turn, self._client, tool, args, call_id)
        wrapped = good and tool.kind is not Kind.AGENT
        self._finish_async(tool, {"result": value} if wrapped else value, good)

    def _finish_async(self, tool: Entry, response: dict[str, Any], good: bool) -> None:
        outcome = "completed with response" if good else "failed with error"
        text = json.dumps(clean_answer(response), ensure_ascii=False)
        words = f"function [{tool.name}] {outcome} {text}"
        self._finished_async.append(Part(text=bidi.context_text(words)))
        self._wake.set()


async def serve_link(
    link: Link,
    app: App,
    settings: Settings,
    runner: CodeRunner,
    store: SessionStore | None = None,
    engine: Engine | None = None,
    channel: str = "",
) -> None:
    """Serve one connection until it closes; then the link is closed too.

    Without a `store` the session ends with the link. `channel`: the dialect by which the caller
    came. `engine` saves building it again for each
    connection. Raises AppError where the app cannot run; a client's faults close the link.
    """
    own = build_engine(app, settings, runner) if engine is None else None
    engine = engine or own
    assert engine is not None
    session: AgentSession | None = None
    sessions = store if store is not None else SessionStore(keep_s=0.0)
    try:
        message = await link.receive()
        if message is None:
            return
        config = inputs.read_config(message)
        session = sessions.take_up(config.session)
        if session is None or session.ended.is_set():
            session = AgentSession(engine, config, channel)
            sessions.add(session)
        await session.attach(link)
        await _serve(session, link)
    except ProtocolError as error:
        await link.aclose(error.close_code, close_reason(error))
    finally:
        await link.aclose()
        if session is not None:
            if session.ended.is_set() or store is None:
                await sessions.close(session)
            elif session.detach(link):
                sessions.keep(session)
        if own is not None:
            await own.model.aclose()


async def _serve(session: AgentSession, link: Link) -> None:
    """Take messages until the link closes, or the session has ended and its client had time."""
    reading = asyncio.create_task(_read(session, link))
    ending = asyncio.create_task(session.ended.wait())
    try:
        await asyncio.wait((reading, ending), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            await asyncio.wait((reading,), timeout=CLOSE_WAIT_S)
        if reading.done():
            reading.result()
    finally:
        for task in (reading, ending):
            task.cancel()
        await asyncio.gather(reading, ending, return_exceptions=True)


async def _read(session: AgentSession, link: Link) -> None:
    while (message := await link.receive()) is not None:
        await session.take(message)


def close_reason(error: ProtocolError) -> str:
    """The websocket close reason of a client's fault, at most 123 bytes."""
    code = "resource_exhausted" if error.close_code == 1008 else "invalid_argument"
    text = f"generic::{code}: {error.message}"
    return text.encode()[:123].decode("utf-8", "ignore")
