"""Bandwidth's side of a media stream: JSON text, PCMU in, PCMU or PCM out; no marks, no keys."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final
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

ACCOUNT_ID = "9900000"
_PCM: Final = re.compile(
    r"audio/pcm;rate=(8000|16000|24000);channels=1;bit-depth=16;endian=little;encoding=signed"
)


def call_id(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    made = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4)
    return f"c-{name.encode().hex()[:8]:0<8}-{made}"


class BandwidthPlatform:
    """One stream. It plays whatever a message says it holds, one kind for a whole call."""

    in_format = MULAW_8K
    hangup_wait_s = 0.0

    def __init__(
        self,
        identity: Identity,
        parameters: Mapping[str, str] | None = None,
        out_format: AudioFormat = MULAW_8K,
    ) -> None:
        self.identity = identity
        self.out_format = out_format
        own = {"from": identity.from_, "to": identity.to}
        told = own if parameters is None else parameters
        self._parameters = {
            **told,
            **{name: str(value) for name, value in identity.variables.items()},
        }
        self._buffer = PlayoutBuffer(out_format)
        self._sequence = 0
        self.streams = 0
        self.finished = False
        """Never set: this dialect ends a call by closing the socket."""

    @property
    def received_bytes(self) -> int:
        """Encoded bytes that have arrived so far."""
        return self._buffer.received_bytes

    def _metadata(self) -> dict[str, Any]:
        media_format = {"encoding": "PCMU", "sampleRate": 8000}
        return {
            "accountId": ACCOUNT_ID,
            "callId": self.identity.call_id,
            "streamId": f"s-{self.identity.call_id}",
            "streamName": "agent",
            "tracks": [{"name": "inbound", "mediaFormat": media_format}],
        }

    def open(self) -> list[Wire]:
        """`start`."""
        told = {
            "eventType": "start",
            "metadata": self._metadata(),
            "streamParams": self._parameters,
        }
        return [orjson.dumps(told).decode()]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` of 20 ms."""
        self._sequence += 1
        told = {
            "eventType": "media",
            "track": "inbound",
            "payload": payload_of(self.in_format, pcm),
            "sequenceNumber": self._sequence,
        }
        return [orjson.dumps(told).decode()]

    def digit(self, digit: str) -> list[Wire]:
        """Nothing: keys do not come by the socket."""
        return []

    def hangup(self) -> list[Wire]:
        """`stop`; the socket closes after it."""
        return [orjson.dumps({"eventType": "stop", "metadata": self._metadata()}).decode()]

    def receive(self, message: Wire) -> list[Wire]:
        """`playAudio` or `clear`."""
        told = object_of("bandwidth", message)
        kind = told.get("eventType")
        if kind == "playAudio":
            media = told.get("media")
            if not isinstance(media, dict):
                raise complain("bandwidth", "playAudio without media")
            self._check(str(media.get("contentType")))
            self._buffer.push(audio_of("bandwidth", media.get("payload")))
            return []
        if kind == "clear":
            self.streams += 1
            self._buffer.clear()
            return []
        raise complain("bandwidth", f"unknown eventType {kind!r}")

    def _check(self, content_type: str) -> None:
        found = _PCM.fullmatch(content_type)
        told = AudioFormat(Encoding.LINEAR16, int(found[1])) if found else MULAW_8K
        if found is None and content_type != "audio/pcmu":
            raise complain("bandwidth", f"unknown contentType {content_type!r}")
        if told == self.out_format:
            return
        if self._buffer.received_bytes:
            raise complain("bandwidth", "audio of two kinds in one call")
        self.out_format = told
        self._buffer = PlayoutBuffer(told)

    def play(self) -> Played:
        """20 ms from the buffer."""
        data, _ = self._buffer.take()
        return Played(g711.decode(data, self.out_format.encoding))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The webhook of a call that comes in, with Basic credentials; its BXML names the socket."""
    told = {
        "eventType": "initiate",
        "accountId": ACCOUNT_ID,
        "applicationId": "04e88489-df02-4e34-a0ee-27a91849555f",
        "callId": identity.call_id,
        "direction": "inbound",
        "from": identity.from_,
        "to": identity.to,
    }
    headers = {"Content-Type": "application/json", **access.credentials}
    answer = await ask(
        http, access.http("/bandwidth/voice"), body=orjson.dumps(told), headers=headers
    )
    try:
        verbs = list(ElementTree.fromstring(answer))
    except ElementTree.ParseError:
        verbs = []
    stream = next((verb for verb in verbs if verb.tag == "StartStream"), None)
    if stream is None or stream.get("mode") != "bidirectional" or not stream.get("destination"):
        raise RuntimeFailure(
            "protocol.bxml", f"the webhook's answer streams nothing both ways: {first_line(answer)}"
        )
    if verbs[-1] is stream:
        raise RuntimeFailure("protocol.bxml", "nothing behind StartStream: the call would end")
    parameters = {
        str(one.get("name")): str(one.get("value")) for one in stream.findall("StreamParam")
    }
    return Endpoint(str(stream.get("destination")), BandwidthPlatform(identity, parameters))


def configured(identity: Identity, platforms: PlatformsSettings) -> BandwidthPlatform:
    """What the settings say is sent."""
    settings = platforms.bandwidth
    linear = AudioFormat(Encoding.LINEAR16, settings.rate_hz)
    return BandwidthPlatform(identity, None, linear if settings.codec == "PCM" else MULAW_8K)


SIDE = Side(BandwidthPlatform, call_id, find, configured=configured)
