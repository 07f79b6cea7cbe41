"""Reading WAV by its chunks: what is in `data` plays, and nothing else.

Written for files as they are met: made by streams that never knew their length, cut off on the
way, with odd lengths, or with titles and licences after the samples.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from gateway.errors import AssetError

UNKNOWN_LENGTHS = frozenset({0, 0xFFFFFFFF})
"""Data lengths that a writer puts down when it does not know yet."""

_HEAD = struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
"""What follows the format tag in the sub-format of an extensible header."""


class Tag(IntEnum):
    """Format tags that are read here."""

    PCM = 0x0001
    FLOAT = 0x0003
    ALAW = 0x0006
    MULAW = 0x0007
    EXTENSIBLE = 0xFFFE


@dataclass(frozen=True, slots=True)
class WavData:
    """The samples of a WAV file as they stand in it, whole frames only.

    `sample_bytes` is the width of a sample's container, `tag` a format tag (never EXTENSIBLE).
    """

    tag: int
    channels: int
    rate_hz: int
    sample_bytes: int
    body: bytes


def is_wav(data: bytes) -> bool:
    """Whether the first bytes are those of a WAV file (RIFF or its 64-bit form)."""
    return data[:4] in (b"RIFF", b"RF64") and data[8:12] == b"WAVE"


def read(data: bytes, where: str) -> WavData:
    """The format and samples of a WAV file.

    Raises AssetError: asset.truncated if the file ends before its samples, asset.format if the
    header makes no sense.
    """
    header: bytes | None = None
    body: tuple[int, int] | None = None
    long_length: int | None = None
    at = 12
    while at + _HEAD.size <= len(data) and (header is None or body is None):
        name, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if name == b"fmt ":
            header = data[at : at + length]
        elif name == b"ds64" and length >= 16:
            long_length = int.from_bytes(data[at + 8 : at + 16], "little")
        elif name == b"data" and body is None:
            length = _data_length(data, at, length, long_length)
            body = (at, at + length)
        at += length + (length & 1)
    if header is None or len(header) < _FORMAT.size or body is None:
        raise AssetError("asset.truncated", "the WAV file ends before its samples", where=where)
    return _checked(header, data[body[0] : body[1]], where)


def _data_length(data: bytes, at: int, length: int, long_length: int | None) -> int:
    rest = len(data) - at
    if length == 0xFFFFFFFF and long_length is not None:
        length = long_length
    if length in UNKNOWN_LENGTHS:
        return 0 if length == 0 and _only_chunks(data, at) else rest
    return min(length, rest)


def _only_chunks(data: bytes, at: int) -> bool:
    """Whether everything from `at` on is well-formed chunks: then a length of zero was meant."""
    while at + _HEAD.size <= len(data):
        name, length = _HEAD.unpack_from(data, at)
        if not all(0x20 <= byte < 0x7F for byte in name):
            return False
        at += _HEAD.size + length + (length & 1)
    return at in (len(data), len(data) + 1)


def _checked(header: bytes, body: bytes, where: str) -> WavData:
    tag, channels, rate_hz, _, block_bytes, bits = _FORMAT.unpack_from(header)
    if tag == Tag.EXTENSIBLE and len(header) >= 40 and header[26:40] == _GUID_TAIL:
        tag = int.from_bytes(header[24:26], "little")
    if not channels:
        raise AssetError("asset.format", "the WAV header says 0 channels", where=where)
    if tag in (Tag.ALAW, Tag.MULAW):
        sample_bytes = 1
    elif block_bytes and block_bytes % channels == 0 and block_bytes // channels * 8 >= bits:
        sample_bytes = block_bytes // channels
    else:
        sample_bytes = (bits + 7) // 8
    frame_bytes = max(1, sample_bytes * channels)
    return WavData(
        tag, channels, rate_hz, sample_bytes, body[: len(body) // frame_bytes * frame_bytes]
    )
