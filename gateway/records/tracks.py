"""From a spool file to sound: each side of the call as a track, and both as a stereo WAV.

A track is a file of PCM samples that begins with the call. Where nothing was recorded it has a
hole, which reads as silence and takes no room on the disk. Everything goes block by block.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from gateway.audio import g711
from gateway.audio.formats import AudioFormat, Encoding
from gateway.audio.resample import Resampler
from gateway.errors import RecordError
from gateway.records.alignment import FRAME_S, HeardFrames, Placed, place_stream
from gateway.records.entries import Entry, Kind, payload, scan

BLOCK_S = 5
RAMP_S = 0.005
"""Muting fades this long, so that it makes no click."""

Span = tuple[float, float]
"""Seconds of the call, from and to."""


@dataclass(slots=True)
class SpooledCall:
    """All that a spool file holds, audio still in the file. Times: seconds since the call began."""

    header: dict[str, Any]
    notes: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    caller: list[Entry] = field(default_factory=list)
    agent: list[Entry] = field(default_factory=list)
    """Frames, and the entries that say what of them was not heard."""
    keys: list[float] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    """Empty where the gateway died."""
    end_s: float = 0.0


def read_call(file: BinaryIO) -> SpooledCall:
    """Read a spool file. Raises RecordError records.spool where not even its beginning is whole."""
    call: SpooledCall | None = None
    begun = last = 0.0
    ended: float | None = None
    for entry in scan(file):
        if call is None:
            if entry.kind != Kind.CALL:
                break
            call = SpooledCall(orjson.loads(payload(file, entry)))
            begun = entry.t
            continue
        t = entry.t - begun
        match entry.kind:
            case Kind.CALLER:
                call.caller.append(entry)
                last = max(last, t + FRAME_S)
            case Kind.AGENT:
                call.agent.append(entry)
                last = max(last, t + FRAME_S)
            case Kind.UNHEARD:
                call.agent.append(entry)
            case Kind.KEY:
                call.keys.append(t)
            case Kind.NOTE:
                call.notes.append((t, orjson.loads(payload(file, entry))))
                last = max(last, t)
            case Kind.END:
                call.end = orjson.loads(payload(file, entry))
                ended = t
    if call is None:
        raise RecordError("records.spool", "the spool file has no beginning")
    call.notes.sort(key=lambda note: note[0])
    call.end_s = max(0.0, last if ended is None else ended)
    call.header["begun"] = begun
    return call


def line_format(header: dict[str, Any], side: str) -> AudioFormat | None:
    """Format of a side's audio; None where it has none."""
    given = header.get(side)
    return AudioFormat(Encoding(given[0]), given[1]) if given else None


@dataclass(frozen=True, slots=True)
class Track:
    """One side's samples in a file."""

    path: Path
    rate_hz: int

    def read(self, span: Span) -> NDArray[np.int16]:
        """The samples of a stretch; what lies outside the track is left out."""
        first = max(0, round(span[0] * self.rate_hz))
        count = max(0, round(span[1] * self.rate_hz) - first)
        with self.path.open("rb") as file:
            file.seek(2 * first)
            data = file.read(2 * count)
        return np.frombuffer(data, "<i2")


def caller_track(file: BinaryIO, call: SpooledCall, path: Path) -> Track:
    """Write what the caller sent."""
    wire = line_format(call.header, "in_format") or AudioFormat(Encoding.LINEAR16, 8000)
    begun: float = call.header["begun"]
    placed = place_stream(
        [entry.t - begun for entry in call.caller],
        [entry.length // wire.sample_bytes for entry in call.caller],
        wire.rate_hz,
    )
    return _write(file, call.caller, placed, wire, call.end_s, path)


def agent_track(file: BinaryIO, call: SpooledCall, path: Path) -> Track:
    """Write what the caller heard."""
    wire = line_format(call.header, "out_format") or AudioFormat(Encoding.LINEAR16, 8000)
    begun: float = call.header["begun"]
    heard = HeardFrames(wire.rate_hz)
    frames: list[Entry] = []
    for entry in call.agent:
        if entry.kind == Kind.UNHEARD:
            heard.unheard(entry.t - begun)
        else:
            frames.append(entry)
            heard.add(entry.t - begun, entry.length // wire.sample_bytes)
    return _write(file, frames, heard.placed, wire, call.end_s, path)


def _write(
    file: BinaryIO,
    entries: Sequence[Entry],
    placed: Sequence[Placed],
    wire: AudioFormat,
    end_s: float,
    path: Path,
) -> Track:
    total = round(end_s * wire.rate_hz)
    with path.open("wb") as out:
        for piece in placed:
            room = min(piece.samples, total - piece.start)
            if room <= 0:
                continue
            pcm = g711.decode(payload(file, entries[piece.index]), wire.encoding)
            out.seek(2 * piece.start)
            out.write(pcm[: 2 * room])
        out.truncate(2 * total)
    return Track(path, wire.rate_hz)


def write_wav(
    path: Path, left: Track, right: Track, end_s: float, mute: tuple[Sequence[Span], Sequence[Span]]
) -> None:
    """Both tracks in one file at the higher of their rates, silent where `mute` says."""
    rate_hz = max(left.rate_hz, right.rate_hz)
    total = round(end_s * rate_hz)
    sides = [_blocks(track, rate_hz, total) for track in (left, right)]
    at = 0
    with wave.open(str(path), "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(rate_hz)
        for pair in zip(*sides, strict=True):
            both = np.empty((len(pair[0]), 2), "<i2")
            for column, block in enumerate(pair):
                both[:, column] = _muted(block, at, rate_hz, mute[column])
            out.writeframesraw(both.tobytes())
            at += len(both)


def _blocks(track: Track, rate_hz: int, total: int) -> Iterator[NDArray[np.int16]]:
    """The track at `rate_hz`, exactly `total` samples."""
    size = BLOCK_S * rate_hz
    resampler = Resampler(track.rate_hz, rate_hz)
    waiting = bytearray()
    skip = 2 * resampler.delay_samples
    left = total
    with track.path.open("rb") as file:
        over = False
        while left:
            want = min(size, left)
            while len(waiting) - skip < 2 * want and not over:
                data = file.read(2 * BLOCK_S * track.rate_hz)
                waiting += resampler.process(data) if data else resampler.flush()
                over = not data
            block = bytes(waiting[skip : skip + 2 * want])
            del waiting[: skip + 2 * want]
            skip = 0
            yield np.frombuffer(block.ljust(2 * want, b"\0"), "<i2")
            left -= want


def _muted(
    block: NDArray[np.int16], at: int, rate_hz: int, spans: Sequence[Span]
) -> NDArray[np.int16]:
    ramp = round(RAMP_S * rate_hz)
    gain: NDArray[np.float32] | None = None
    for start_s, end_s in spans:
        first = round(start_s * rate_hz) - at
        last = round(end_s * rate_hz) - at
        if last + ramp <= 0 or first - ramp >= len(block):
            continue
        if gain is None:
            gain = np.ones(len(block), np.float32)
        position = np.arange(max(0, first - ramp), min(len(block), last + ramp))
        outside = np.maximum(first - position, position - last + 1).clip(0, ramp)
        gain[position] = np.minimum(gain[position], outside / ramp)
    return block if gain is None else (block * gain).astype("<i2")
