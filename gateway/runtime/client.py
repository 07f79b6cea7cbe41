"""The client of an agent runtime's session, whoever runs it.

Keeps one session over one or more links: `goAway`, a planned renewal and a loss that can be mended
reconnect under the same session name with no second kick-off, and inputs given meanwhile are sent
on the new link.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.call.events import (
    InputType,
    RuntimeAudio,
    RuntimeOutput,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.errors import RuntimeFailure
from gateway.runtime.arrivals import is_loud
from gateway.runtime.link import RuntimeLink
from gateway.runtime.messages import (
    Incoming,
    RuntimeGoAway,
    outputs,
    realtime_input,
    session_config,
)
from gateway.runtime.watch import SILENT, LinkRules, LinkWatch, Verdict

QUEUE_SIZE = 256
"""Inputs waiting for a slow runtime. Beyond it the oldest audio goes; without any, one more input
ends the session (runtime.overflow)."""
MAX_RECONNECTS = 5
"""Links in a row that may be replaced while they are young."""
BACKOFF_S = 0.25

Connect = Callable[[], Awaitable[RuntimeLink]]
_Numbered = RuntimeText | RuntimePayload | RuntimeAudio | RuntimeToolCalls | RuntimeTurnCompleted


class RuntimeClient:
    """One session with a runtime."""

    def __init__(
        self,
        session: str,
        config: Mapping[str, Any],
        connect: Connect,
        rules: LinkRules | None = None,
    ) -> None:
        self._config = session_config(session, config)
        self._connect = connect
        self._rules = rules or LinkRules()
        self._watch = LinkWatch(self._rules)
        self._queue: deque[tuple[InputType, dict[str, Any]]] = deque()
        self._queued = asyncio.Event()
        self._unsent: dict[str, Any] | None = None
        self._link: RuntimeLink | None = None
        self._sender: asyncio.Task[None] | None = None
        self._closed = False
        self._turns = _Turns()
        self._hasty = 0

    async def open(self) -> None:
        """Connect and send the configuration. Raises RuntimeFailure."""
        self._link = await self._connect()
        if self._closed:
            await self._drop_link()
            return
        await self._link.send(self._config)
        self._watch.opened(self._now())
        self._turns.next_link()
        self._sender = asyncio.create_task(self._send_queued(self._link), name="runtime-sender")

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    # ---- to the runtime

    def send(self, item: ToRuntime) -> None:
        """Queue one input; order is kept. Raises RuntimeFailure when the queue is full."""
        if item.will_continue and not item.text and not self._rules.empty_fragments:
            return
        self._watch_input(item)
        if len(self._queue) >= QUEUE_SIZE and not self._forget_audio():
            raise RuntimeFailure("runtime.overflow", "the runtime takes no more input")
        self._queue.append((item.type, realtime_input(item)))
        self._queued.set()

    def _forget_audio(self) -> bool:
        for index, (kind, _) in enumerate(self._queue):
            if kind is InputType.AUDIO:
                del self._queue[index]
                return True
        return False

    def _watch_input(self, item: ToRuntime) -> None:
        now = self._now()
        if item.type is InputType.AUDIO:
            if (self._rules.silence_s or self._watch.renewing(now)) and self._is_speech(
                item.audio, "inputAudioConfig"
            ):
                self._watch.active(now)
                self._watch.asked(now)
        elif item.type is not InputType.VARIABLES:
            self._watch.asked(now)

    def _is_speech(self, audio: bytes, config: str) -> bool:
        wanted = self._config["config"].get(config)
        return wanted is not None and is_loud(g711.decode(audio, Encoding(wanted["audioEncoding"])))

    async def _send_queued(self, link: RuntimeLink) -> None:
        while True:
            while self._unsent is None:
                if self._queue:
                    self._unsent = self._queue.popleft()[1]
                else:
                    self._queued.clear()
                    await self._queued.wait()
            try:
                await link.send(self._unsent)
            except RuntimeFailure:
                # The receiving side meets the same loss and tells the call; on another link the
                # next sender begins with this message.
                return
            self._unsent = None

    # ---- from the runtime

    async def outputs(self) -> AsyncIterator[RuntimeOutput]:
        """What the runtime says, until it closes. Raises RuntimeFailure when it is lost."""
        while self._link is not None:
            try:
                message = await self._receive(self._link)
            except RuntimeFailure as error:
                if error.code not in self._rules.resumed or not self._watch.heard:
                    raise
                found: Sequence[Incoming] = [RuntimeGoAway()]
            else:
                if message is None:
                    return
                found = outputs(message)
                self._note(found)
            for item in found:
                if isinstance(item, RuntimeGoAway):
                    await self._next_link()
                    if self._watch.open_turn is not None:
                        # What is to come of it comes under another number, if at all.
                        yield RuntimeTurnCompleted(self._turns.last)
                        self._watch.open_turn = None
                    break
                yield self._turns.numbered(item)

    def _note(self, found: Sequence[Incoming]) -> None:
        now = self._now()
        self._watch.message(found, now)
        if self._watch.renewing(now):
            # Whoever speaks now must not be cut off by a change of links.
            for item in found:
                if isinstance(item, RuntimeAudio) and self._is_speech(
                    item.pcm, "outputAudioConfig"
                ):
                    self._watch.active(now)

    async def _receive(self, link: RuntimeLink) -> dict[str, Any] | None:
        """The next message; a goAway of our own where the link is to be replaced."""
        while True:
            verdict = self._watch.verdict(self._now())
            if verdict is Verdict.DEAD:
                # Once another link is tried; one that was silent from its beginning is the end.
                raise RuntimeFailure(SILENT, "the runtime has fallen silent")
            if verdict is Verdict.RENEW:
                return {"goAway": {}}
            try:
                async with asyncio.timeout(self._watch.wait_s(self._now())):
                    return await link.receive()
            except TimeoutError:
                continue

    # ---- links

    async def _next_link(self) -> None:
        self._hasty = self._hasty + 1 if self._watch.hasty(self._now()) else 0
        if self._hasty > MAX_RECONNECTS:
            raise RuntimeFailure("runtime.go_away", "the runtime keeps sending us away")
        await self._drop_link()
        for attempt in range(1, self._rules.attempts + 1):
            if self._closed:
                return
            try:
                await self.open()
                return
            except RuntimeFailure as error:
                if attempt == self._rules.attempts or error.code not in self._rules.resumed:
                    raise
            await self._drop_link()
            await asyncio.sleep(BACKOFF_S * 2**attempt)

    async def _drop_link(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
            self._sender = None
        if self._link is not None:
            link, self._link = self._link, None
            await link.aclose()

    async def aclose(self) -> None:
        """Close the link; bounded; never raises."""
        self._closed = True
        await self._drop_link()


class _Turns:
    """Numbers of turns that grow over all links, also where a runtime counts anew on each."""

    def __init__(self) -> None:
        self.last = 0
        self._added = 0
        self._settled = False

    def next_link(self) -> None:
        """Numbers come from another link."""
        self._settled = False

    def numbered(self, item: RuntimeOutput) -> RuntimeOutput:
        """An output under the number that the call knows its turn by."""
        if not isinstance(item, _Numbered) or not item.turn:
            return item
        if not self._settled:
            self._settled = True
            self._added = self.last if item.turn <= self.last else 0
        turn = item.turn + self._added
        self.last = max(self.last, turn)
        return replace(item, turn=turn) if self._added else item
