"""Sinch's side of a voice stream: JSON commands, Linear16 in binary; waits to be answered.

Keeps 5 MB of what it is to play and drops the oldest beyond that.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import Final

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import (
    Identity,
    Played,
    PlayoutBuffer,
    Wire,
    complain,
    object_of,
)

PATH = "/sinch/media"
APPLICATION_KEY = "669E367E-6BBA-48AB-AF15-266871C28135"
MAX_BUFFER_BYTES: Final = 5_000_000
RATE_HZ: Final = 16000


def call_id(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class SinchPlatform:
    """One stream."""

    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, rate_hz: int = RATE_HZ) -> None:
        self.identity = identity
        self.in_format = self.out_format = AudioFormat(Encoding.LINEAR16, rate_hz)
        self.streams = 0
        self.finished = False
        """Set where the gateway does not take the call."""
        self.answered = False
        self._buffer = PlayoutBuffer(self.out_format)

    @property
    def received_bytes(self) -> int:
        """Bytes of audio that have arrived so far."""
        return self._buffer.received_bytes

    def open(self) -> list[Wire]:
        """`connect`."""
        identity = self.identity
        told = {
            "command": "connect",
            "version": "1",
            "callId": identity.call_id,
            "applicationKey": APPLICATION_KEY,
            "codec": "PCM",
            "sampleRate": self.in_format.rate_hz,
            "callHeaders": {
                "from": identity.from_,
                "to": identity.to,
                **{name: str(value) for name, value in identity.variables.items()},
            },
        }
        return [orjson.dumps(told).decode()]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """20 ms in binary, once the call is answered."""
        if not self.answered:
            return []
        return [self.in_format.silence if pcm is None else pcm]

    def digit(self, digit: str) -> list[Wire]:
        """Nothing: keys do not come by the socket."""
        return []

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """Audio, `answer`, `busy`, `reject`, `clear` or `heartbeat`."""
        if isinstance(message, bytes):
            if not self.answered:
                raise complain("sinch", "audio before answer")
            if len(message) % 2:
                raise complain("sinch", "half a sample")
            self._buffer.push(message)
            while self._buffer.buffered_s * self.out_format.rate_hz * 2 > MAX_BUFFER_BYTES:
                self._buffer.take()
            return []
        command = object_of("sinch", message).get("command")
        if command in ("answer", "busy", "reject"):
            if self.answered:
                raise complain("sinch", f"{command} to a call that is answered")
            self.answered = command == "answer"
            self.finished = not self.answered
        elif command == "clear":
            self.streams += 1
            self._buffer.clear()
        elif command != "heartbeat":
            raise complain("sinch", f"unknown command {command!r}")
        return []

    def play(self) -> Played:
        """20 ms from the buffer."""
        data, _ = self._buffer.take()
        return Played(data)


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address as configured there, with Basic credentials."""
    return Endpoint(access.websocket(PATH), SinchPlatform(identity), access.basic)


SIDE = Side(SinchPlatform, call_id, find)
