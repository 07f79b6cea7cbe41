"""Audio as a cloud service sends it, into samples: headers never play, and text never does."""

from __future__ import annotations

import struct

from gateway.audio import g711, wav
from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.audio.resample import MAX_RATE_HZ, MIN_RATE_HZ, Resampler
from gateway.errors import AssetError, SpeechError

MAX_HEADER_BYTES = 1 << 16
_RIFF_BYTES = 12
_CHUNK = struct.Struct("<4sI")
_TEXT_BYTES = 512
"""So much is looked at before it plays: a quiet start may read like letters by chance."""
_ENCODINGS = {
    (wav.Tag.PCM, 2): Encoding.LINEAR16,
    (wav.Tag.MULAW, 1): Encoding.MULAW,
    (wav.Tag.ALAW, 1): Encoding.ALAW,
}


class ServiceAudio:
    """One sentence's audio, fed as it arrives in pieces of any length.

    Without a header it is what was asked for; with one, the header says what it is, and another
    rate is brought to the one wanted.
    """

    def __init__(self, wanted: AudioFormat) -> None:
        self._wanted = wanted
        self._head = bytearray()
        self._in_head = True
        self._decoder = g711.Decoder(wanted.encoding)
        self._resampler: Resampler | None = None
        self._left: int | None = None
        """Bytes of the data chunk that are still to come; None: all that comes."""

    def feed(self, data: bytes) -> Pcm:
        """The samples, at the wanted rate, that `data` completes. Raises SpeechError."""
        if not self._in_head:
            if not wav.is_wav(data):
                return self._samples(data)
            # Some services put a header before each piece.
            self._in_head = True
        self._head += data
        if len(self._head) < _RIFF_BYTES:
            return b""
        head = bytes(self._head)
        at: int | None = 0
        if wav.is_wav(head):
            at = self._header(head)
            if at is None:
                if len(head) > MAX_HEADER_BYTES:
                    raise _bad("a header without an end")
                return b""
        elif len(head) < _TEXT_BYTES:
            return b""
        elif _is_text(head):
            raise _bad("text")
        return self._begin(head[at:])

    def flush(self) -> Pcm:
        """What is left once all has come. Raises SpeechError where no sample ever came."""
        pcm = b""
        if head := bytes(self._head):
            if wav.is_wav(head) or _is_text(head):
                raise _bad("half a header" if wav.is_wav(head) else "text")
            pcm = self._begin(head)
        return pcm + self._resampler.flush() if self._resampler is not None else pcm

    def _begin(self, samples: bytes) -> Pcm:
        self._head.clear()
        self._in_head = False
        return self._samples(samples)

    def _samples(self, data: bytes) -> Pcm:
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        pcm = self._decoder.process(data)
        return pcm if self._resampler is None else self._resampler.process(pcm)

    def _header(self, head: bytes) -> int | None:
        """Where the samples begin; None while the header goes on."""
        at = _RIFF_BYTES
        while at + _CHUNK.size <= len(head):
            name, length = _CHUNK.unpack_from(head, at)
            at += _CHUNK.size
            if name == b"data":
                self._take_format(head[:at])
                self._left = None if length in wav.UNKNOWN_LENGTHS else length
                return at
            at += length + (length & 1)
        return None

    def _take_format(self, header: bytes) -> None:
        try:
            found = wav.read(header, "")
        except AssetError:
            raise _bad("a header that makes no sense") from None
        encoding = (
            _ENCODINGS.get((wav.Tag(found.tag), found.sample_bytes)) if _known(found) else None
        )
        if encoding is None or found.channels != 1:
            raise _bad("samples of another kind")
        if not MIN_RATE_HZ <= found.rate_hz <= MAX_RATE_HZ:
            raise _bad("a header that makes no sense")
        self._decoder = g711.Decoder(encoding)
        if self._resampler is None and found.rate_hz != self._wanted.rate_hz:
            self._resampler = Resampler(found.rate_hz, self._wanted.rate_hz)


def _known(found: wav.WavData) -> bool:
    return found.tag in {tag.value for tag in wav.Tag}


def _is_text(data: bytes) -> bool:
    """Whether this is a message for people: no samples of any encoding read like one."""
    start = data[:_TEXT_BYTES]
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3:
            return False
        text = start[: error.start].decode("utf-8")
    # Silence in A-law is one printable letter over and over.
    return len(set(text)) > 5 and all(char.isprintable() or char.isspace() for char in text)


def _bad(what: str) -> SpeechError:
    return SpeechError("speech.bad_audio", f"the service sent {what} instead of audio")
