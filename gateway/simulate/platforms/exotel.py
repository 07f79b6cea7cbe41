"""Exotel's side of a Voicebot stream: JSON text, Linear16 in pieces of about 100 ms.

Numbers travel as strings. It wants audio in multiples of 320 bytes, with its number and time; the
marks that a clear overtakes it forgets.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.errors import RuntimeFailure
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask, first_line
from gateway.simulate.platforms.base import (
    Identity,
    Played,
    PlayoutBuffer,
    Wire,
    audio_of,
    complain,
    object_of,
)

ACCOUNT_SID = "exotel1"
MAX_CHUNK_BYTES: Final = 100_000
_MULTIPLE: Final = 320
_CHUNK_FRAMES: Final = 5


def call_sid(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


class ExotelPlatform:
    """One stream."""

    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, rate_hz: int = 8000) -> None:
        self.identity = identity
        self.in_format = self.out_format = AudioFormat(Encoding.LINEAR16, rate_hz)
        self.stream_sid = call_sid(f"stream {identity.call_id}")
        self._buffer = PlayoutBuffer(self.out_format)
        self._gathered: list[bytes] = []
        self._sequence = 0
        self._chunk = 0
        self._their_chunk = 0
        self.streams = 0
        self.finished = False
        """Never set: this dialect ends a call by closing the socket."""

    @property
    def received_bytes(self) -> int:
        """Bytes of audio that have arrived so far."""
        return self._buffer.received_bytes

    def _say(self, event: str, body: Mapping[str, Any]) -> str:
        self._sequence += 1
        head = {
            "event": event,
            "sequence_number": str(self._sequence),
            "stream_sid": self.stream_sid,
        }
        return orjson.dumps({**head, **body}).decode()

    def open(self) -> list[Wire]:
        """`connected`, then `start`."""
        start = {
            "stream_sid": self.stream_sid,
            "call_sid": self.identity.call_id,
            "account_sid": ACCOUNT_SID,
            "from": self.identity.from_,
            "to": self.identity.to,
            "custom_parameters": {
                name: str(value) for name, value in self.identity.variables.items()
            },
            "media_format": {
                "encoding": "audio/x-raw",
                "sample_rate": str(self.in_format.rate_hz),
                "bit_rate": "16",
            },
        }
        return ['{"event":"connected"}', self._say("start", {"start": start})]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` for five frames."""
        self._gathered.append(self.in_format.silence if pcm is None else pcm)
        if len(self._gathered) < _CHUNK_FRAMES:
            return []
        return self._flush()

    def _flush(self) -> list[Wire]:
        data, self._gathered = b"".join(self._gathered), []
        if not data:
            return []
        self._chunk += 1
        media = {
            "chunk": str(self._chunk),
            "timestamp": str(self._chunk * _CHUNK_FRAMES * 20),
            "payload": base64.b64encode(data).decode(),
        }
        return [self._say("media", {"media": media})]

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        return [self._say("dtmf", {"dtmf": {"digit": digit, "duration": "100"}})]

    def hangup(self) -> list[Wire]:
        """What was gathered, and `stop`; the socket closes after it."""
        stop = {
            "call_sid": self.identity.call_id,
            "account_sid": ACCOUNT_SID,
            "reason": "callended",
        }
        return [*self._flush(), self._say("stop", {"stop": stop})]

    def receive(self, message: Wire) -> list[Wire]:
        """`media`, `mark` or `clear` of the gateway."""
        told = object_of("exotel", message)
        if told.get("stream_sid") != self.stream_sid:
            raise complain("exotel", f"stream_sid {told.get('stream_sid')!r} is not this stream's")
        event = told.get("event")
        if event == "media":
            self._media(told)
            return []
        self.streams += 1
        if event == "mark":
            mark = told.get("mark")
            name = mark.get("name") if isinstance(mark, dict) else None
            if not isinstance(name, str) or not name:
                raise complain("exotel", "a mark without a name")
            return [self._mark(reached) for reached in self._buffer.mark(name)]
        if event == "clear":
            self._buffer.clear()
            return []
        raise complain("exotel", f"unknown event {event!r}")

    def _media(self, told: Mapping[str, Any]) -> None:
        media = told.get("media")
        if not isinstance(media, dict):
            raise complain("exotel", "media without media")
        if "sequence_number" not in told or not {"chunk", "timestamp"} <= media.keys():
            raise complain("exotel", "audio without its number and time")
        data = audio_of("exotel", media.get("payload"))
        if len(data) % _MULTIPLE or not 0 < len(data) <= MAX_CHUNK_BYTES:
            raise complain("exotel", f"{len(data)} bytes: no multiple of {_MULTIPLE}, or too many")
        if int(media["chunk"]) <= self._their_chunk:
            raise complain("exotel", f"chunk {media['chunk']} after {self._their_chunk}")
        self._their_chunk = int(media["chunk"])
        self._buffer.push(data)

    def _mark(self, name: str) -> str:
        return self._say("mark", {"mark": {"name": name}})

    def play(self) -> Played:
        """20 ms from the buffer, and the marks that were reached."""
        data, names = self._buffer.take()
        return Played(data, tuple(self._mark(name) for name in names))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The applet's address, asked for the socket's, with Basic credentials."""
    query = {
        "CallSid": identity.call_id,
        "CallFrom": identity.from_,
        "CallTo": identity.to,
        "Direction": "incoming",
    }
    url = access.http(f"/exotel/voice?{urlencode(query)}")
    answer = await ask(http, url, method="GET", headers=access.credentials)
    try:
        told = orjson.loads(answer)
        socket = str(told["url"])
        rate_hz = int(parse_qs(urlsplit(socket).query).get("sample-rate", ["8000"])[0])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise RuntimeFailure(
            "protocol.applet", f"the answer names no socket: {first_line(answer)}"
        ) from None
    return Endpoint(socket, ExotelPlatform(identity, rate_hz))


def configured(identity: Identity, platforms: PlatformsSettings) -> ExotelPlatform:
    """The rate that our own answer asks for."""
    return ExotelPlatform(identity, platforms.exotel.rate_hz)


SIDE = Side(ExotelPlatform, call_sid, find, configured=configured)
