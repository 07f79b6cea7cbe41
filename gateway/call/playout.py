"""The playout queue and its clock: what is sent when, and what the caller has heard of it.

Time is cut into 20 ms slots counted from the call's start. A frame for slot n is *played* at
`origin + n × 20 ms` and *sent* up to `lead` earlier. Heard positions follow the slots; where the
platform has marks, an utterance is over only when its mark came back (or its grace ran out).
Every clear starts a new generation, and marks of an older one are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.audio import g711
from gateway.audio.formats import FRAME_MS, AudioFormat, Pcm
from gateway.audio.mixing import gain
from gateway.audio.native import audioop
from gateway.call.events import Action, SendAudio, ToChannel, UtteranceEnd
from gateway.call.utterance import Utterance
from gateway.channels.base import SendMark

FRAME_S = FRAME_MS / 1000
CATCH_UP_FRAMES = 10
"""Overdue frames that are sent at once after a late tick; beyond, the stream starts anew."""
IDLE_LEAD_S = 0.04
"""Lead of silence and of the ambient bed alone, kept short so that speech comes through it soon."""
UNKNOWN_LAG_S = 0.25
"""How late a mark is taken to be while none has come back yet."""
FULL_SCALE = 32767
EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True)
class PlayEvent:
    """An utterance started (`reason` None) or is over; `heard` in bytes of its PCM."""

    t: float
    utterance: Utterance
    reason: UtteranceEnd | None = None
    heard: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """What a cut did: the ends of the utterances, and what the platform must drop."""

    ends: list[PlayEvent]
    clear: bool
    unheard_ms: int
    heard_until: float = 0.0
    """Frames due from here on were not heard, where `clear` says that something was dropped."""


class Playout:
    """One queue of utterances for one call with output audio."""

    def __init__(
        self,
        audio_format: AudioFormat,
        *,
        origin: float,
        lead_s: float,
        native_marks: bool,
        native_clear: bool,
        mark_grace_s: float,
        continuous: bool,
    ) -> None:
        self.format = audio_format
        self.frame_bytes = audio_format.pcm_frame_bytes
        self.generation = 0
        self.queue: list[Utterance] = []
        """Utterances that are not over, in order."""
        self._origin = origin
        self._lead_s = lead_s
        self._native_marks = native_marks
        self._native_clear = native_clear
        self._mark_grace_s = mark_grace_s
        self._filling = continuous
        self._bed = b""
        self._bed_peak = 0
        self._next = 0
        self._dry = True
        self._waiting: tuple[Utterance, float] | None = None
        """The utterance whose audio is late, and since when."""
        self._lag_s: float | None = None
        self._turn = 0

    # ---- slots

    def due(self, slot: int) -> float:
        """When a slot's frame is played."""
        return self._origin + slot * FRAME_S

    def _slot_from(self, now: float) -> int:
        """The first slot that is not in the past."""
        return math.ceil((now - self._origin - EPSILON_S) / FRAME_S)

    def _slot_until(self, when: float) -> int:
        """The last slot due by `when`."""
        return math.floor((when - self._origin + EPSILON_S) / FRAME_S)

    # ---- audio in

    def set_bed(self, pcm: Pcm) -> None:
        """Mix this loop, at its final level, under the whole call."""
        self._bed = pcm[: len(pcm) & ~1]
        self._bed_peak = audioop.max(self._bed, 2) if self._bed else 0
        self._filling = self._filling or bool(self._bed)

    def add(self, utterance: Utterance) -> None:
        """Queue an utterance; its audio may come later."""
        self.queue.append(utterance)

    def find(self, utterance_id: int) -> Utterance | None:
        """The utterance, unless it is over."""
        return next((u for u in self.queue if u.id == utterance_id), None)

    def louder(self, utterance: Utterance, pcm: Pcm) -> Pcm:
        """`pcm` with the utterance's gain."""
        return gain(pcm, utterance.policy.gain_db)

    @property
    def buffered_s(self) -> float:
        """Seconds of audio in the queue that were not sent yet."""
        return sum(u.unsent_bytes for u in self.queue) / (2 * self.format.rate_hz)

    # ---- frames out

    def frames(self, now: float, out: list[Action]) -> None:
        """Append the frames (and marks) that are to be sent by `now`."""
        head = self._unsent_head(out)
        if head is None and not self._filling:
            self._dry = True
            self._waiting = None
            return
        if self._dry:
            self._next = max(self._next, self._slot_from(now))
            self._dry = False
        elif self._next < self._slot_until(now) - CATCH_UP_FRAMES:
            self._next = self._slot_from(now)
        last = self._slot_until(now + self._lead_s)
        last_idle = min(last, self._slot_until(now + IDLE_LEAD_S))
        encoding = self.format.encoding
        while self._next <= last:
            slot = self._next
            frame = head.take(slot) if head is not None else None
            if frame is not None and head is not None:
                self._turn = head.turn
                self._waiting = None
                if self._bed:
                    frame = self._over_bed(frame, slot)
                if head.exhausted:
                    out.append(SendAudio(g711.encode(frame, encoding), head.turn, self.due(slot)))
                    self._next = slot + 1
                    head = self._unsent_head(out)
                    continue
            else:
                if head is not None and (self._waiting is None or self._waiting[0] is not head):
                    self._waiting = (head, now)
                if not self._filling:
                    self._dry = True
                    return
                if slot > last_idle:
                    return
                frame = self._bed_frame(slot) if self._bed else bytes(self.frame_bytes)
            out.append(SendAudio(g711.encode(frame, encoding), self._turn, self.due(slot)))
            self._next = slot + 1

    def starving(self, now: float, limit_s: float) -> Utterance | None:
        """The utterance whose audio has kept the queue waiting for longer than `limit_s`."""
        if self._waiting is None or now - self._waiting[1] < limit_s:
            return None
        return self._waiting[0]

    def _unsent_head(self, out: list[Action]) -> Utterance | None:
        for utterance in self.queue:
            if utterance.sent:
                continue
            if not utterance.exhausted:
                return utterance
            utterance.sent = True
            if utterance.runs:
                run = utterance.runs[-1]
                utterance.end_slot = run.slot + run.frames
                if self._native_marks:
                    out.append(ToChannel(SendMark(f"{utterance.id}.{self.generation}")))
            else:
                # Nothing of it was sent in this generation: no mark will tell of its end.
                utterance.marked_back = True
        return None

    def _bed_frame(self, slot: int) -> Pcm:
        bed, size = self._bed, self.frame_bytes
        start = slot * size % len(bed)
        frame = bed[start : start + size]
        while len(frame) < size:
            frame += bed[: size - len(frame)]
        return frame

    def _over_bed(self, frame: Pcm, slot: int) -> Pcm:
        """Speech over the bed; the bed gives way where the sum would clip."""
        bed = self._bed_frame(slot)
        room = FULL_SCALE - audioop.max(frame, 2)
        if room < self._bed_peak:
            bed = audioop.mul(bed, 2, max(0, room) / self._bed_peak)
        return audioop.add(frame, bed, 2)

    # ---- what was heard

    @property
    def idle(self) -> bool:
        """Whether everything was heard."""
        return not self.queue

    def sent_turn(self, turn: int) -> bool:
        """Whether all of a turn that must be played was given to the platform."""
        return all(u.sent or u.policy.cancellable for u in self.queue if u.turn <= turn)

    def live(self, now: float) -> list[Utterance]:
        """The utterances that the caller has not heard to the end, by the clock."""
        return [u for u in self.queue if not self._over(u, now)]

    def sounding(self, now: float) -> Utterance | None:
        """The utterance that the caller hears now, a pause inside it included."""
        for utterance in self.queue:
            if not self._over(utterance, now):
                return utterance if utterance.started else None
        return None

    def _over(self, utterance: Utterance, now: float) -> bool:
        if not utterance.sent:
            return False
        tail_s = 0.0
        if self._native_marks and not utterance.marked_back:
            tail_s = UNKNOWN_LAG_S if self._lag_s is None else self._lag_s
        return now + EPSILON_S >= self.due(utterance.end_slot) + tail_s

    def heard(self, utterance: Utterance, now: float) -> int:
        """Bytes of an utterance that the caller has heard by the clock, less the known lag."""
        now -= self._lag_s or 0.0
        heard = utterance.base
        for run in utterance.runs:
            played_s = min(now - self.due(run.slot), run.frames * FRAME_S)
            if played_s <= 0:
                break
            played = round(played_s * self.format.rate_hz) * 2
            heard = run.position + min(played, run.frames * self.frame_bytes)
        return max(heard, utterance.base)

    def advance(self, now: float) -> list[PlayEvent]:
        """What has started or ended up to `now`, in order of time."""
        if not self.queue:
            return []
        events: list[PlayEvent] = []
        ended = 0
        for index, utterance in enumerate(self.queue):
            if not utterance.started and utterance.start_slot is not None:
                start = self.due(utterance.start_slot)
                if start > now + EPSILON_S:
                    break
                utterance.started = True
                events.append(PlayEvent(min(start, now), utterance))
            end = self._end(utterance, now) if index == ended else None
            if end is not None:
                events.append(end)
                ended += 1
            if not utterance.sent:
                break
        if ended:
            del self.queue[:ended]
        if len(events) > 1:
            events.sort(key=lambda event: event.t)
        return events

    def _end(self, utterance: Utterance, now: float) -> PlayEvent | None:
        if not utterance.sent:
            return None
        reason = UtteranceEnd.FAILED if utterance.failed else UtteranceEnd.COMPLETED
        if not utterance.started and not utterance.base:
            # It had no audio at all.
            return PlayEvent(now, utterance, reason, 0) if utterance.start_slot is None else None
        end = self.due(utterance.end_slot) if utterance.runs else now
        t = min(end, now)
        if self._native_marks:
            # A mark cannot truly be back before its audio had time to play.
            end += -FRAME_S if utterance.marked_back else self._mark_grace_s
            t = now
        if now + EPSILON_S < end:
            return None
        return PlayEvent(t, utterance, reason, utterance.position)

    def mark(self, name: str, now: float) -> None:
        """A mark came back; those of an older generation and unknown ones mean nothing."""
        number, dot, generation = name.partition(".")
        if not dot or generation != str(self.generation) or not number.isdecimal():
            return
        marked = self.find(int(number))
        if marked is None or not marked.sent or not marked.runs:
            return
        lag_s = max(0.0, now - self.due(marked.end_slot))
        self._lag_s = lag_s if self._lag_s is None else min(self._lag_s, lag_s)
        for utterance in self.queue:
            utterance.marked_back = True
            if utterance is marked:
                break

    # ---- cutting

    def cut(
        self, ends: Iterable[tuple[Utterance, UtteranceEnd]], now: float, *, by_caller: bool
    ) -> Cut:
        """Take utterances out of the queue at once; those that stay lose nothing.

        The platform is cleared where it holds audio of a cut one; a caller's interruption clears
        also where it only may hold some. What it held of the others is sent again from the
        position up to which it was heard.
        """
        events: list[PlayEvent] = []
        cut: set[Utterance] = set()
        unheard_cut = sounded = False
        for utterance, reason in ends:
            cut.add(utterance)
            sounded = sounded or utterance.started
            unheard_cut = unheard_cut or self._unheard_s(utterance, now) > 0
            events.append(PlayEvent(now, utterance, reason, self.heard(utterance, now)))
        clear = unheard_cut or (by_caller and sounded and self._native_clear)
        unheard_s = sum(self._unheard_s(u, now) for u in self.queue) if clear else 0.0
        self.queue = [u for u in self.queue if u not in cut]
        self._waiting = None
        if clear:
            self.generation += 1
            for utterance in self.queue:
                self._recover(utterance, now)
            self._next = self._slot_from(now)
            self._dry = True
        return Cut(events, clear, round(unheard_s * 1000), now - (self._lag_s or 0.0))

    def _unheard_s(self, utterance: Utterance, now: float) -> float:
        """Seconds of an utterance that the platform holds and has not played."""
        now -= self._lag_s or 0.0
        unheard_s = 0.0
        for run in reversed(utterance.runs):
            left_s = self.due(run.slot + run.frames) - max(now, self.due(run.slot))
            if left_s <= EPSILON_S:
                break
            unheard_s += left_s
        return unheard_s

    def _recover(self, utterance: Utterance, now: float) -> None:
        if not utterance.runs:
            return
        heard = self.heard(utterance, now)
        if utterance.sent and heard >= utterance.position:
            # All of it was played; its mark is lost with the clear.
            utterance.marked_back = True
            return
        utterance.rewind(heard)
