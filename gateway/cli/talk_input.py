"""What a person types into `voice-gateway talk`: lines, and what each of them means."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway import bidi
from gateway.agent.app import App
from gateway.errors import ScenarioError

HELP: Final = "/dtmf 12#   /event NAME   /set name=value   /quit"
MAX_LINE_BYTES: Final = 1 << 20
_KEYS: Final = frozenset("0123456789*#ABCD")


@dataclass(frozen=True, slots=True)
class Said:
    """An input for the agent. `heard`: how its turn shows it; empty: no turn answers it."""

    message: Mapping[str, Any]
    heard: str = ""


@dataclass(frozen=True, slots=True)
class Quit:
    """The person leaves."""


def parse_line(line: str, app: App, finish_digit: str, where: str) -> Said | Quit | None:
    """What a line asks for; None for an empty one. Raises ScenarioError scenario.command."""
    words = line.strip()
    if not words.startswith("/"):
        return Said({"text": words}, words) if words else None
    command, _, rest = words.partition(" ")
    rest = rest.strip()
    if command == "/quit":
        return Quit()
    if command == "/dtmf":
        return _keys(rest.upper(), finish_digit, where)
    if command == "/event":
        if not rest:
            raise _wrong("/event names no event", where, "/event sys.remote-call-disconnected")
        return Said({"event": {"event": rest}}, bidi.event_text(rest))
    if command == "/set":
        return _variable(rest, app, where)
    raise _wrong(f"there is no command {command}", where, HELP)


def _keys(keys: str, finish_digit: str, where: str) -> Said:
    """Keys as a call collects them: up to the finish digit, which ends them unless it is alone."""
    if not keys or not set(keys) <= _KEYS:
        raise _wrong("/dtmf takes the keys 0-9 * # A-D", where, "/dtmf 12#")
    end = keys.find(finish_digit, 1) if finish_digit else -1
    if end > 0:
        keys = keys[:end]
    return Said({"dtmf": keys}, bidi.dtmf_text(keys))


def _variable(rest: str, app: App, where: str) -> Said:
    name, equals, value = (part.strip() for part in rest.partition("="))
    if not name or not equals:
        raise _wrong("/set takes name=value", where, "/set customer_name=Ann")
    known = sorted(app.variable_declarations)
    if name not in known:
        hint = f"It declares: {', '.join(known)}" if known else "It declares none."
        raise _wrong(f"the app declares no variable {name!r}", where, hint)
    return Said({"variables": {name: value}})


def _wrong(message: str, where: str, hint: str) -> ScenarioError:
    return ScenarioError("scenario.command", message, where=where, hint=hint)


class Lines:
    """Lines from a descriptor (terminal, pipe or file), read as they are asked for."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line; None at the end. Raises ScenarioError for one that has no end."""
        while b"\n" not in self._pending and not self._ended:
            if len(self._pending) > MAX_LINE_BYTES:
                raise ScenarioError("scenario.size", "a line is longer than 1 MiB", where="input")
            data = await self._read()
            self._ended = not data
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        if not line and self._ended and not self._pending:
            return None
        return line.decode("utf-8", "replace")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._descriptor, ready.set)
        except PermissionError:
            # A plain file cannot be waited for: it is always ready.
            return os.read(self._descriptor, 1 << 16)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._descriptor)
        return os.read(self._descriptor, 1 << 16)
