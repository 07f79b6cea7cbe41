"""Plivo's side of an audio stream: JSON text, mu-law or Linear16, checkpoints and clear.

It begins with `start` and ends without a word: the socket closes. Reports a checkpoint once
everything before it was played; those that a clear overtakes it forgets.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding, Pcm
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
    payload_of,
)

ACCOUNT_ID = "MAXXXXXXXXXXXXXXXXXX"
_NAMES: Final = {Encoding.MULAW: "audio/x-mulaw", Encoding.LINEAR16: "audio/x-l16"}


def call_uuid(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class PlivoPlatform:
    """One stream. `headers`: the answer's custom values, `k1=v1,k2=v2`."""

    hangup_wait_s = 0.0

    def __init__(
        self, identity: Identity, headers: str | None = None, audio: AudioFormat = MULAW_8K
    ) -> None:
        self.identity = identity
        self.in_format = self.out_format = audio
        self.stream_id = call_uuid(f"stream {identity.call_id}")
        told = dict(pair.split("=", 1) for pair in (headers or "").split(",") if "=" in pair)
        if headers is None:
            told = {"from": _bare(identity.from_), "to": _bare(identity.to)}
        told |= {name: str(value) for name, value in identity.variables.items()}
        self._headers = orjson.dumps(told).decode()
        self._buffer = PlayoutBuffer(audio)
        self._sequence = 0
        self._chunk = 0
        self.streams = 0
        self.finished = False
        """Set where the gateway stops the stream in words."""

    @property
    def received_bytes(self) -> int:
        """Encoded bytes that have arrived so far."""
        return self._buffer.received_bytes

    def _say(self, event: str, body: Mapping[str, Any]) -> str:
        told = {"event": event, "sequenceNumber": self._sequence, **body}
        self._sequence += 1
        return orjson.dumps(told).decode()

    def open(self) -> list[Wire]:
        """`start`, the first message."""
        start = {
            "callId": self.identity.call_id,
            "streamId": self.stream_id,
            "accountId": ACCOUNT_ID,
            "tracks": ["inbound"],
            "mediaFormat": {
                "encoding": _NAMES[self.in_format.encoding],
                "sampleRate": self.in_format.rate_hz,
            },
        }
        return [self._say("start", {"start": start, "extra_headers": self._headers})]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` of 20 ms."""
        self._chunk += 1
        media = {
            "track": "inbound",
            "timestamp": str(self._chunk * 20),
            "chunk": self._chunk,
            "payload": payload_of(self.in_format, pcm),
        }
        return [
            self._say(
                "media",
                {"streamId": self.stream_id, "media": media, "extra_headers": self._headers},
            )
        ]

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        dtmf = {"track": "inbound", "digit": digit, "timestamp": str(self._chunk * 20)}
        return [self._say("dtmf", {"streamId": self.stream_id, "dtmf": dtmf})]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """`playAudio`, `checkpoint`, `clearAudio`, and the `stop` of kindred platforms."""
        told = object_of("plivo", message)
        event = told.get("event")
        if event == "playAudio":
            self._play_audio(told.get("media"))
            return []
        if told.get("streamId") != self.stream_id:
            raise complain("plivo", f"streamId {told.get('streamId')!r} is not this stream's")
        self.streams += 1
        if event == "checkpoint":
            name = told.get("name")
            if not isinstance(name, str) or not name:
                raise complain("plivo", "a checkpoint without a name")
            return [self._played(reached) for reached in self._buffer.mark(name)]
        if event == "clearAudio":
            self._buffer.clear()
            return [self._say("clearedAudio", {"streamId": self.stream_id})]
        if event == "stop":
            self.finished = True
            return []
        raise complain("plivo", f"unknown event {event!r}")

    def _play_audio(self, media: Any) -> None:
        if not isinstance(media, dict):
            raise complain("plivo", "playAudio without media")
        wanted = (_NAMES[self.out_format.encoding], self.out_format.rate_hz)
        told = (media.get("contentType"), media.get("sampleRate"))
        if told != wanted:
            raise complain("plivo", f"audio as {told} on a stream of {wanted}")
        self._buffer.push(audio_of("plivo", media.get("payload")))

    def _played(self, name: str) -> str:
        return self._say("playedStream", {"streamId": self.stream_id, "name": name})

    def play(self) -> Played:
        """20 ms from the buffer, and the checkpoints that were reached."""
        data, names = self._buffer.take()
        pcm = g711.decode(data, self.out_format.encoding)
        return Played(pcm, tuple(self._played(name) for name in names))


def _bare(number: str) -> str:
    return re.sub("[^A-Za-z0-9]", "", number)


# ---- how it connects


def format_of(content_type: str) -> AudioFormat:
    """`audio/x-l16;rate=8000` and its kind. Raises RuntimeFailure for another."""
    found = re.fullmatch(r"audio/x-(mulaw|l16);rate=(8000|16000)", content_type)
    if found is None or (found[1] == "mulaw" and found[2] == "16000"):
        raise RuntimeFailure("protocol.xml", f"a stream of {content_type!r}")
    encoding = Encoding.MULAW if found[1] == "mulaw" else Encoding.LINEAR16
    return AudioFormat(encoding, int(found[2]))


def signed(secret: str, url: str, form: Mapping[str, str]) -> dict[str, str]:
    """The signature of a POST webhook, made now."""
    nonce = str(secrets.randbelow(10**20))
    text = url + ("?" if not urlsplit(url).query else ".")
    text += "".join(name + form[name] for name in sorted(form))
    digest = hmac.digest(secret.encode(), f"{text}.{nonce}".encode(), "sha256")
    return {
        "X-Plivo-Signature-V3": base64.b64encode(digest).decode(),
        "X-Plivo-Signature-V3-Nonce": nonce,
    }


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The answer webhook, signed with `secret`; its XML names the socket and the audio."""
    url = access.http("/plivo/answer")
    form = {
        "CallUUID": identity.call_id,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "Event": "StartApp",
        "From": identity.from_.removeprefix("+"),
        "ParentAuthID": ACCOUNT_ID,
        "To": identity.to.removeprefix("+"),
    }
    headers = signed(access.secret, url, form) if access.secret else {}
    answer = await ask(http, url, form=form, headers=headers)
    try:
        stream = ElementTree.fromstring(answer).find("Stream")
    except ElementTree.ParseError:
        stream = None
    if stream is None or not stream.text or stream.get("bidirectional") != "true":
        raise RuntimeFailure(
            "protocol.xml", f"the webhook's answer streams nothing both ways: {first_line(answer)}"
        )
    told = stream.get("extraHeaders", "")
    if len(told) > 512 or re.search("[^A-Za-z0-9=,]", told):
        raise RuntimeFailure("protocol.xml", "extraHeaders that the platform does not take")
    audio = format_of(stream.get("contentType", "audio/x-l16;rate=8000"))
    return Endpoint(stream.text.strip(), PlivoPlatform(identity, told, audio))


def configured(identity: Identity, platforms: PlatformsSettings) -> PlivoPlatform:
    """A stream as our own answer asks for."""
    return PlivoPlatform(identity, None, format_of(platforms.plivo.content_type))


SIDE = Side(PlivoPlatform, call_uuid, find, configured=configured, proof="--secret AUTH_TOKEN")
