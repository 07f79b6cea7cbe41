"""Sinch's side of a voice stream: JSON commands, Linear16 in binary; waits to be answered.

It asks with a signed callback where the stream goes, and opens it without a header. It keeps 5 MB
of what it is to play and drops the oldest beyond that.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.channels.sinch_proof import sign
from gateway.errors import RuntimeFailure, ScenarioError
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask, first_line
from gateway.simulate.platforms.base import (
    Identity,
    Played,
    PlayoutBuffer,
    Wire,
    complain,
    object_of,
)

PATH = "/sinch/voice"
APPLICATION_KEY = "669E367E-6BBA-48AB-AF15-266871C28135"
MAX_BUFFER_BYTES: Final = 5_000_000
RATE_HZ: Final = 16000


def call_id(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class SinchPlatform:
    """One stream."""

    hangup_wait_s = 0.0

    def __init__(
        self,
        identity: Identity,
        rate_hz: int = RATE_HZ,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.identity = identity
        own = {"from": identity.from_, "to": identity.to}
        self._headers = {
            **(own if headers is None else headers),
            **{name: str(value) for name, value in identity.variables.items()},
        }
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
            "callHeaders": [{"key": key, "value": value} for key, value in self._headers.items()],
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
    """The callback of a call that comes in; the answer's `connectStream` names the socket."""
    told = {
        "event": "ice",
        "callid": identity.call_id,
        "version": 1,
        "applicationKey": access.key or APPLICATION_KEY,
        "cli": identity.from_,
        "to": {"type": "number", "endpoint": identity.to},
        "domain": "pstn",
    }
    body = orjson.dumps(told)
    answer = await ask(http, access.http(PATH), body=body, headers=_signed(access, body))
    try:
        action = orjson.loads(answer)["action"]
        url = action["destination"]["endpoint"]
        rate_hz = action["streamingOptions"]["sampleRate"]
        headers = {one["key"]: one["value"] for one in action["callHeaders"]}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise RuntimeFailure(
            "protocol.svaml", f"the callback's answer streams nothing: {first_line(answer)}"
        ) from None
    return Endpoint(url, SinchPlatform(identity, rate_hz, headers))


def _signed(access: Access, body: bytes) -> dict[str, str]:
    stamp = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    headers = {"Content-Type": "application/json", "x-timestamp": stamp}
    if not access.secret:
        return headers
    try:
        secret = base64.b64decode(access.secret, validate=True)
    except (binascii.Error, ValueError):
        raise ScenarioError(
            "scenario.secret", "the application's secret is not base64", where="--secret"
        ) from None
    signature = sign(secret, "POST", body, headers["Content-Type"], stamp, PATH)
    key = access.key or APPLICATION_KEY
    return {**headers, "Authorization": f"application {key}:{signature}"}


def configured(identity: Identity, platforms: PlatformsSettings) -> SinchPlatform:
    """What the settings ask for."""
    return SinchPlatform(identity, platforms.sinch.rate_hz)


SIDE = Side(
    SinchPlatform, call_id, find, configured=configured, proof="--key API_KEY --secret API_SECRET"
)
