"""A plain audio client: the format in the query, binary messages both ways."""

from __future__ import annotations

import hashlib
from urllib.parse import urlencode

import aiohttp

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.channels.dialect import Request
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

PATH = "/raw/media"
_NAMES = {Encoding.MULAW: "mulaw", Encoding.ALAW: "alaw", Encoding.LINEAR16: "l16"}


def short_id(name: str) -> str:
    """A call id, always the same for `name`."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def query_of(identity: Identity, audio: AudioFormat = MULAW_8K) -> dict[str, str]:
    """The fields of the address."""
    named = {
        "encoding": _NAMES[audio.encoding],
        "rate": str(audio.rate_hz),
        "call_id": identity.call_id,
        "from": identity.from_,
        "to": identity.to,
        **{key: str(value) for key, value in identity.variables.items()},
    }
    return {name: value for name, value in named.items() if value}


class RawPlatform:
    """One socket."""

    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, audio: AudioFormat = MULAW_8K) -> None:
        self.identity = identity
        self.in_format = self.out_format = audio
        self.streams = 0
        self.finished = False
        """Never set: only the socket's close ends a call."""
        self._buffer = PlayoutBuffer(audio)

    @property
    def received_bytes(self) -> int:
        """Bytes that have arrived so far."""
        return self._buffer.received_bytes

    def open(self) -> list[Wire]:
        """Nothing: the address has said all."""
        return []

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One binary message of 20 ms."""
        return [
            self.in_format.silence if pcm is None else g711.encode(pcm, self.in_format.encoding)
        ]

    def digit(self, digit: str) -> list[Wire]:
        """The key as text."""
        return [digit]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """Audio and nothing else."""
        if isinstance(message, str):
            raise complain("raw", "a text message")
        self._buffer.push(message)
        return []

    def play(self) -> Played:
        """The next 20 ms."""
        data, _ = self._buffer.take()
        return Played(g711.decode(data, self.out_format.encoding))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address with its query; the bearer token is the proof."""
    url = access.websocket(f"{PATH}?{urlencode(query_of(identity))}")
    return Endpoint(url, RawPlatform(identity), access.headers)


def upgrade(identity: Identity) -> Request:
    """The query as the server would read it."""
    query = query_of(identity)
    return Request(PATH, urlencode(query), {name: [value] for name, value in query.items()})


SIDE = Side(RawPlatform, short_id, find, upgrade)
