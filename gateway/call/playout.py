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

from gateway.audio import g711, limiting
from gateway.audio.fades import fade_out
from gateway.audio.formats import FRAME_MS, AudioFormat, Pcm
from gateway.audio.native import audioop
from gateway.call.bed import Bed
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
EPSILON_S = 1e-6
MAX_INTERRUPTION_FADE_MS = 20.0
"""Longest fade of what a caller interrupts."""
QUIET_TAIL = 64
"""What peaks lower (-54 dBFS) breaks off without a click; its fade is left out."""


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
        fade_ms: float = 0.0,
        idle_marks: bool = False,
        message_s: float = FRAME_S,
    ) -> None:
        self.format = audio_format
        self.frame_bytes = audio_format.pcm_frame_bytes
        self.generation = 0
        self.queue: list[Utterance] = []
        """Utterances that are not over, in order."""
        self._origin = origin
        # Frames that are gathered to longer messages must be there before the first is due.
        gathering_s = message_s + 2 * FRAME_S if message_s > FRAME_S else 0.0
        self._lead_s = max(lead_s, gathering_s)
        self._idle_lead_s = max(IDLE_LEAD_S, gathering_s)
        self._native_marks = native_marks
        self._idle_marks = idle_marks
        self._native_clear = native_clear
        self._mark_grace_s = mark_grace_s
        self._filling = continuous
        self._fade_ms = fade_ms
        self._bed: Bed | None = None
        self._tail = b""
        """What fades out over the next frames, because its utterance was cut."""
        self.held = False
        """Nothing of the queue is sent; see `hold`."""
        self._next = 0
        self._dry = True
        self._waiting: tuple[Utterance, float] | None = None
        """The utterance whose audio is late, and since when."""
        self._lag_s: float | None = None
        self._turn = 0
        self.blocked = False
        """The platform takes no audio for now."""
        self._frozen_at: float | None = None
        """Since when the platform plays nothing because it holds the caller."""

    # ---- the platform's own clock

    def freeze(self, now: float) -> None:
        """The platform holds the caller: what it was sent stays unheard, and it gets no more."""
        if self._frozen_at is None:
            self._frozen_at = now

    def thaw(self, now: float) -> None:
        """The caller is back: everything goes on where it stood."""
        if self._frozen_at is not None:
            self._origin += max(0.0, now - self._frozen_at)
            self._frozen_at = None

    def follow(self, moved_s: float) -> None:
        """The platform's clock has fallen back by so much; less than 0: it has run ahead."""
        self._origin += moved_s

    def _clock(self, now: float) -> float:
        """`now`, which stands still while the platform holds the caller."""
        return now if self._frozen_at is None else min(now, self._frozen_at)

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

    def set_bed(self, pcm: Pcm, whole_call: bool = True) -> None:
        """Mix this loop, at its final level, under the agent's words or under the whole call."""
        if len(pcm) > 1:
            self._bed = Bed(pcm, self.frame_bytes, whole_call)
            self._filling = self._filling or whole_call

    def add(self, utterance: Utterance) -> None:
        """Queue an utterance; its audio may come later."""
        self.queue.append(utterance)

    def find(self, utterance_id: int) -> Utterance | None:
        """The utterance, unless it is over."""
        return next((u for u in self.queue if u.id == utterance_id), None)

    def louder(self, utterance: Utterance, pcm: Pcm) -> Pcm:
        """`pcm` with the utterance's gain."""
        return limiting.louder(pcm, utterance.policy.gain_db)

    def shaped(self, utterance: Utterance, pcm: Pcm) -> Pcm:
        """A whole file with its gain and its fades."""
        pcm = self.louder(utterance, pcm)
        policy = utterance.policy
        size = min(round(policy.fade_ms * self.format.rate_hz / 1000), len(pcm) // 4) * 2
        if not size:
            return pcm
        utterance.rise(0, size)
        return pcm if policy.loop else pcm[:-size] + fade_out(pcm[-size:])

    @property
    def buffered_s(self) -> float:
        """Seconds of audio in the queue that were not sent yet."""
        return sum(u.unsent_bytes for u in self.queue) / (2 * self.format.rate_hz)

    # ---- frames out

    def frames(self, now: float, out: list[Action]) -> None:
        """Append the frames (and marks) that are to be sent by `now`."""
        if self.blocked or self._frozen_at is not None:
            # Nobody's audio is late: the platform does not want any.
            self._waiting = None
            return
        head = self._unsent_head(out)
        bed = self._bed
        if head is None and not self._filling and not self._tail and not (bed and bed.rings):
            self._dry = True
            self._waiting = None
            return
        if self._dry:
            self._next = max(self._next, self._slot_from(now))
            self._dry = False
        elif self._next < self._slot_until(now) - CATCH_UP_FRAMES:
            self._next = self._slot_from(now)
        last = self._slot_until(now + self._lead_s)
        last_idle = min(last, self._slot_until(now + self._idle_lead_s))
        encoding = self.format.encoding
        while self._next <= last:
            slot = self._next
            frame = head.take(slot) if head is not None else None
            if frame is not None and head is not None:
                self._turn = head.turn
                self._waiting = None
                data = b""
                if self._tail:
                    frame = self._over_tail(frame)
                elif bed is None and head.wire:
                    data = head.untouched(self.format.frame_bytes)
                if bed is not None:
                    frame = bed.under(frame, slot)
                data = data or g711.encode(frame, encoding)
                if head.exhausted:
                    out.append(SendAudio(data, head.turn, self.due(slot)))
                    self._next = slot + 1
                    head = self._unsent_head(out)
                    continue
            else:
                if head is not None and (self._waiting is None or self._waiting[0] is not head):
                    self._waiting = (head, now)
                filler = self._filler(slot, slot <= last_idle)
                if filler is None:
                    return
                data = g711.encode(filler, encoding)
            out.append(SendAudio(data, self._turn, self.due(slot)))
            self._next = slot + 1

    def starving(self, now: float, limit_s: float) -> Utterance | None:
        """The utterance whose audio has kept the queue waiting for longer than `limit_s`."""
        if self._waiting is None or now - self._waiting[1] < limit_s:
            return None
        return self._waiting[0]

    def _filler(self, slot: int, due: bool) -> Pcm | None:
        """A frame without words for `slot`; None where nothing is sent (yet)."""
        bed = self._bed
        if not self._filling and not self._tail:
            if bed is None or not bed.rings:
                self._dry = True
                return None
            return bed.leave(slot)
        if not due:
            return None
        frame = self._over_tail(bytes(self.frame_bytes)) if self._tail else b""
        if bed is not None and (bed.whole_call or bed.rings):
            return bed.under(frame, slot) if frame else bed.alone(slot)
        return frame or bytes(self.frame_bytes)

    def _over_tail(self, frame: Pcm) -> Pcm:
        tail, self._tail = self._tail[: len(frame)], self._tail[len(frame) :]
        return limiting.add(frame, tail + bytes(len(frame) - len(tail)))

    def _unsent_head(self, out: list[Action]) -> Utterance | None:
        if self.held:
            return None
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
        now = self._clock(now)
        tail_s = 0.0
        if self._native_marks and not utterance.marked_back:
            tail_s = UNKNOWN_LAG_S if self._lag_s is None else self._lag_s
        return now + EPSILON_S >= self.due(utterance.end_slot) + tail_s

    def heard(self, utterance: Utterance, now: float) -> int:
        """Bytes of an utterance that the caller has heard by the clock, less the known lag."""
        now = self._clock(now) - (self._lag_s or 0.0)
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
        now = self._clock(now)
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
        if self._native_marks or (self._idle_marks and self._is_last_sent(utterance)):
            # A mark cannot truly be back before its audio had time to play.
            end += -FRAME_S if utterance.marked_back else self._mark_grace_s
            t = now
        if now + EPSILON_S < end:
            return None
        return PlayEvent(t, utterance, reason, utterance.position)

    def _is_last_sent(self, utterance: Utterance) -> bool:
        """Whether the platform runs dry after this utterance."""
        after = self.queue[self.queue.index(utterance) + 1 :]
        return not any(later.runs for later in after)

    def ran_dry(self, now: float) -> None:
        """The platform says that it has played everything it was sent."""
        now = self._clock(now)
        for utterance in self.queue:
            if not utterance.sent:
                break
            lag_s = now - self.due(utterance.end_slot)
            # Its clock is not ours: it may be early by a frame and a bit.
            if utterance.runs and lag_s >= -2 * FRAME_S:
                utterance.marked_back = True
                if self._is_last_sent(utterance):
                    self._note_lag(lag_s)

    def began(self, now: float) -> None:
        """The platform says that it has begun to play, after a silence."""
        first = next((u for u in self.queue if u.runs), None)
        if first is not None:
            self._note_lag(self._clock(now) - self.due(first.runs[-1].slot))

    def _note_lag(self, lag_s: float) -> None:
        lag_s = max(0.0, lag_s)
        self._lag_s = lag_s if self._lag_s is None else min(self._lag_s, lag_s)

    def mark(self, name: str, now: float) -> None:
        """A mark came back; those of an older generation and unknown ones mean nothing."""
        number, dot, generation = name.partition(".")
        if not dot or generation != str(self.generation) or not number.isdecimal():
            return
        marked = self.find(int(number))
        if marked is None or not marked.sent or not marked.runs:
            return
        self._note_lag(self._clock(now) - self.due(marked.end_slot))
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
        position up to which it was heard. A platform that cannot be cleared plays what it has:
        that counts as heard, and nothing is sent again.
        """
        now = self._clock(now)
        events: list[PlayEvent] = []
        cut: set[Utterance] = set()
        unheard_cut = sounded = False
        for utterance, reason in ends:
            cut.add(utterance)
            sounded = sounded or utterance.started
            heard = utterance.position
            if self._native_clear:
                unheard_cut = unheard_cut or self._unheard_s(utterance, now) > 0
                heard = self.heard(utterance, now)
            events.append(PlayEvent(now, utterance, reason, heard))
        clear = unheard_cut or (by_caller and sounded and self._native_clear and not self.held)
        unheard_s = sum(self._unheard_s(u, now) for u in self.queue) if clear else 0.0
        self._tail = self._break_off([u for u in self.queue if u in cut], clear, by_caller, now)
        self.queue = [u for u in self.queue if u not in cut]
        self._waiting = None
        if by_caller:
            self.held = False
        if clear:
            self._start_anew(now)
        return Cut(events, clear, round(unheard_s * 1000), now - (self._lag_s or 0.0))

    def _start_anew(self, now: float) -> None:
        """The platform was cleared: send what it had of the queue again."""
        self.generation += 1
        for utterance in self.queue:
            self._recover(utterance, now)
        self._next = self._slot_from(now)
        self._dry = True

    @property
    def fading(self) -> bool:
        """Whether something that was cut still has to fade out."""
        return bool(self._tail)

    def _break_off(self, cut: list[Utterance], clear: bool, by_caller: bool, now: float) -> Pcm:
        """How what sounds of the cut ones goes on for a moment while it fades.

        After a clear it goes on from where the caller heard it stop, else from what was sent last.
        """
        utterance = next((u for u in cut if u.runs and not self._over(u, now)), None)
        if utterance is None or self.held:
            return b""
        if clear:
            start = self.heard(utterance, now) if utterance.started else 0
        else:
            last = utterance.runs[-1]
            sends = last.slot + last.frames == self._next and self.due(self._next) >= now
            start = utterance.position if sends else 0
        if start == 0:
            return b""
        fade_ms = utterance.policy.fade_ms or self._fade_ms
        if by_caller:
            fade_ms = min(fade_ms, MAX_INTERRUPTION_FADE_MS)
        tail = utterance.peek(start, round(fade_ms * self.format.rate_hz / 1000) * 2)
        if not tail or audioop.max(tail, 2) < QUIET_TAIL:
            return b""
        return fade_out(tail)

    def hold(self, now: float) -> Cut:
        """Fall silent at once without losing anything: `release` goes on where this stopped."""
        now = self._clock(now)
        sounding = self.sounding(now)
        clear = self._native_clear and sounding is not None
        unheard_s = sum(self._unheard_s(u, now) for u in self.queue) if clear else 0.0
        self._tail = self._break_off(self.queue, clear, True, now)
        if clear:
            self._start_anew(now)
        for utterance in self.queue:
            if utterance.started and utterance.position:
                utterance.rise(utterance.position, self.frame_bytes)
        self.held = True
        self._waiting = None
        return Cut([], clear, round(unheard_s * 1000), now - (self._lag_s or 0.0))

    def release(self) -> None:
        """Go on after a hold."""
        self.held = False

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
