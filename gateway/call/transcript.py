"""What was really heard, by both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Speaker(StrEnum):
    """Who spoke."""

    AGENT = "agent"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class Line:
    """One stretch of speech; `t` in seconds of the engine's clock, at its end."""

    t: float
    speaker: Speaker
    text: str
    turn: int


class Transcript:
    """The lines of a call in the order in which they were heard."""

    __slots__ = ("_limit", "_lines")

    def __init__(self, limit: int = 10_000) -> None:
        self._lines: list[Line] = []
        self._limit = limit

    @property
    def lines(self) -> Sequence[Line]:
        """All lines; of a call without end, the first `limit`."""
        return self._lines

    def add(self, t: float, speaker: Speaker, text: str, turn: int) -> None:
        """Append what was heard; empty text is nothing."""
        if text and len(self._lines) < self._limit:
            self._lines.append(Line(t, speaker, text, turn))

    def heard_in_turn(self, turn: int) -> str:
        """What the caller heard of an agent turn in utterances that are over."""
        said = [
            line.text
            for line in reversed(self._lines[-256:])
            if line.turn == turn and line.speaker is Speaker.AGENT
        ]
        return " ".join(reversed(said))


def heard_words(text: str, share: float) -> str:
    """The start of `text` that was heard when `share` (0..1) of its sound was: whole words."""
    text = text.strip()
    if share >= 1.0:
        return text
    count = int(len(text) * max(0.0, share))
    if count <= 0:
        return ""
    if text[count].isspace() or text[count - 1].isspace():
        return text[:count].rstrip()
    head = text[:count]
    cut = max((i for i, c in enumerate(head) if c.isspace()), default=0)
    return head[:cut].rstrip()
