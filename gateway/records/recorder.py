"""The recorder of one live call: takes what happens on the media loop and holds it for the writer.

Nothing here waits or touches a disk: bytes and facts are put into lists that another thread
empties. Appending to a list and cutting off its head are single steps of the interpreter, so the
two threads need no lock between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.records.entries import HEAD, Kind

MAX_NOTES = 10_000
"""Notes that wait to be written; one more is lost and counted."""
NOTED = frozenset(
    {
        "call_started",
        "user_speech_started",
        "user_speech_ended",
        "user_text",
        "dtmf",
        "utterance_queued",
        "utterance_started",
        "utterance_ended",
        "barge_in",
        "transfer",
        "inactivity",
        "error",
        "call_ended",
    }
)
"""Kinds of timeline lines that a transcript is made of."""

_PACK = HEAD.pack
_CALLER, _AGENT = Kind.CALLER, Kind.AGENT

Note = tuple[float, str, Mapping[str, Any]]


class CallRecorder:
    """Holds frames and notes of a call until they are taken. Times are the engine's clock.

    At most `max_frames` frames wait; what comes while they do is lost, counted in `lost_frames`,
    and silent in the recording.
    """

    __slots__ = (
        "_limit",
        "_notes",
        "_parts",
        "audio",
        "ended_at",
        "lost_frames",
        "lost_notes",
        "lost_writes",
        "on_end",
        "spill",
    )

    def __init__(self, *, audio: bool, max_frames: int) -> None:
        self.audio = audio
        """Whether sound is kept, not only words."""
        self._limit = 2 * max_frames if audio else 0
        self._parts: list[bytes] = []
        """Head and payload in turn: half as many entries as parts."""
        self._notes: list[Note] = []
        self.on_end: Callable[[], object] | None = None
        """Called once, when the call is over."""
        self.spill: Callable[[], object] | None = None
        """Where no thread writes: called to write on the spot what waits."""
        self.ended_at: float | None = None
        self.lost_frames = 0
        self.lost_notes = 0
        self.lost_writes = 0
        """Stretches that the disk did not take."""

    # ---- on the media loop

    def caller(self, data: bytes, now: float) -> None:
        """Audio of the caller that came at `now`, encoded as the line's input. Hot path."""
        parts = self._parts
        if len(parts) < self._limit:
            parts.append(_PACK(_CALLER, len(data), now))
            parts.append(data)
        elif self._room():
            self.caller(data, now)

    def agent(self, data: bytes, due: float) -> None:
        """Audio that the caller hears from `due` on, encoded as the line's output. Hot path."""
        parts = self._parts
        if len(parts) < self._limit:
            parts.append(_PACK(_AGENT, len(data), due))
            parts.append(data)
        elif self._room():
            self.agent(data, due)

    def unheard(self, since: float) -> None:
        """Agent audio given before this, but due from `since` on, was never heard."""
        if self.audio:
            self._parts += (HEAD.pack(Kind.UNHEARD, 0, since), b"")

    def key(self, now: float) -> None:
        """A telephone key was pressed: its tone may be in the caller's audio."""
        if self.audio:
            self._parts += (HEAD.pack(Kind.KEY, 0, now), b"")

    def note(self, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """A line of the timeline."""
        if kind not in NOTED:
            return
        if len(self._notes) >= MAX_NOTES:
            self.lost_notes += 1
        else:
            self._notes.append((t, kind, fields))

    def end(self, now: float) -> None:
        """The call is over; nothing more comes."""
        if self.ended_at is None:
            self.ended_at = now
            if self.on_end is not None:
                self.on_end()

    def _room(self) -> bool:
        """Make room for a frame where that can be done here; else it is lost."""
        if not self.audio:
            return False
        if self.spill is None:
            self.lost_frames += 1
            return False
        self.spill()
        return True

    # ---- in the writer's thread

    def take_audio(self) -> bytes:
        """Everything since the last time, as entries of a spool file."""
        parts = self._parts
        # Never between a head and its payload.
        count = len(parts) & ~1
        if not count:
            return b""
        taken = b"".join(parts[:count])
        del parts[:count]
        return taken

    def take_notes(self) -> list[Note]:
        """Everything since the last time."""
        notes = self._notes
        taken = notes[: len(notes)]
        del notes[: len(taken)]
        return taken
