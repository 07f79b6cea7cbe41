"""One turn of the agent: what it says on the wire, and how it is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import orjson
import structlog

from gateway.agent.platform import AUDIO_MIME, CUSTOMIZED_MIME, JSON_MIME, PAYLOAD_MIMES, Part
from gateway.agent.size import TooLarge, check_size
from gateway.bidi import CUSTOMIZED_RESPONSE

T = TypeVar("T")

log = structlog.get_logger()

MAX_TEXT_CHARS = 100_000
"""For one text: two hours of speech."""
MAX_PAYLOAD_CHARS = 1 << 20
MAX_REPORT_CHARS = 4 << 20
_ANSWER = "the answer"

Send = Callable[[dict[str, Any]], Awaitable[None]]


class TurnCancelled(Exception):
    """The turn was cut short by new input; nothing of it may be sent any more."""


class Turn:
    """A turn with its index. Outputs stop at once when it is cancelled."""

    def __init__(
        self, index: int, send: Send, report: Callable[[], dict[str, Any]] | None = None
    ) -> None:
        """`report`: what the turn did, for its last output; None: nobody asks."""
        self.index = index
        self.cancelled = False
        self.said_anything = False
        self.broken_off = False
        """The model failed in the middle of what it said."""
        self.end_metadata: dict[str, Any] | None = None
        """Set by `end_session`: the session ends after this turn."""
        self._send = send
        self._report = report
        self._completed = False
        self._waiting: set[asyncio.Future[Any]] = set()

    async def cancel(self) -> None:
        """Stop the turn: whatever it waits for that is not app code, and all output."""
        if self.cancelled or self._completed:
            return
        self._stop_waiting()
        await self.complete()

    def abandon(self) -> None:
        """The session is over: stop what the turn waits for; nobody is told of its end."""
        self._completed = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self.cancelled = True
        for task in tuple(self._waiting):
            task.cancel()

    async def complete(self) -> None:
        """Send the last output of the turn; once."""
        if not self._completed:
            self._completed = True
            output: dict[str, Any] = {"turnIndex": self.index, "turnCompleted": True}
            if self._report is not None:
                try:
                    report = self._report()
                    check_size(report, "the report", MAX_REPORT_CHARS)
                    output["diagnosticInfo"] = report
                except TooLarge as error:
                    log.warning("turn.report_dropped", turn=self.index, **error.fields())
            await self._send({"sessionOutput": output})

    def check(self) -> None:
        """Raise TurnCancelled where the turn was cut short."""
        if self.cancelled:
            raise TurnCancelled

    async def interruptible(self, awaitable: Awaitable[T]) -> T:
        """Wait for something that a cancelled turn need not finish. Raises TurnCancelled."""
        task = asyncio.ensure_future(awaitable)
        self._waiting.add(task)
        try:
            if self.cancelled:
                task.cancel()
            return await task
        except asyncio.CancelledError:
            if self.cancelled:
                raise TurnCancelled from None
            task.cancel()
            raise
        finally:
            self._waiting.discard(task)

    async def emit(self, part: Part) -> None:
        """Send one part to the client. Raises TurnCancelled, or TooLarge."""
        self.check()
        output = output_of(part)
        if output is not None:
            self.said_anything = True
            await self._output(output)

    async def emit_tool_calls(self, calls: list[dict[str, Any]]) -> None:
        """Ask the client to run functions. Raises TurnCancelled, or TooLarge."""
        self.check()
        check_size(calls, "a call", MAX_PAYLOAD_CHARS)
        await self._output({"toolCalls": {"toolCalls": calls}})

    async def _output(self, output: dict[str, Any]) -> None:
        await self._send({"sessionOutput": {**output, "turnIndex": self.index}})


def clean_text(text: str) -> str:
    """Text that UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode()


def clean_json(value: Any) -> Any:
    """A value that JSON can carry, other objects as their text. Raises TooLarge."""
    check_size(value, _ANSWER)
    try:
        return orjson.loads(orjson.dumps(value, default=_text_of, option=orjson.OPT_NON_STR_KEYS))
    except (TypeError, ValueError):
        return clean_text(_text_of(value))


def clean_answer(value: Any) -> Any:
    """The same of what a tool answers; `{"error": …}` where it is too large."""
    try:
        return clean_json(value)
    except TooLarge as error:
        log.error("tool.answer_dropped", **error.fields())
        return {"error": str(error)}


def _text_of(value: Any) -> str:
    text = str(value)
    check_size(text, _ANSWER)
    return text


def output_of(part: Part) -> dict[str, Any] | None:
    """The member of `sessionOutput` that a part becomes; None where the client gets nothing.

    Raises TooLarge.
    """
    if part.text:
        check_size(part.text, "a text", MAX_TEXT_CHARS)
        return {"text": clean_text(part.text)}
    blob = part.inline_data
    if blob is None:
        return None
    if blob.mime_type in PAYLOAD_MIMES:
        check_size(blob.data, "a payload", MAX_PAYLOAD_CHARS)
    value = blob.json_value()
    if value is None:
        log.warning("agent.data_dropped", mime_type=blob.mime_type)
        return None
    if blob.mime_type == CUSTOMIZED_MIME:
        return {"payload": {CUSTOMIZED_RESPONSE: value}}
    if blob.mime_type in (JSON_MIME, AUDIO_MIME):
        return {"payload": value}
    return None
