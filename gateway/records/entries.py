"""The spool file of a call: what was recorded, entry after entry, as it came.

An entry is a head (kind, length of the payload, time in seconds of the engine's clock) and its
payload. Audio is kept as it was on the line. A file may end anywhere: its writer may have been
killed; whole entries count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import orjson

HEAD: Final = struct.Struct("<BId")
"""Kind, payload bytes, time."""
MAX_PAYLOAD: Final = 1 << 24
"""A longer payload is damage."""


class Kind:
    """Kinds of entries; plain numbers, because they are packed for each frame."""

    CALL: Final = 1
    """JSON, first in the file: what is known of the call, and what is to be done with it."""
    CALLER: Final = 2
    """Audio of the caller; time: when it came."""
    AGENT: Final = 3
    """Audio for the caller; time: when it is heard."""
    UNHEARD: Final = 4
    """Agent audio before this entry, but due from its time on, was not heard."""
    KEY: Final = 5
    """A telephone key was pressed."""
    NOTE: Final = 6
    """JSON: a line of the timeline, ready to be kept."""
    END: Final = 7
    """JSON: the call is over; the last entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The head of an entry and where its payload stands in the file."""

    kind: int
    t: float
    offset: int
    length: int


def entry(kind: int, t: float, payload: bytes = b"") -> bytes:
    """An entry as it stands in the file."""
    return HEAD.pack(kind, len(payload), t) + payload


def entry_json(kind: int, t: float, content: object) -> bytes:
    """An entry with a JSON payload."""
    return entry(kind, t, orjson.dumps(content))


def scan(file: BinaryIO) -> Iterator[Entry]:
    """All whole entries, payloads skipped. The file may be read elsewhere between two of them."""
    size = file.seek(0, 2)
    at = 0
    while at + HEAD.size <= size:
        file.seek(at)
        kind, length, t = HEAD.unpack(file.read(HEAD.size))
        at += HEAD.size
        if not Kind.CALL <= kind <= Kind.END or length > MAX_PAYLOAD or at + length > size:
            return
        yield Entry(kind, t, at, length)
        at += length


def payload(file: BinaryIO, at: Entry) -> bytes:
    """The payload of an entry."""
    file.seek(at.offset)
    return file.read(at.length)
