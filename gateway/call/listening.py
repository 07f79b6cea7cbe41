"""Caller audio and voice activity into stretches of speech to be understood.

Positions are in seconds of caller audio since its first sample, as the voice detector counts
them. At a pause the recogniser and the turn detector are asked; speech that goes on continues the
same segment. A segment begins a little before its first loud window, so no word loses its start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.audio.formats import Pcm
from gateway.audio.mixing import level_dbfs
from gateway.call import faint, wording
from gateway.call.faint import Faint
from gateway.call.profile import CallProfile

WINDOW_S = 0.032
"""Length of one voice activity window."""
SLACK_S = 2.0
"""How far the voice detector may lag behind the audio without a loss of pre-roll."""
STALL_S = 1.0
"""With no window for this long, speech counts as over: the platform stopped sending."""
ANSWER_WAIT_S = 25.0
"""Longest wait for the recogniser; then the piece counts as having no words."""
MISSED_S = 2.0
"""How far back the start of words may lie that the voice detector has missed."""
LOOK_S = 0.5
"""How often the recogniser is asked for the words so far, where they may interrupt."""
SETTLE_S, SETTLE_START = 2.0, 0.9
"""At the start of a call the voice detector does not know the noise yet and takes it for speech:
for so long an interruption needs this much, where there is an echo guard."""
LATE_WORDS_S = 0.2
"""Words that end this soon after a segment still belong to it."""
EPSILON_S = 1e-6


class Hearing(Enum):
    """What the caller is doing."""

    QUIET = auto()
    ONSET = auto()
    """Loud, but not yet for long enough to be speech."""
    SPEAKING = auto()
    HUSHED = auto()
    """Silent for less than a pause."""
    PAUSED = auto()
    """Silent for a pause; the recogniser was asked."""


class Cue(Enum):
    """What one window, or the time since speech, says."""

    LOUD = auto()
    MIDDLE = auto()
    """Between the two thresholds: nothing changes."""
    SOFT = auto()
    CONFIRMED = auto()
    """Loud for long enough."""
    PAUSE = auto()
    """Silent for `pause_s`."""
    END = auto()
    """Silent for `end_silence_s`, or no more windows."""
    COMPLETE = auto()
    """The turn detector says that the caller has finished."""
    WORDS = auto()
    """The recogniser hears words while the voice detector hears nothing."""


_H, _C = Hearing, Cue

TRANSITIONS: dict[tuple[Hearing, Cue], Hearing] = {
    (_H.QUIET, _C.LOUD): _H.ONSET,
    (_H.QUIET, _C.MIDDLE): _H.QUIET,
    (_H.QUIET, _C.SOFT): _H.QUIET,
    (_H.QUIET, _C.CONFIRMED): _H.QUIET,
    (_H.QUIET, _C.PAUSE): _H.QUIET,
    (_H.QUIET, _C.END): _H.QUIET,
    (_H.QUIET, _C.COMPLETE): _H.QUIET,
    (_H.QUIET, _C.WORDS): _H.SPEAKING,
    (_H.ONSET, _C.LOUD): _H.ONSET,
    (_H.ONSET, _C.MIDDLE): _H.QUIET,
    (_H.ONSET, _C.SOFT): _H.QUIET,
    (_H.ONSET, _C.CONFIRMED): _H.SPEAKING,
    (_H.ONSET, _C.PAUSE): _H.ONSET,
    (_H.ONSET, _C.END): _H.QUIET,
    (_H.ONSET, _C.COMPLETE): _H.ONSET,
    (_H.ONSET, _C.WORDS): _H.SPEAKING,
    (_H.SPEAKING, _C.LOUD): _H.SPEAKING,
    (_H.SPEAKING, _C.MIDDLE): _H.SPEAKING,
    (_H.SPEAKING, _C.SOFT): _H.HUSHED,
    (_H.SPEAKING, _C.CONFIRMED): _H.SPEAKING,
    (_H.SPEAKING, _C.PAUSE): _H.SPEAKING,
    (_H.SPEAKING, _C.END): _H.QUIET,
    # A verdict on a pause that is over says nothing.
    (_H.SPEAKING, _C.COMPLETE): _H.SPEAKING,
    (_H.SPEAKING, _C.WORDS): _H.SPEAKING,
    (_H.HUSHED, _C.LOUD): _H.SPEAKING,
    (_H.HUSHED, _C.MIDDLE): _H.HUSHED,
    (_H.HUSHED, _C.SOFT): _H.HUSHED,
    (_H.HUSHED, _C.CONFIRMED): _H.HUSHED,
    (_H.HUSHED, _C.PAUSE): _H.PAUSED,
    (_H.HUSHED, _C.END): _H.QUIET,
    (_H.HUSHED, _C.COMPLETE): _H.HUSHED,
    # Words are told late: those of a pause were said before it.
    (_H.HUSHED, _C.WORDS): _H.HUSHED,
    (_H.PAUSED, _C.LOUD): _H.SPEAKING,
    (_H.PAUSED, _C.MIDDLE): _H.PAUSED,
    (_H.PAUSED, _C.SOFT): _H.PAUSED,
    (_H.PAUSED, _C.CONFIRMED): _H.PAUSED,
    (_H.PAUSED, _C.PAUSE): _H.PAUSED,
    (_H.PAUSED, _C.END): _H.QUIET,
    (_H.PAUSED, _C.COMPLETE): _H.QUIET,
    (_H.PAUSED, _C.WORDS): _H.PAUSED,
}


@dataclass(slots=True, eq=False)
class Piece:
    """A stretch of audio that the recogniser was given; `text` is None until it answers."""

    ask_id: int
    text: str | None = None


@dataclass(slots=True, eq=False)
class Segment:
    """One stretch of caller speech, from its onset to its last silence."""

    start_s: float
    tail_s: float
    """Where the piece that was not given to the recogniser yet begins."""
    counts: bool = False
    """False while it is ignored (spoken under protected audio)."""
    barged: bool = False
    """It interrupted the agent."""
    over_agent: bool = False
    """It began, or began to count, while the agent spoke."""
    watched: bool = False
    """Its words may interrupt, so they are wanted while they are said."""
    faint: bool = False
    """Voice activity did not take it for speech."""
    look: Piece | None = None
    """The last question for the words so far."""
    looked_s: float = 0.0
    patience_s: float = 0.0
    """Silence that ends it, where that is longer than usual."""
    pieces: list[Piece] = field(default_factory=list)
    probe: Piece | None = None
    """The last piece as it stood at a pause; void if speech goes on."""
    deadline: float = 0.0

    @property
    def text(self) -> str:
        """The words so far."""
        pieces = [*self.pieces, self.probe] if self.probe else self.pieces
        return " ".join(p.text for p in pieces if p.text)

    @property
    def understood(self) -> bool:
        """Whether the recogniser has answered for every piece."""
        return all(p.text is not None for p in self.pieces)


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The caller began to speak. Who gets this decides at once whether the segment counts."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """The caller stopped."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class Ask:
    """The recogniser is wanted."""

    ask_id: int
    pcm: Pcm
    ask_complete: bool
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Partial:
    """Words of a segment that may go on."""

    text: str


