"""FreeSWITCH mod_audio_stream's side: the community edition with an application that plays files.

Each `streamAudio` becomes a file; the application plays them one after the other, to their ends,
unless it obeys our `killAudio`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.audio_fork import call_uuid
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

PATH = "/audio-stream/media"


class StreamPlatform:
    """One stream. `binary`: the commercial edition, which plays binary messages."""

    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, rate_hz: int = 8000, *, binary: bool = False) -> None:
        self.identity = identity
        self.in_format = self.out_format = AudioFormat(Encoding.LINEAR16, rate_hz)
        self.streams = 0
        self.finished = False
        self._binary = binary
        self._buffer = PlayoutBuffer(self.out_format)

    @property
    def received_bytes(self) -> int:
        """Bytes that have arrived so far."""
        return self._buffer.received_bytes

    def open(self) -> list[Wire]:
        """The metadata that the dialplan gave."""
        metadata = {
            "call_id": self.identity.call_id,
            "from": self.identity.from_,
            "to": self.identity.to,
            **self.identity.variables,
        }
        return [orjson.dumps(metadata).decode()]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One binary message of 20 ms."""
        return [bytes(self.in_format.pcm_frame_bytes) if pcm is None else pcm]

    def digit(self, digit: str) -> list[Wire]:
        """A key, which only the application can tell (`send_text`)."""
        return [orjson.dumps({"event": "dtmf", "dtmf": digit}).decode()]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """Audio, or a text for the application."""
        if isinstance(message, bytes):
            if not self._binary:
                raise complain("audio_stream", "binary audio, which this edition drops")
            self._buffer.push(message)
            return []
        try:
            body = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("audio_stream", "a message that is not JSON") from None
        kind = body.get("type") if isinstance(body, dict) else None
        if kind == "streamAudio":
            self._buffer.push(self._file(body.get("data")))
            self.streams += 1
        elif kind == "killAudio":
            self._buffer.clear()
            self.streams += 1
        elif kind in ("disconnect", "transfer"):
            self.finished = True
        else:
            raise complain("audio_stream", f"a message of type {kind!r}")
        return []

    def _file(self, data: Any) -> bytes:
        if not isinstance(data, dict) or data.get("audioDataType") != "raw":
            raise complain("audio_stream", "a file that is no raw audio")
        if data.get("sampleRate") != self.out_format.rate_hz:
            raise complain("audio_stream", f"a file at {data.get('sampleRate')} Hz")
        try:
            return base64.b64decode(data["audioData"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise complain("audio_stream", "a file without data") from None

    def play(self) -> Played:
        """The next 20 ms."""
        data, _ = self._buffer.take()
        return Played(data)


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address that the dialplan gives; `STREAM_EXTRA_HEADERS` carry the proof.

    It is user and password, or, without a user, a bearer token.
    """
    return Endpoint(access.websocket(PATH), StreamPlatform(identity), access.credentials)


def configured(identity: Identity, platforms: PlatformsSettings) -> StreamPlatform:
    """The edition and the rate that the settings say."""
    settings = platforms.audio_stream
    return StreamPlatform(identity, settings.rate_hz, binary=settings.playback == "binary")


SIDE = Side(StreamPlatform, call_uuid, find, configured=configured)
