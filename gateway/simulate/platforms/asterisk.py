"""Asterisk's side of a media websocket (chan_websocket), in either control language.

Plays one frame of its own a tick, whatever came in. Its queue holds 1000 frames: from 900 on it
asks us to stop (XOFF), below 800 to go on (XON), and a message that finds it full is lost without a
word. A flush destroys the marks in the queue and never reports them. Commands above 128 bytes are
not read; the real one keeps silent about that, this one complains.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal
from urllib.parse import quote

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import (
    Identity,
    Played,
    PlayoutBuffer,
    Wire,
    complain,
)

PATH = "/asterisk/media"
MAX_MESSAGE_BYTES = 65_500
MAX_COMMAND_BYTES = 128
QUEUE_FRAMES = 1000
XOFF_FRAMES = 900
XON_FRAMES = 800
FORMATS = {
    "ulaw": MULAW_8K,
    "alaw": ALAW_8K,
    "slin": AudioFormat(Encoding.LINEAR16, 8000),
    "slin16": AudioFormat(Encoding.LINEAR16, 16000),
    "slin24": AudioFormat(Encoding.LINEAR16, 24000),
    "slin48": AudioFormat(Encoding.LINEAR16, 48000),
}
Control = Literal["json", "plain"]


def unique_id(name: str) -> str:
    """A channel id in Asterisk's shape, always the same for `name`."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
    return f"17{number % 10**8:08}.{number // 10**8 % 10**5}"


class AsteriskPlatform:
    """One WebSocket channel. Plain control carries no channel variables."""

    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, control: Control = "json", codec: str = "ulaw") -> None:
        self.identity = identity
        self.control = control
        self.codec = codec
        self.in_format = self.out_format = FORMATS[codec]
        self.streams = 0
        self.finished = False
        self.lost_frames = 0
        self._buffer = PlayoutBuffer(self.out_format)
        self._silence = self.in_format.silence
        self._ready: list[Wire] = []
        self._full = False
        self._paused = False
        self._sending = True

    @property
    def received_bytes(self) -> int:
        """Bytes that were queued so far."""
        return self._buffer.received_bytes

    @property
    def _frames(self) -> int:
        return round(self._buffer.buffered_s * 50)

    def open(self) -> list[Wire]:
        """`MEDIA_START`, with the channel variables where the language has room for them."""
        channel_id = self.identity.call_id
        start: dict[str, Any] = {
            "connection_id": "voice",
            "channel": f"WebSocket/voice/0x{hashlib.sha256(channel_id.encode()).hexdigest()[:12]}",
            "channel_id": channel_id,
            "format": self.codec,
            "optimal_frame_size": self.out_format.frame_bytes,
            "ptime": 20,
        }
        if self.control == "plain":
            return [" ".join(["MEDIA_START", *(f"{k}:{v}" for k, v in start.items())])]
        named = {"from": self.identity.from_, "to": self.identity.to}
        variables = {key: str(value) for key, value in self.identity.variables.items()}
        start["channel_variables"] = {**named, **variables}
        return [orjson.dumps({"event": "MEDIA_START", **start}).decode()]

    def _event(self, name: str, **fields: str) -> str:
        if self.control == "json":
            body = {"event": name, "channel_id": self.identity.call_id, **fields}
            return orjson.dumps(body).decode()
        if name == "DTMF_END":
            return f"{name} digit:{fields['digit']} channel_id:{self.identity.call_id}"
        return " ".join([name, *fields.values()])

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One binary frame, unless the gateway wants none."""
        if not self._sending:
            return []
        return [self._silence if pcm is None else g711.encode(pcm, self.in_format.encoding)]

    def digit(self, digit: str) -> list[Wire]:
        """`DTMF_END`."""
        return [self._event("DTMF_END", digit=digit)]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """Audio, or a command."""
        if isinstance(message, bytes):
            return self._audio(message)
        if len(message.encode()) > MAX_COMMAND_BYTES:
            raise complain("asterisk", "a command above 128 bytes, which is not read")
        name, identifier = self._command(message)
        if name == "MARK_MEDIA":
            self.streams += 1
            for reached in self._buffer.mark(identifier):
                self._ready.append(self._mark(reached))
        elif name == "FLUSH_MEDIA":
            return self._flush()
        elif name == "HANGUP":
            self.finished = True
        elif name in ("PAUSE_MEDIA", "CONTINUE_MEDIA"):
            self._paused = name == "PAUSE_MEDIA"
        elif name == "SET_MEDIA_DIRECTION" and identifier in ("both", "out"):
            self._sending = identifier == "both"
        else:
            raise complain("asterisk", f"the command {name!r}")
        return []

    def _command(self, message: str) -> tuple[str, str]:
        if self.control == "plain":
            name, _, identifier = message.partition(" ")
            return name, identifier
        try:
            body = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("asterisk", "a command that is not JSON") from None
        if not isinstance(body, dict) or not isinstance(body.get("command"), str):
            raise complain("asterisk", "a message without a command")
        return body["command"], str(body.get("correlation_id", body.get("direction", "")))

    def _audio(self, data: bytes) -> list[Wire]:
        if len(data) > MAX_MESSAGE_BYTES:
            raise complain("asterisk", f"a message of {len(data)} bytes")
        frame_bytes = self.out_format.frame_bytes
        if not data or len(data) % frame_bytes:
            raise complain("asterisk", f"{len(data)} bytes, which are no whole frames")
        if self._frames >= QUEUE_FRAMES:
            self.lost_frames += len(data) // frame_bytes
            return []
        self._buffer.push(data)
        if self._frames >= XOFF_FRAMES and not self._full:
            self._full = True
            return [self._event("MEDIA_XOFF")]
        return []

    def _flush(self) -> list[Wire]:
        self.streams += 1
        self._buffer.clear()
        self._ready.clear()
        return self._room()

    def _room(self) -> list[Wire]:
        if self._full and self._frames < XON_FRAMES:
            self._full = False
            return [self._event("MEDIA_XON")]
        return []

    def _mark(self, identifier: str) -> str:
        return self._event("MEDIA_MARK_PROCESSED", correlation_id=identifier)

    def play(self) -> Played:
        """The next frame; marks that are reached are told in the same tick."""
        if self._paused:
            return Played(bytes(self.out_format.pcm_frame_bytes))
        replies, self._ready = self._ready, []
        data, names = self._buffer.take()
        replies += [self._mark(name) for name in names]
        replies += self._room()
        return Played(g711.decode(data, self.out_format.encoding), tuple(replies))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address in `websocket_client.conf`, with its user and password."""
    # The call is in the query only so that a person sees it in a trace.
    url = access.websocket(f"{PATH}?call={quote(identity.call_id)}")
    return Endpoint(url, AsteriskPlatform(identity), access.credentials, ("media",))


SIDE = Side(AsteriskPlatform, unique_id, find)
