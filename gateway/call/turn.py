"""Whose turn it is: which agent turn is open, and which outputs are too late to be played."""

from __future__ import annotations

import math


class Turn:
    """The runtime's turns as the call sees them. Turn indices grow; 0 is "not said"."""

    __slots__ = (
        "_completed",
        "_deadline",
        "_open",
        "_stale_upto",
        "_timeout_s",
        "_waiting_after",
        "any_completed",
        "caller_open",
        "completed_at",
        "last",
        "last_output_at",
    )

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._open: int | None = None
        self._completed = 0
        self._stale_upto = 0
        self._waiting_after: int | None = None
        self._deadline: float | None = None
        self.last = 0
        """Highest turn index seen."""
        self.last_output_at = 0.0
        self.any_completed = False
        self.completed_at = -math.inf
        self.caller_open = False
        """An interruption was sent; the caller's words that complete it are still to come."""

    @property
    def is_open(self) -> bool:
        """Whether the runtime owes an answer or is in the middle of one."""
        return self._waiting_after is not None or self._open is not None

    @property
    def speaking(self) -> bool:
        """Whether a turn with outputs has not been completed."""
        return self._open is not None

    def is_turn_open(self, turn: int) -> bool:
        """Whether this very turn may still bring outputs."""
        return self._open == turn

    def asked(self, now: float) -> None:
        """The runtime was given an input that it answers."""
        self.caller_open = False
        self._waiting_after = self.last
        self._deadline = now + self._timeout_s

    def output(self, turn: int, now: float) -> bool:
        """An output of `turn` arrived; false where it belongs to an interrupted turn."""
        # An index that was never said (0) cannot be told to be old.
        if 0 < turn <= self._stale_upto:
            return False
        self.last = max(self.last, turn)
        self._open = turn
        if self._waiting_after is not None and turn > self._waiting_after:
            self._waiting_after = None
        self.last_output_at = now
        self._deadline = now + self._timeout_s
        return True

    def completed(self, turn: int, now: float) -> bool:
        """`turn` is complete; false where that was known already."""
        closes = self._open is not None and (turn == 0 or self._open <= turn)
        if 0 < turn <= self._completed and not closes:
            return False
        self.last = max(self.last, turn)
        self._completed = max(self._completed, turn)
        self.any_completed = True
        self.completed_at = now
        if closes:
            self._open = None
        if self._waiting_after is not None and (turn > self._waiting_after or turn == 0):
            self._waiting_after = None
        self._deadline = now + self._timeout_s if self.is_open else None
        return True

    def interrupted(self, caller: bool) -> None:
        """What was said so far is void. `caller`: the caller's words are still to come."""
        self._stale_upto = self.last
        self._open = None
        self._waiting_after = None
        self._deadline = None
        self.caller_open = caller

    def session_over(self) -> None:
        """The runtime ended its session: nothing that was asked will be answered."""
        self._waiting_after = None
        self._deadline = None

    def timed_out(self, now: float) -> bool:
        """Whether the runtime has been silent for too long in an open turn."""
        return self._deadline is not None and now >= self._deadline
