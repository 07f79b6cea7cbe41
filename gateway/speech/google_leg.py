"""One request of Google's recogniser, and the results that it has settled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import SpeechError
from gateway.speech.base import Heard


@dataclass(slots=True, eq=False)
class Leg:
    """One request of the service. Positions are bytes of the tape."""

    start: int
    cursor: int
    """Sent up to here."""
    settled: int
    """Words before this are final."""
    opened: int
    """How far the call was when it began."""
    end: int | None = None
    """Where it stops; None while it goes on."""
    again: bool = False
    """It repeats another that broke off after its end was known."""
    interim: str = ""
    answered: bool = False
    error: SpeechError | None = None
    fed: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def finish(self) -> None:
        """It is over: also for the library, which may go on to wait for audio."""
        self.done.set()
        self.fed.set()

    def cancel(self) -> None:
        """Break the request off; whoever waits goes on."""
        self.finish()
        if self.task is not None:
            self.task.cancel()


@dataclass(frozen=True, slots=True)
class Final:
    """A result that will not change: all of its words, and each where its time is known."""

    whole: Heard
    words: tuple[Heard, ...]

    def between(self, start_s: float, end_s: float) -> str:
        """The words that lie, at least in part, between two times."""
        inside = [w.text for w in self.words if w.end_s > start_s and w.start_s < end_s]
        if self.words and len(inside) < len(self.words):
            return join(inside)
        whole = self.whole
        return whole.text if whole.end_s > start_s and whole.start_s < end_s else ""


def best(result: Any) -> str:
    """The likeliest words of a result."""
    return str(result.alternatives[0].transcript).strip() if result.alternatives else ""


def join(texts: Iterable[str]) -> str:
    """Words of several results as one text."""
    return " ".join(text for text in texts if text)


def closed() -> SpeechError:
    """The error of a recognition that has ended."""
    return SpeechError("speech.closed", "the recognition has ended")
