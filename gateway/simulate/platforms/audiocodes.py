"""AudioCodes VoiceAI Connect's side of the bot API in streaming mode: JSON text, audio as base64.

It asks for a session, opens the caller's stream, tells of the call by the activity `start`, plays
one stream of the bot after the other and tells when each was played. When the bot hangs up or
transfers the call it ends the session and closes.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding, Pcm
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side
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

PATH = "/audiocodes/bot"
_FORMATS: Final = {
    "raw/mulaw": MULAW_8K,
    "raw/lpcm16_8": AudioFormat(Encoding.LINEAR16, 8000),
    "raw/lpcm16": AudioFormat(Encoding.LINEAR16, 16000),
    "raw/lpcm16_24": AudioFormat(Encoding.LINEAR16, 24000),
}
OFFERED: Final = ("wav/lpcm16", "raw/lpcm16")


def conversation_id(name: str) -> str:
    """A conversation's id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class AudioCodesPlatform:
    """One conversation. `offered`: the formats that it supports."""

    hangup_wait_s = 0.5

    def __init__(self, identity: Identity, offered: tuple[str, ...] = OFFERED) -> None:
        self.identity = identity
        expected = next(name for name in offered if name in _FORMATS)
        self.in_format = self.out_format = _FORMATS[expected]
        self.streams = 0
        self.finished = False
        self.accepted = ""
        """The format that the bot has chosen."""
        self.told: dict[str, Any] = {}
        """What the bot told with its last words: parameters of `hangup` or `transfer`."""
        self.metadata: dict[str, Any] = {}
        """What the bot left for whoever comes after it."""
        self.pressed = ""
        """Keys that the bot has pressed towards the caller."""
        self._offered = offered
        self._buffer = PlayoutBuffer(self.out_format)
        self._listening = False
        self._playing = ""
        self._used: set[str] = set()

    @property
    def received_bytes(self) -> int:
        """Encoded bytes that have arrived so far."""
        return self._buffer.received_bytes

    # ---- what it says

    def _say(self, kind: str, **more: Any) -> str:
        told = {"type": kind, "conversationId": self.identity.call_id, **more}
        return orjson.dumps(told).decode()

    def _event(self, name: str, **more: Any) -> str:
        return self._say("activities", activities=[{"type": "event", "name": name, **more}])

    def open(self) -> list[Wire]:
        """`session.initiate`."""
        return [
            self._say(
                "session.initiate",
                botName="agent",
                caller=self.identity.from_,
                expectAudioMessages=True,
                supportedMediaFormats=list(self._offered),
            )
        ]

    def resume(self) -> list[Wire]:
        """`session.resume`, on a new socket after the old one was lost."""
        self._listening = False
        self._playing = ""
        self._buffer.clear()
        return [self._say("session.resume")]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `userStream.chunk` of 20 ms, once the bot listens."""
        if not self._listening or self.finished:
            return []
        return [self._say("userStream.chunk", audioChunk=payload_of(self.in_format, pcm))]

    def digit(self, digit: str) -> list[Wire]:
        """One activity `dtmf`."""
        return [self._event("dtmf", value=digit)]

    def hangup(self) -> list[Wire]:
        """The stream's end and the session's; the bot may close after it."""
        stop = [self._say("userStream.stop")] if self._listening else []
        self._listening = False
        ended = self._say("session.end", reasonCode="client-disconnected", reason="Client Side")
        return [*stop, ended]

    # ---- what it takes

    def receive(self, message: Wire) -> list[Wire]:
        """A message of the bot."""
        told = object_of("audiocodes", message)
        kind = told.get("type")
        if kind == "session.accepted":
            return self._accepted(told.get("mediaFormat"))
        if kind == "session.error":
            self.finished = True
            return []
        if not self.accepted:
            raise complain("audiocodes", f"{kind!r} before session.accepted")
        if kind == "userStream.started":
            self._listening = True
        elif kind == "userStream.stopped":
            self._listening = False
        elif kind in ("playStream.start", "playStream.chunk", "playStream.stop"):
            return self._play_stream(str(kind), told)
        elif kind == "activities":
            return self._activities(told.get("activities"))
        else:
            raise complain("audiocodes", f"unknown message {kind!r}")
        return []

    def _accepted(self, media_format: Any) -> list[Wire]:
        if media_format not in self._offered or media_format not in _FORMATS:
            raise complain("audiocodes", f"mediaFormat {media_format!r} was not offered")
        resumed = bool(self.accepted)
        self.accepted = media_format
        listen = self._say("userStream.start")
        if resumed:
            return [listen]
        self.in_format = self.out_format = _FORMATS[media_format]
        self._buffer = PlayoutBuffer(self.out_format)
        parameters = {
            "caller": self.identity.from_,
            "callee": self.identity.to,
            **self.identity.variables,
        }
        return [listen, self._event("start", parameters=parameters)]

    def _play_stream(self, kind: str, told: Mapping[str, Any]) -> list[Wire]:
        stream = told.get("streamId")
        if not isinstance(stream, str) or not stream:
            raise complain("audiocodes", f"{kind} without streamId")
        if kind == "playStream.start":
            if self._playing:
                raise complain("audiocodes", "a stream within a stream")
            if stream in self._used:
                raise complain("audiocodes", f"the id {stream!r} was used before")
            if told.get("mediaFormat") != self.accepted:
                raise complain("audiocodes", f"a stream in {told.get('mediaFormat')!r}")
            self._used.add(stream)
            self._playing = stream
            return []
        if stream != self._playing:
            raise complain("audiocodes", f"{kind} for a stream that is not open")
        if kind == "playStream.chunk":
            self._buffer.push(audio_of("audiocodes", told.get("audioChunk")))
            return []
        self._playing = ""
        self.streams += 1
        return [self._finished() for _ in self._buffer.mark(stream)]

    def _activities(self, activities: Any) -> list[Wire]:
        if not isinstance(activities, list) or not all(isinstance(one, dict) for one in activities):
            raise complain("audiocodes", "activities that are no list of objects")
        replies: list[Wire] = []
        for activity in activities:
            told = activity.get("activityParams", {})
            match activity.get("name"):
                case "abortPrompts":
                    self.streams += 1
                    self._buffer.clear()
                case "sendDtmf":
                    self.pressed += told["dtmf"]
                case "sendMetaData":
                    self.metadata = activity["value"]
                case "hangup" | "transfer" as last:
                    if last == "transfer" and not told.get("transferTarget", "tel:").startswith(
                        ("sip:", "sips:", "tel:")
                    ):
                        raise complain("audiocodes", "a transfer to no address")
                    self.told = told
                    self.finished = True
                    replies.append(self._say("session.end", reasonCode=last, reason="Bot Side"))
                case unknown:
                    raise complain("audiocodes", f"unknown activity {unknown!r}")
        return replies

    def _finished(self) -> str:
        return self._event("playFinished")

    def play(self) -> Played:
        """20 ms of the streams, and what was played to its end."""
        data, names = self._buffer.take()
        pcm = g711.decode(data, self.out_format.encoding)
        return Played(pcm, tuple(self._finished() for _ in names))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The bot's address; `secret` is its bearer token."""
    headers = {"Authorization": f"Bearer {access.secret}"} if access.secret else {}
    return Endpoint(access.websocket(PATH), AudioCodesPlatform(identity), headers)


def configured(identity: Identity, platforms: PlatformsSettings) -> AudioCodesPlatform:
    """A platform that offers what the settings prefer."""
    return AudioCodesPlatform(identity, (platforms.audiocodes.media_format,))


SIDE = Side(
    AudioCodesPlatform, conversation_id, find, configured=configured, proof="--secret AUTH_TOKEN"
)
