"""One utterance: its audio, how far it was sent, and how far it was heard."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.audio.fades import rising
from gateway.audio.formats import FRAME_MS, Pcm
from gateway.call.events import Source
from gateway.call.policy import Policy
from gateway.call.transcript import heard_words

SPEECH_S_PER_CHAR = 0.065
"""How long speech takes, for a sentence whose end is not made yet."""
FRAMES_PER_S = 1000 // FRAME_MS


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of PCM in whole frames."""

    pcm: Pcm
    length: int
    """Bytes without the padding at the end."""


@dataclass(slots=True)
class Sentence:
    """Words and the audio that speaks them: `length` bytes from `start` on, so far."""

    text: str
    start: int
    length: int = 0
    whole: bool = False
    """All of its audio is there."""


@dataclass(slots=True)
class Run:
    """Frames of one utterance that were sent for consecutive slots."""

    slot: int
    position: int
    """Byte of the utterance at which the first frame starts."""
    frames: int = 1


@dataclass(slots=True, eq=False)
class Utterance:
    """An item of the playout queue. Positions are in bytes of PCM."""

    id: int
    source: Source
    policy: Policy
    turn: int
    frame_bytes: int
    text: str = ""
    uri: str = ""
    keys: str = ""
    """Keys that are pressed in its place."""
    farewell: bool = False
    """Spoken by the gateway itself, not by the agent."""
    finished: bool = False
    """No more audio will come."""
    failed: bool = False
    sent: bool = False
    """All of it was given to the platform."""
    started: bool = False
    """The first frame's time has come."""
    marked_back: bool = False
    """The platform said that it was played, or cannot say so any more."""
    start_slot: int | None = None
    end_slot: int = 0
    position: int = 0
    """Sent up to here."""
    base: int = 0
    """Heard up to here before the current runs."""
    total: int = 0
    runs: list[Run] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    _going_on: Sentence | None = None
    _residue: bytes = b""
    wire: bytearray = field(default_factory=bytearray)
    """The audio in the platform's format, where a runtime gave it so."""
    _rise_from: int = 0
    _rise_until: int = 0
    """The stretch that fades in."""
    _index: int = 0
    _offset: int = 0
    """Where chunk `_index` starts."""

    # ---- audio in

    def append(self, text: str, pcm: Pcm, more: bool = False) -> None:
        """Add a sentence or a file, padded with silence to whole frames.

        `more`: only a piece of it, not padded; the next call goes on with the same sentence.
        """
        pcm = pcm[: len(pcm) & ~1]
        sentence = self._going_on
        if sentence is None:
            if not pcm:
                return
            sentence = Sentence(text, self.total)
            self.sentences.append(sentence)
        if more:
            self._going_on = sentence
            self.stream(pcm)
        else:
            self._going_on = None
            self._add_padded(pcm)
            sentence.whole = True
        sentence.length = self._length - sentence.start

    @property
    def _length(self) -> int:
        """End of the audio so far, without the padding of its last frame."""
        if not self.chunks:
            return 0
        last = self.chunks[-1]
        return self.total - len(last.pcm) + last.length

    def caption(self, text: str) -> None:
        """Words of audio that a runtime makes itself; all that come belong to all of it."""
        self.text = f"{self.text} {text}".strip()
        if not self.sentences:
            self.sentences.append(Sentence("", 0))
        self.sentences[0].text = self.text

    def stream(self, pcm: Pcm, wire: bytes = b"") -> None:
        """Add a piece of continuous audio: nothing is padded between the pieces.

        `wire`: the same as the platform wants it.
        """
        if wire:
            self.wire += wire
        pcm = self._residue + pcm
        whole = len(pcm) - len(pcm) % self.frame_bytes
        self._residue = pcm[whole:]
        if whole:
            self._add(Chunk(pcm[:whole], whole))
        if self.source is Source.AUDIO and self.sentences:
            self.sentences[0].length = self.total

    def finish(self) -> None:
        """No more audio comes; what is left of a stream is padded."""
        self._add_padded(b"")
        self.finished = True
        if self.source is Source.AUDIO and self.sentences:
            self.sentences[0].length, self.sentences[0].whole = self._length, True

    def _add_padded(self, pcm: Pcm) -> None:
        pcm = self._residue + pcm
        self._residue = b""
        if pcm:
            short = -len(pcm) % self.frame_bytes
            self._add(Chunk(pcm + bytes(short) if short else pcm, len(pcm)))

    def _add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.total += len(chunk.pcm)

    # ---- frames out

    @property
    def exhausted(self) -> bool:
        """Everything that will ever come was sent."""
        return self.finished and (self.position >= self.total if not self._loops else False)

    @property
    def _loops(self) -> bool:
        return self.policy.loop and self.total > 0

    def take(self, slot: int) -> Pcm | None:
        """The next frame, to be played in `slot`; None while there is none."""
        if self._loops:
            frame = self._looped(self.position, self.frame_bytes)
        elif self.position < self.total:
            chunk = self.chunks[self._index]
            start = self.position - self._offset
            frame = chunk.pcm[start : start + self.frame_bytes]
            if start + self.frame_bytes >= len(chunk.pcm):
                self._index += 1
                self._offset += len(chunk.pcm)
        else:
            return None
        if self._rise_from <= self.position < self._rise_until:
            start = self.position - self._rise_from
            frame = rising(frame, start, self._rise_until - self._rise_from)
        runs = self.runs
        if runs and runs[-1].slot + runs[-1].frames == slot:
            runs[-1].frames += 1
        else:
            runs.append(Run(slot, self.position))
            if self.start_slot is None:
                self.start_slot = slot
        self.position += self.frame_bytes
        return frame

    def untouched(self, size: int) -> bytes:
        """The frame just taken, as the runtime gave it in `size` bytes; empty where it did not."""
        start = (self.position // self.frame_bytes - 1) * size
        frame = bytes(self.wire[start : start + size])
        return frame if len(frame) == size else b""

    def _looped(self, position: int, size: int) -> Pcm:
        """A stretch of a file that repeats without a gap: the padding is left out."""
        chunk = self.chunks[0]
        start = position % chunk.length
        stretch = chunk.pcm[start : min(start + size, chunk.length)]
        while len(stretch) < size:
            stretch += chunk.pcm[: min(size - len(stretch), chunk.length)]
        return stretch

    def peek(self, position: int, size: int) -> Pcm:
        """What sounds from `position` on, shorter where there is no more."""
        if self._loops:
            return self._looped(position, size)
        found = b""
        start = 0
        for chunk in self.chunks:
            end = start + len(chunk.pcm)
            if end > position:
                piece = chunk.pcm[position - start : position - start + size]
                found += piece
                size -= len(piece)
                if not size:
                    break
                position = end
            start = end
        return found

    def rise(self, start: int, size: int) -> None:
        """Fade in over the `size` bytes from `start` on."""
        self._rise_from, self._rise_until = start, start + size

    def rewind(self, heard: int) -> None:
        """What was sent beyond `heard` is gone: send it again from there, in whole frames."""
        heard -= heard % self.frame_bytes
        self.base = self.position = heard
        self.runs = []
        self.sent = False
        self._index = self._offset = 0
        if not self._loops:
            while self._index < len(self.chunks):
                size = len(self.chunks[self._index].pcm)
                if self._offset + size > heard:
                    break
                self._offset += size
                self._index += 1
        if not self.started:
            self.start_slot = None

    # ---- what was heard

    def seconds(self, heard: int, rate_hz: int) -> float:
        """Length of what was heard, padding left out."""
        if self._loops:
            return heard / (2 * rate_hz)
        start, total = 0, 0
        for chunk in self.chunks:
            if heard <= start:
                break
            total += min(heard - start, chunk.length)
            start += len(chunk.pcm)
        return total / (2 * rate_hz)

    def words(self, heard: int) -> str:
        """The words of what was heard; a sentence heard in part counts in proportion."""
        said: list[str] = []
        for sentence in self.sentences:
            if heard <= sentence.start:
                break
            if not sentence.text:
                continue
            length = float(sentence.length)
            if not sentence.whole:
                # Its audio is still being made, or broke off: there is more than is here.
                frames = len(sentence.text) * SPEECH_S_PER_CHAR * FRAMES_PER_S
                length = max(1.1 * length, frames * self.frame_bytes)
            said.append(heard_words(sentence.text, min(1.0, (heard - sentence.start) / length)))
        return " ".join(words for words in said if words)

    def said_by(self, heard: int) -> bool:
        """Whether all its words were heard by then; music has none to lose."""
        return "".join(self.words(heard).split()) == "".join(self.text.split())

    @property
    def unsent_bytes(self) -> int:
        """Audio that is here and was not sent yet."""
        return max(0, self.total - self.position)
