"""SignalWire's side of a stream: JSON text, mu-law or Linear16, marks and clear, keys both ways.

`start` holds the stream's id only inside, `stop` has no body. Marks that wait come back at once
on `clear`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import uuid
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.errors import RuntimeFailure
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain
from gateway.simulate.platforms.xml_answer import stream_of

PROJECT_ID = "1ab2c3d4-0000-4000-8000-00000000abcd"


def call_uuid(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class SignalWirePlatform:
    """One stream. `custom`: the parameters of the answer."""

    hangup_wait_s = 0.0

    def __init__(
        self,
        identity: Identity,
        custom: Mapping[str, str] | None = None,
        audio: AudioFormat = MULAW_8K,
    ) -> None:
        self.identity = identity
        self.in_format = self.out_format = audio
        self.stream_sid = call_uuid(f"stream {identity.call_id}")
        own = {"from": identity.from_, "to": identity.to}
        told = {**(own if custom is None else custom), **identity.variables}
        self._custom = {name: str(value) for name, value in told.items()}
        self._buffer = PlayoutBuffer(audio)
        self._sequence = 0
        self._chunk = 0
        self.keys = ""
        """What the gateway has pressed towards the caller."""
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
            "sequenceNumber": str(self._sequence),
            "streamSid": self.stream_sid,
        }
        return orjson.dumps({**head, **body}).decode()

    def open(self) -> list[Wire]:
        """`connected`, then `start`, whose custom parameters may be missing."""
        linear = self.in_format.encoding is Encoding.LINEAR16
        start: dict[str, Any] = {
            "streamSid": self.stream_sid,
            "accountSid": PROJECT_ID,
            "callSid": self.identity.call_id,
            "tracks": ["inbound"],
            "mediaFormat": {
                "encoding": "audio/x-L16" if linear else "audio/x-mulaw",
                "sampleRate": self.in_format.rate_hz,
                "channels": 1,
            },
        }
        if self._custom:
            start["customParameters"] = self._custom
        self._sequence += 1
        told = {"event": "start", "sequenceNumber": str(self._sequence), "start": start}
        return [
            '{"event":"connected","protocol":"Call","version":"0.2.0"}',
            orjson.dumps(told).decode(),
        ]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` of 20 ms."""
        data = self.in_format.silence if pcm is None else g711.encode(pcm, self.in_format.encoding)
        self._chunk += 1
        body = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str((self._chunk - 1) * 20),
            "payload": base64.b64encode(data).decode(),
        }
        return [self._say("media", {"media": body})]

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        return [self._say("dtmf", {"dtmf": {"digit": digit, "duration": 100}})]

    def hangup(self) -> list[Wire]:
        """`stop` without a body; the socket closes after it."""
        return [self._say("stop", {})]

    def receive(self, message: Wire) -> list[Wire]:
        """`media`, `mark`, `clear` or `dtmf` of the gateway."""
        if isinstance(message, bytes):
            raise complain("signalwire", "a binary message")
        try:
            told = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("signalwire", "a message that is not JSON") from None
        if not isinstance(told, dict) or told.get("streamSid") != self.stream_sid:
            raise complain("signalwire", "a message without this stream's streamSid")
        event = told.get("event")
        if event == "media":
            self._media(told.get("media"))
            return []
        self.streams += 1
        if event == "mark":
            name = _field(told.get("mark"), "name")
            if not name:
                raise complain("signalwire", "a mark without a name")
            return [self._mark(reached) for reached in self._buffer.mark(name)]
        if event == "clear":
            return [self._mark(name) for name in self._buffer.clear()]
        if event == "dtmf":
            digit = _field(told.get("dtmf"), "digit")
            if re.fullmatch(r"[0-9*#A-Da-d]", digit) is None:
                raise complain("signalwire", f"a key {digit!r}")
            self.keys += digit
            return []
        raise complain("signalwire", f"unknown event {event!r}")

    def _media(self, media: Any) -> None:
        try:
            data = base64.b64decode(_field(media, "payload"), validate=True)
        except binascii.Error:
            data = b""
        if not data or len(data) % self.out_format.sample_bytes:
            raise complain("signalwire", "media without whole samples in base64")
        self._buffer.push(data)

    def _mark(self, name: str) -> str:
        return self._say("mark", {"mark": {"name": name}})

    def play(self) -> Played:
        """20 ms from the buffer, and echoes of the marks that were reached."""
        data, names = self._buffer.take()
        pcm = g711.decode(data, self.out_format.encoding)
        return Played(pcm, tuple(self._mark(name) for name in names))


def _field(body: Any, name: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


def audio_of(codec: str) -> AudioFormat:
    """What a `codec` attribute means. Raises RuntimeFailure for another one."""
    found = {
        "PCMU@8000h": MULAW_8K,
        "L16@16000h": AudioFormat(Encoding.LINEAR16, 16000),
        "L16@24000h": AudioFormat(Encoding.LINEAR16, 24000),
    }.get(codec)
    if found is None:
        raise RuntimeFailure("protocol.cxml", f"codec_error: {codec!r}")
    return found


def signature(url: str, form: Mapping[str, str], signing_key: str) -> str:
    """The signature of a webhook: the address, then the sorted fields."""
    text = url + "".join(name + form[name] for name in sorted(form))
    return base64.b64encode(hmac.digest(signing_key.encode(), text.encode(), "sha1")).decode()


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The voice webhook, signed with `secret`; its answer names socket, codec and parameters."""
    url = access.http("/signalwire/voice")
    form = {
        "AccountSid": PROJECT_ID,
        "CallSid": identity.call_id,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "From": identity.from_,
        "To": identity.to,
    }
    headers = {}
    if access.secret:
        headers["X-SignalWire-Signature"] = signature(url, form, access.secret)
    stream = stream_of(await ask(http, url, form=form, headers=headers))
    audio = audio_of(stream.attributes.get("codec", "PCMU@8000h"))
    return Endpoint(stream.url, SignalWirePlatform(identity, stream.parameters, audio))


SIDE = Side(SignalWirePlatform, call_uuid, find, proof="--secret SIGNING_KEY")
