"""A dialect seen from the far side: what a platform does with its socket and play-out buffer.

Written from the platforms' own descriptions and sharing no codec with `gateway.channels`, so that
a mistake there shows here. Sans-IO: messages in, messages out; the owner brings the 20 ms clock.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from gateway.audio import g711
from gateway.audio.formats import AudioFormat, Pcm
from gateway.errors import ProtocolError

Wire = str | bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls. `call_id` is the platform's own and names the call on the gateway as well."""

    call_id: str
    from_: str = ""
    to: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Sequence[Any]] | None = None
    """What functions of the caller's client answer, call after call and the last again, in
    dialects that have such a client. None: it leaves all calls unanswered."""


@dataclass(frozen=True, slots=True)
class Played:
    """20 ms of what the caller hears, and what the platform has to say because it was played."""

    pcm: Pcm
    replies: tuple[Wire, ...] = ()


class Platform(Protocol):
    """One call's platform side of one dialect."""

    in_format: AudioFormat
    """What the platform sends."""
    out_format: AudioFormat
    """What the gateway sends."""
    hangup_wait_s: float
    """How long it waits, after its hang-up messages, for the gateway to close first."""

    @property
    def received_bytes(self) -> int:
        """Encoded audio that has arrived so far."""
        ...

    @property
    def streams(self) -> int:
        """Goes up where one stretch of audio has ended and another may begin."""
        ...

    @property
    def finished(self) -> bool:
        """The gateway ended the call in the dialect's words and everything was played."""
        ...

    def open(self) -> list[Wire]:
        """Messages as soon as the socket is open."""
        ...

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """Messages for 20 ms of caller audio (PCM at the input rate); None: silence."""
        ...

    def digit(self, digit: str) -> list[Wire]:
        """Messages for one key."""
        ...

    def hangup(self) -> list[Wire]:
        """Messages when the caller hangs up; the owner closes the socket after them."""
        ...

    def receive(self, message: Wire) -> list[Wire]:
        """Take a gateway message; answer at once. Raises ProtocolError on what is not allowed."""
        ...

    def play(self) -> Played:
        """Play the next 20 ms."""
        ...


class PlayoutBuffer:
    """Encoded audio and marks in order of arrival; plays one frame at a time."""

    def __init__(self, audio: AudioFormat) -> None:
        self._format = audio
        self._items: deque[bytes | str] = deque()
        self._buffered_bytes = 0
        self.received_bytes = 0

    @property
    def buffered_s(self) -> float:
        """Seconds of audio waiting."""
        return self._buffered_bytes / (self._format.rate_hz * self._format.sample_bytes)

    def push(self, data: bytes) -> None:
        """Append encoded audio."""
        if data:
            self._items.append(data)
            self._buffered_bytes += len(data)
            self.received_bytes += len(data)

    def mark(self, name: str) -> list[str]:
        """Append a mark; with nothing before it, it is reached at once and returned."""
        if not self._items:
            return [name]
        self._items.append(name)
        return []

    def clear(self) -> list[str]:
        """Drop all audio; every waiting mark comes back."""
        names = [item for item in self._items if isinstance(item, str)]
        self._items.clear()
        self._buffered_bytes = 0
        return names

    def take(self) -> tuple[bytes, list[str]]:
        """One frame of encoded audio (silence where there is none) and the marks now reached."""
        wanted = self._format.frame_bytes
        parts: list[bytes] = []
        names: list[str] = []
        while self._items:
            item = self._items[0]
            if isinstance(item, str):
                names.append(item)
                self._items.popleft()
                continue
            if wanted == 0:
                break
            piece = item[:wanted]
            parts.append(piece)
            wanted -= len(piece)
            self._buffered_bytes -= len(piece)
            if len(piece) == len(item):
                self._items.popleft()
            else:
                self._items[0] = item[len(piece) :]
        if wanted:
            parts.append(self._format.silence[:wanted])
        return b"".join(parts), names


def complain(dialect: str, message: str) -> ProtocolError:
    """The platform's objection to what the gateway sent."""
    return ProtocolError(
        "protocol.gateway", f"the gateway broke the {dialect} dialect: {message}", close_code=1002
    )


def object_of(dialect: str, message: Wire) -> dict[str, Any]:
    """A text message that is a JSON object. Raises ProtocolError."""
    if isinstance(message, bytes):
        raise complain(dialect, "a binary message")
    try:
        told = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise complain(dialect, "a message that is not JSON") from None
    if not isinstance(told, dict):
        raise complain(dialect, "a message that is not an object")
    return told


def audio_of(dialect: str, payload: object) -> bytes:
    """Audio as base64. Raises ProtocolError."""
    try:
        return base64.b64decode(payload, validate=True)  # type: ignore[arg-type]
    except (TypeError, binascii.Error):
        raise complain(dialect, "audio that is not base64") from None


def payload_of(audio: AudioFormat, pcm: Pcm | None) -> str:
    """20 ms of the caller as base64; None: silence."""
    data = audio.silence if pcm is None else g711.encode(pcm, audio.encoding)
    return base64.b64encode(data).decode()
