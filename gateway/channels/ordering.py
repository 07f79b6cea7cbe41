"""Audio messages that overtake one another, put in order by their numbers."""

from __future__ import annotations

from typing import Final

RESTART_GAP: Final = 500
"""A number so far behind is no late message but a new count."""


class Reorder:
    """Puts numbered pieces of audio in order; one that is missing is waited for, but not long.

    `wait`: how many later pieces may be there before the missing one is given up. What comes
    after that is dropped.
    """

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._next: int | None = None
        self._held: dict[int, bytes] = {}

    def put(self, number: int, data: bytes) -> list[bytes]:
        """Take one piece; what is in order now."""
        due = self._next
        if due is None or number < due - RESTART_GAP:
            self._held.clear()
            # Counts begin with 1; the first that comes need not be it.
            due = 1 if 0 < number <= self._wait + 1 else number
        elif number < due:
            return []
        self._held[number] = data
        out = self._take(due)
        if len(self._held) > self._wait:
            out += self._take(min(self._held))
        return out

    def _take(self, due: int) -> list[bytes]:
        out: list[bytes] = []
        while due in self._held:
            out.append(self._held.pop(due))
            due += 1
        self._next = due
        return out
