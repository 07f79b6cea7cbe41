"""Telnyx' side of a media stream in `rtp` mode: JSON text, the directions in different codecs.

The caller's leg has agreed on A-law, as in Europe; what is played is what the answer asked for.
Every fifth message of audio is overtaken by the next one. Marks that a clear overtakes are lost.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.errors import RuntimeFailure, ScenarioError
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain
from gateway.simulate.platforms.xml_answer import Stream, stream_of

USER_ID = "3e6f995f-85f7-4705-9741-53b116d28237"
MAX_MESSAGE_S: Final = 30
_SHUFFLE: Final = 5


def call_control_id(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    digest = hashlib.sha256(name.encode()).digest()
    return "v3:" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class TelnyxPlatform:
    """One stream. `custom`: the parameters of the answer; `out_format`: what it asked for."""

    in_format = ALAW_8K
    hangup_wait_s = 0.0

    def __init__(
        self,
        identity: Identity,
        custom: dict[str, Any] | None = None,
        out_format: AudioFormat = MULAW_8K,
    ) -> None:
        self.identity = identity
        self.out_format = out_format
        self.stream_id = hashlib.sha256(identity.call_id.encode()).hexdigest()[:32]
        self._custom = {**(custom or {}), **identity.variables}
        self._buffer = PlayoutBuffer(out_format)
        self._sequence = 0
        self._chunk = 0
        self._overtaken: list[Wire] = []
        self.streams = 0
        self.finished = False
        """Never set: this dialect ends a call by closing the socket."""

    @property
    def received_bytes(self) -> int:
        """Encoded bytes that have arrived so far."""
        return self._buffer.received_bytes

    def _say(self, event: str, body: dict[str, Any]) -> str:
        self._sequence += 1
        head = {
            "event": event,
            "sequence_number": str(self._sequence),
            "stream_id": self.stream_id,
        }
        return orjson.dumps({**head, **body}).decode()

    def open(self) -> list[Wire]:
        """`connected`, then `start`."""
        start = {
            "user_id": USER_ID,
            "call_control_id": self.identity.call_id,
            "client_state": base64.b64encode(b"simulated").decode(),
            "custom_parameters": self._custom,
            "from": self.identity.from_,
            "to": self.identity.to,
            "media_format": {"encoding": "PCMA", "sample_rate": 8000, "channels": 1},
        }
        return ['{"event":"connected","version":"1.0.0"}', self._say("start", {"start": start})]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` of 20 ms, or none or two: every fifth comes behind the next."""
        data = self.in_format.silence if pcm is None else g711.encode(pcm, self.in_format.encoding)
        self._chunk += 1
        body = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str((self._chunk - 1) * 20),
            "payload": base64.b64encode(data).decode(),
        }
        message = self._say("media", {"media": body})
        if self._chunk % _SHUFFLE == 0:
            self._overtaken.append(message)
            return []
        late, self._overtaken = self._overtaken, []
        return [message, *late]

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        moment = "2026-01-01T00:00:00.000000Z"
        return [self._say("dtmf", {"occurred_at": moment, "dtmf": {"digit": digit}})]

    def hangup(self) -> list[Wire]:
        """`stop`; the socket closes after it."""
        stop = {"user_id": USER_ID, "call_control_id": self.identity.call_id}
        return [self._say("stop", {"stop": stop})]

    def receive(self, message: Wire) -> list[Wire]:
        """`media`, `mark` or `clear` of the gateway."""
        if isinstance(message, bytes):
            raise complain("telnyx", "a binary message")
        try:
            told = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("telnyx", "a message that is not JSON") from None
        event = told.get("event") if isinstance(told, dict) else None
        if event == "media":
            self._media(told.get("media"))
            return []
        self.streams += 1
        if event == "mark":
            mark = told.get("mark")
            name = mark.get("name") if isinstance(mark, dict) else None
            if not isinstance(name, str) or not name:
                raise complain("telnyx", "a mark without a name")
            return [self._mark(reached) for reached in self._buffer.mark(name)]
        if event == "clear":
            self._buffer.clear()
            return []
        raise complain("telnyx", f"unknown event {event!r}")

    def _media(self, media: Any) -> None:
        payload = media.get("payload") if isinstance(media, dict) else None
        try:
            data = base64.b64decode(payload, validate=True)  # type: ignore[arg-type]
        except (TypeError, binascii.Error):
            raise complain("telnyx", "media without base64 audio") from None
        frame_bytes = self.out_format.frame_bytes
        if not frame_bytes <= len(data) <= frame_bytes * 50 * MAX_MESSAGE_S:
            raise complain("telnyx", f"{len(data)} bytes: shorter than 20 ms or longer than 30 s")
        self._buffer.push(data)

    def _mark(self, name: str) -> str:
        return self._say("mark", {"mark": {"name": name}})

    def play(self) -> Played:
        """20 ms from the buffer, and the marks that were reached."""
        data, names = self._buffer.take()
        pcm = g711.decode(data, self.out_format.encoding)
        return Played(pcm, tuple(self._mark(name) for name in names))


def out_format_of(stream: Stream) -> AudioFormat:
    """What the answer asked for. Raises RuntimeFailure where nothing could be played of it."""
    if stream.attributes.get("bidirectionalMode") != "rtp":
        raise RuntimeFailure("protocol.texml", "without bidirectionalMode=rtp nothing is played")
    codec = stream.attributes.get("bidirectionalCodec", "PCMU")
    rate_hz = int(stream.attributes.get("bidirectionalSamplingRate", 8000))
    encodings = {"PCMU": Encoding.MULAW, "PCMA": Encoding.ALAW, "L16": Encoding.LINEAR16}
    if codec not in encodings:
        raise RuntimeFailure("protocol.texml", f"unknown codec {codec!r}")
    return AudioFormat(encodings[codec], rate_hz)


def signed(secret: str, body: bytes) -> dict[str, str]:
    """The signature of a webhook, made now. `secret`: the private key's 32 bytes as base64."""
    try:
        key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(secret, validate=True))
    except (binascii.Error, ValueError):
        raise ScenarioError(
            "scenario.secret",
            "the platform's secret is no Ed25519 private key",
            hint="32 bytes as base64; its public half belongs into platforms.telnyx.public_keys",
        ) from None
    stamp = str(int(time.time()))
    signature = key.sign(f"{stamp}|".encode() + body)
    return {
        "telnyx-signature-ed25519": base64.b64encode(signature).decode(),
        "telnyx-timestamp": stamp,
    }


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The TeXML webhook, signed with `secret`; its answer names the socket and the codec."""
    form = {
        "AccountSid": USER_ID,
        "CallSid": identity.call_id,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "From": identity.from_,
        "To": identity.to,
    }
    body = urlencode(form).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if access.secret:
        headers |= signed(access.secret, body)
    answer = await ask(http, access.http("/telnyx/texml"), body=body, headers=headers)
    stream = stream_of(answer)
    platform = TelnyxPlatform(identity, dict(stream.parameters), out_format_of(stream))
    return Endpoint(stream.url, platform)


SIDE = Side(TelnyxPlatform, call_control_id, find, proof="--secret PRIVATE_KEY")