@dataclass(frozen=True, slots=True)
class Understood:
    """All that will be known of a segment that is over; `text` may be empty."""

    segment: Segment
    text: str


ListenEvent = SpeechStarted | SpeechEnded | Ask | Partial | Understood


class Listening:
    """The caller's side of the audio of one call."""

    def __init__(self, profile: CallProfile, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.state = Hearing.QUIET
        self.language = profile.language
        """Language that the caller is expected to speak."""
        self.segment: Segment | None = None
        """The speech that is going on."""
        self._profile = profile
        self._buffer = bytearray()
        self._dropped = 0
        """Bytes of caller audio before the buffer."""
        self._keep = self._bytes(profile.pre_roll_s + SLACK_S)
        self._most = self._bytes(profile.max_segment_s + profile.pre_roll_s + SLACK_S)
        self._position_s = 0.0
        self._window_at = 0.0
        self._onset_s = 0.0
        self._loud = 0
        self._silence_s = 0.0
        self._spent_s = 0.0
        """Audio before this belongs to an earlier segment."""
        self._closing: deque[Segment] = deque()
        self._asks = 0
        self._streamed = False
        """The recogniser tells words by itself, so it need not be asked for those so far."""
        self._faint = Faint()

    # ---- audio

    def feed(self, pcm: Pcm) -> None:
        """Keep caller audio for as long as it may be needed."""
        buffer = self._buffer
        buffer += pcm
        keep = self._keep if self.segment is None else self._most
        if len(buffer) > keep + self._keep:
            surplus = (len(buffer) - keep) & ~1
            del buffer[:surplus]
            self._dropped += surplus

    def _bytes(self, seconds: float) -> int:
        return round(seconds * self.rate_hz) * 2

    def _cut(self, start_s: float, end_s: float) -> Pcm:
        start = max(0, self._bytes(start_s) - self._dropped)
        return bytes(self._buffer[start : max(start, self._bytes(end_s) - self._dropped)])

    # ---- windows

    @property
    def speaking(self) -> bool:
        """Whether the caller speaks right now, pauses left out."""
        return self.state is Hearing.SPEAKING

    @property
    def pending(self) -> bool:
        """Whether a sound that counts may still turn out to be words."""
        return bool(self._closing) or (self.segment is not None and self.segment.counts)

    def window(
        self, probability: float, position_s: float, now: float, guarded: bool = False
    ) -> Iterator[ListenEvent]:
        """Take one window that ends at `position_s`. Events must be handled as they come.

        `guarded`: the agent speaks, so what begins may be its echo.
        """
        self._position_s = position_s
        self._window_at = now
        before = self.state
        guarded = guarded and self.segment is None
        start = self._profile.vad_start
        if guarded and self._profile.echo_guard > 0:
            start = min(start + self._profile.echo_guard, 0.99)
            if position_s < SETTLE_S:
                start = max(start, SETTLE_START)
        if probability >= start:
            self._step(Cue.LOUD)
        elif probability < self._profile.vad_stop:
            self._step(Cue.SOFT)
        else:
            self._step(Cue.MIDDLE)
        state = self.state
        if state is Hearing.QUIET:
            if self._profile.faint_words and not guarded and not self._streamed:
                yield from self._listen_close(probability, now)
        elif state is Hearing.ONSET:
            yield from self._onset(before, guarded)
        elif state is Hearing.SPEAKING:
            segment = self.segment
            if before is not Hearing.SPEAKING and segment is not None:
                segment.probe = None
            if segment is not None and self._long(segment):
                yield from self._split(segment)
            if segment is not None and segment.watched and not self._streamed:
                yield from self._look(segment)
        elif state is Hearing.HUSHED or state is Hearing.PAUSED:
            yield from self._silence(before, now)

    def _step(self, cue: Cue) -> None:
        self.state = TRANSITIONS[self.state, cue]

    def _onset(self, before: Hearing, guarded: bool) -> Iterator[ListenEvent]:
        if before is not Hearing.ONSET:
            self._onset_s = self._position_s - WINDOW_S
            self._loud = 0
        self._loud += 1
        windows = self._profile.vad_start_windows
        if guarded:
            windows += self._profile.echo_guard_windows
        if self._loud >= windows:
            self._step(Cue.CONFIRMED)
            self._faint.reset()
            start_s = max(self._onset_s - self._profile.pre_roll_s, self._spent_s, 0.0)
            self.segment = Segment(start_s, start_s)
            yield SpeechStarted(self.segment)

    def _silence(self, before: Hearing, now: float) -> Iterator[ListenEvent]:
        if before is Hearing.SPEAKING:
            self._silence_s = self._position_s - WINDOW_S
        silent_s = self._position_s - self._silence_s + EPSILON_S
        segment = self.segment
        if segment is None:
            return
        if self.state is Hearing.HUSHED and silent_s >= self._profile.pause_s:
            self._step(Cue.PAUSE)
            if segment.counts:
                yield self._ask_tail(segment, ask_complete=True)
        if silent_s >= max(self._profile.end_silence_s, segment.patience_s):
            yield from self._finish(Cue.END, now)

    def _look(self, segment: Segment) -> Iterator[ListenEvent]:
        """Ask for the words so far, from time to time."""
        if self._position_s - max(segment.looked_s, segment.tail_s) < LOOK_S:
            return
        segment.looked_s = self._position_s
        self._asks += 1
        segment.look = Piece(self._asks)
        start_s, end_s = segment.tail_s, self._position_s
        yield Ask(self._asks, self._cut(start_s, end_s), False, start_s, end_s)

    def _listen_close(self, probability: float, now: float) -> Iterator[ListenEvent]:
        """Nobody speaks: is there a sound that could be a word all the same?"""
        at = self._position_s
        level = level_dbfs(self._cut(at - WINDOW_S, at))
        burst = self._faint.window(probability, level, at, WINDOW_S)
        if burst is None:
            return
        start_s = max(burst[0] - self._profile.pre_roll_s, self._spent_s, 0.0)
        segment = Segment(start_s, start_s, counts=True, faint=True)
        self._spent_s = at
        ask = self._ask_tail(segment, ask_complete=False)
        self._close(segment, now)
        yield ask

    def _close(self, segment: Segment, now: float) -> None:
        segment.pieces.append(self._take_probe(segment))
        segment.deadline = now + ANSWER_WAIT_S
        self._closing.append(segment)

    def _long(self, segment: Segment) -> bool:
        return self._position_s - segment.tail_s >= self._profile.max_segment_s

    def _split(self, segment: Segment) -> Iterator[ListenEvent]:
        if not segment.counts:
            # Ignored speech is kept only as far back as one segment may reach.
            segment.tail_s = self._position_s - self._profile.max_segment_s
            return
        yield self._ask_tail(segment, ask_complete=False)
        segment.pieces.append(self._take_probe(segment))
        segment.tail_s = self._position_s

    def _ask_tail(self, segment: Segment, *, ask_complete: bool) -> Ask:
        self._asks += 1
        segment.probe = Piece(self._asks)
        start_s, end_s = segment.tail_s, self._position_s
        return Ask(self._asks, self._cut(start_s, end_s), ask_complete, start_s, end_s)

    def _take_probe(self, segment: Segment) -> Piece:
        assert segment.probe is not None
        piece, segment.probe = segment.probe, None
        return piece

    def _finish(self, cue: Cue, now: float) -> Iterator[ListenEvent]:
        segment = self.segment
        self._step(cue)
        if segment is None:
            return
        self.segment = None
        self._spent_s = self._position_s
        yield SpeechEnded(segment)
        if not segment.counts:
            return
        if segment.probe is None:
            yield self._ask_tail(segment, ask_complete=False)
        self._close(segment, now)
        yield from self._deliver()

    # ---- answers

    def answer(self, ask_id: int, text: str, complete: bool, now: float) -> Iterator[ListenEvent]:
        """What the recogniser understood (nothing: ""). Answers to void questions mean nothing."""
        segment = self.segment
        probe = segment.probe if segment is not None else None
        if segment is not None and probe is not None and probe.ask_id == ask_id:
            probe.text = text
            unfinished = wording.expects_more(text, self.language)
            if unfinished or wording.digits_at_end(text, self.language):
                segment.patience_s = self._profile.number_silence_s
                complete = complete and not unfinished
            if complete and self.state is Hearing.PAUSED:
                yield from self._finish(Cue.COMPLETE, now)
            elif text:
                yield Partial(segment.text)
            return
        look = segment.look if segment is not None else None
        if segment is not None and look is not None and look.ask_id == ask_id:
            segment.look = None
            if text and segment.counts:
                yield Partial(" ".join([*(p.text for p in segment.pieces if p.text), text]))
            return
        for owner in (*self._closing, *([segment] if segment is not None else ())):
            for piece in owner.pieces:
                if piece.ask_id == ask_id:
                    piece.text = text
        yield from self._deliver()

    def words(self, text: str, start_s: float, end_s: float, now: float) -> Iterator[ListenEvent]:
        """Words that a streaming recogniser hears between two positions, not final yet.

        Where the voice detector missed their sound, they begin a segment themselves.
        """
        self._streamed = True
        segment = self.segment
        if segment is None:
            if end_s < self._spent_s + LATE_WORDS_S:
                return
            self._step(Cue.WORDS)
            self._window_at = now
            begin_s = max(start_s, end_s - MISSED_S, self._spent_s, 0.0)
            segment = self.segment = Segment(begin_s, begin_s)
            yield SpeechStarted(segment)
        if segment.counts:
            yield Partial(text)

    def poll(self, now: float) -> Iterator[ListenEvent]:
        """Move to `now`: end speech whose audio stopped coming, and waits that took too long."""
        if self.segment is not None or self.state is Hearing.ONSET:
            patience_s = max(STALL_S, self._profile.end_silence_s)
            if now - self._window_at >= patience_s:
                yield from self._finish(Cue.END, now)
        if self._closing and now >= self._closing[0].deadline:
            for piece in self._closing[0].pieces:
                piece.text = piece.text or ""
            yield from self._deliver()

    def _deliver(self) -> Iterator[ListenEvent]:
        while self._closing and self._closing[0].understood:
            segment = self._closing.popleft()
            text = segment.text
            if segment.faint and wording.count_words(text) > faint.MAX_WORDS:
                text = ""
            yield Understood(segment, text)
