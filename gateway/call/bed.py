"""The sound under a call: a loop that follows the slots of the playout clock."""

from __future__ import annotations

from gateway.audio import limiting
from gateway.audio.fades import fade_in, fade_out
from gateway.audio.formats import Pcm


class Bed:
    """An ambient loop at its final level. `whole_call`: also between the agent's words."""

    __slots__ = ("_frame_bytes", "_loop", "_on", "whole_call")

    def __init__(self, loop: Pcm, frame_bytes: int, whole_call: bool) -> None:
        self._loop = loop[: len(loop) & ~1]
        self._frame_bytes = frame_bytes
        self._on = whole_call
        self.whole_call = whole_call

    @property
    def rings(self) -> bool:
        """Whether it sounds now, and would break off if no frame followed."""
        return self._on and not self.whole_call

    def alone(self, slot: int) -> Pcm:
        """A frame of nothing but the bed."""
        loop, size = self._loop, self._frame_bytes
        start = slot * size % len(loop)
        frame = loop[start : start + size]
        while len(frame) < size:
            frame += loop[: size - len(frame)]
        return frame

    def under(self, frame: Pcm, slot: int) -> Pcm:
        """A frame of the agent's with the bed under it; where it begins, it fades in."""
        bed = self.alone(slot)
        if not self._on:
            self._on = True
            bed = fade_in(bed)
        return limiting.add(frame, bed)

    def leave(self, slot: int) -> Pcm:
        """The last frame of a bed that sounds only under speech."""
        self._on = False
        return fade_out(self.alone(slot))
