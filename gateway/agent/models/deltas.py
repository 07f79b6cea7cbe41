"""A streamed chat completion put together: server-sent events, deltas of texts and of calls.

Servers differ: arguments of a call come whole or in pieces, as text or as an object; ids and
indexes may be missing or all the same; thoughts may stand among the words.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_EVENT_BYTES = 4 << 20
OPEN_THOUGHT, CLOSE_THOUGHT = "<think>", "</think>"


class StreamError(ValueError):
    """What came is no stream of events."""


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each server-sent event. Raises StreamError where one grows beyond all bounds."""
    buffer = bytearray()
    data: list[str] = []
    size = 0
    begun = False
    async for piece in pieces:
        buffer += piece
        if not begun and len(buffer) >= len(BOM_UTF8):
            buffer, begun = buffer.removeprefix(BOM_UTF8), True
        if len(buffer) + size > MAX_EVENT_BYTES:
            raise StreamError("an event without an end")
        *lines, rest = bytes(buffer).replace(b"\r\n", b"\n").split(b"\n")
        # A carriage return at the very end may be half of a line break.
        buffer = bytearray(rest)
        for line in lines:
            text = line.decode("utf-8", "replace")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
                size += len(line)
            elif not text and data:
                yield "\n".join(data)
                data, size = [], 0
    last = bytes(buffer).decode("utf-8", "replace").strip()
    if last.startswith("data:"):
        data.append(last[5:].removeprefix(" "))
    if data:
        yield "\n".join(data)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    kept: Any = None

    @property
    def whole(self) -> bool:
        """Whether the arguments are a JSON value, so that no piece can be missing."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that the model asks for. `fault`: why its arguments cannot be read."""

    name: str
    args: dict[str, Any]
    fault: str | None = None
    kept: Any = None


class Deltas:
    """Puts the deltas of one answer together."""

    def __init__(self) -> None:
        self.finish_reason = ""
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._words = _Words()

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk in; the words to be said that it adds."""
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return ""
        self.finish_reason = str(choice.get("finish_reason") or self.finish_reason)
        # A server that does not stream answers with the whole message.
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, Mapping):
            return ""
        asked = delta.get("tool_calls")
        for one in asked if isinstance(asked, list) else ():
            if isinstance(one, Mapping):
                self._call(one, one.get("function"))
        self._call(delta, delta.get("function_call"))
        # A refusal stands in a field of its own; it is the model's words all the same.
        return self._words.add(_text(delta.get("content")) or _text(delta.get("refusal")))

    def rest(self) -> str:
        """Words that were held back."""
        return self._words.rest()

    def calls(self) -> list[AskedCall]:
        """All calls, once the answer is over."""
        return [_asked(call) for call in self._calls]

    def _call(self, entry: Mapping[str, Any], function: Any) -> None:
        if not isinstance(function, Mapping):
            return
        index, call_id = entry.get("index"), str(entry.get("id") or "")
        name = str(function.get("name") or "")
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments)
        if isinstance(index, int):
            call = self._by_index.get(index)
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or _is_another(call, call_id, name):
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += arguments if isinstance(arguments, str) else ""
        call.kept = entry.get("extra_content") or call.kept


def _is_another(call: _Call, call_id: str, name: str) -> bool:
    """Whether a delta begins a call of its own although it points at this one."""
    if call_id and call.id:
        return call_id != call.id
    return bool(name and call.name and call.whole)


def _asked(call: _Call) -> AskedCall:
    try:
        args = json.loads(call.arguments) if call.arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        fault = f"the arguments are not JSON: {error}; call again with a JSON object"
        return AskedCall(call.name, {}, fault, call.kept)
    if args is None:
        args = {}
    if not isinstance(args, dict):
        fault = "the arguments are no JSON object; call again with one"
        return AskedCall(call.name, {}, fault, call.kept)
    return AskedCall(call.name, args, None, call.kept)


def _text(content: Any) -> str:
    """Text, or a list of pieces of it."""
    if isinstance(content, str):
        return content
    pieces = content if isinstance(content, list) else ()
    return "".join(str(p.get("text") or "") for p in pieces if isinstance(p, Mapping))


class _Words:
    """The words of an answer without the thoughts that some models write before them."""

    def __init__(self) -> None:
        self._held = ""
        self._begun = False
        self._thinking = False

    def add(self, text: str) -> str:
        """The words that can be said now."""
        if self._begun:
            return text
        self._held += text
        if self._thinking:
            _, closed, after = self._held.partition(CLOSE_THOUGHT)
            if not closed:
                return ""
            self._held, self._thinking = after, False
        start = self._held.lstrip()
        if start.startswith(OPEN_THOUGHT):
            self._held, self._thinking = start[len(OPEN_THOUGHT) :], True
            return self.add("")
        if not start or OPEN_THOUGHT.startswith(start):
            return ""
        self._begun, self._held = True, ""
        return start

    def rest(self) -> str:
        """What was held back for it might have begun a thought."""
        held, self._held = self._held, ""
        return "" if self._thinking else held
