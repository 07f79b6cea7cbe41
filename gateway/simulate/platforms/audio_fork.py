"""FreeSWITCH mod_audio_fork's side, with bidirectional streaming.

The caller's audio comes in messages of varying size. What we send is held back until it fills the
prebuffer (four times 320 samples at first, then 640), so a short tail waits for more. A mark is a
sample of -1 put in front of the next message: while one is in the buffer, a genuine sample of
-1 is taken for it. `killAudio` empties the buffer, not the prebuffer, and reports marks as
cleared; more than 30 of them are forgotten.
"""

from __future__ import annotations

import hashlib
import uuid
from array import array
from collections import deque
from typing import Any

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import Identity, Played, Wire, complain

PATH = "/audio-fork/media"
MARKER = -1
MAX_MARKS = 30
FIRST_PREBUFFER = 1280
PREBUFFER = 640


def call_uuid(name: str) -> str:
    """A call id as FreeSWITCH makes them, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class ForkPlatform:
    """One fork. `metadata` is what `uuid_audio_fork … start` was given."""

    dialect = "audio_fork"
    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, in_rate_hz: int = 8000, out_rate_hz: int = 8000) -> None:
        self.identity = identity
        self.in_format = AudioFormat(Encoding.LINEAR16, in_rate_hz)
        self.out_format = AudioFormat(Encoding.LINEAR16, out_rate_hz)
        self.streams = 0
        self.finished = False
        self.received_bytes = 0
        self.forgotten_marks = 0
        self._pre: array[int] = array("h")
        self._playing: deque[int] = deque()
        self._primed = False
        self._half = b""
        self._told: deque[str] = deque()
        """Marks on their way, oldest first."""
        self._ahead = 0
        """Marks that stand in front of the next message."""
        self._markers = 0
        self._held: list[bytes] = []
        self._frames = 0

    def metadata(self) -> dict[str, Any]:
        """The first message."""
        return {
            "uuid": self.identity.call_id,
            "from": self.identity.from_,
            "to": self.identity.to,
            "sampleRate": self.in_format.rate_hz,
            "mixType": "mono",
            **self.identity.variables,
        }

    def open(self) -> list[Wire]:
        """The metadata."""
        return [orjson.dumps(self.metadata()).decode()]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """What has gathered since the socket was last writable: now and then two frames in one."""
        self._held.append(bytes(self.in_format.pcm_frame_bytes) if pcm is None else pcm)
        self._frames += 1
        if self._frames % 7 == 0 and len(self._held) < 2:
            return []
        message, self._held = b"".join(self._held), []
        return [message]

    def digit(self, digit: str) -> list[Wire]:
        """A key, as the call's application passes it on."""
        return [orjson.dumps({"event": "dtmf", "dtmf": digit, "duration": "1600"}).decode()]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """Audio, or a JSON message."""
        if isinstance(message, bytes):
            self._audio(message)
            return []
        try:
            body = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain(self.dialect, "a message that is not JSON") from None
        kind = body.get("type") if isinstance(body, dict) else None
        data = body.get("data", {}) if isinstance(body, dict) else {}
        if kind == "mark":
            return self._mark(data)
        if kind == "killAudio":
            return self._kill()
        if kind in ("disconnect", "transfer"):
            self.finished = True
            return []
        raise complain(self.dialect, f"a message of type {kind!r}")

    def _audio(self, data: bytes) -> None:
        if not data:
            raise complain(self.dialect, "an empty message")
        self.received_bytes += len(data)
        data = self._half + data
        whole = len(data) & ~1
        data, self._half = data[:whole], data[whole:]
        for _ in range(self._ahead):
            self._pre.append(MARKER)
            self._markers += 1
        self._ahead = 0
        self._pre.frombytes(data)
        if len(self._pre) >= (PREBUFFER if self._primed else FIRST_PREBUFFER):
            self._primed = True
            self._playing.extend(self._pre)
            del self._pre[:]

    def _mark(self, data: Any) -> list[Wire]:
        name = data.get("name") if isinstance(data, dict) else None
        if not isinstance(name, str) or not name:
            raise complain(self.dialect, "a mark without a name")
        self.streams += 1
        if len(self._told) >= MAX_MARKS:
            self.forgotten_marks += 1
            return []
        self._told.append(name)
        self._ahead += 1
        return []

    def _kill(self) -> list[Wire]:
        self.streams += 1
        self._playing.clear()
        # Markers in the prebuffer are left there, and pass for samples.
        self._markers = self._ahead = 0
        names, self._told = list(self._told), deque()
        return [self._report(name, "cleared") for name in names]

    def _report(self, name: str, event: str) -> str:
        return orjson.dumps({"type": "mark", "data": {"name": name, "event": event}}).decode()

    def play(self) -> Played:
        """The next 20 ms and the marks in them; all marks once the buffer is dry."""
        wanted = self.out_format.frame_samples
        samples: array[int] = array("h")
        replies: list[Wire] = []
        while self._playing and len(samples) < wanted:
            sample = self._playing.popleft()
            if sample == MARKER and self._markers:
                self._markers -= 1
                replies.append(self._report(self._told.popleft(), "playout"))
                continue
            samples.append(sample)
        if not self._playing and not self._pre:
            replies += [self._report(self._told.popleft(), "playout") for _ in range(self._ahead)]
            self._ahead = 0
        pcm = samples.tobytes()
        return Played(pcm + bytes(self.out_format.pcm_frame_bytes - len(pcm)), tuple(replies))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address that the dialplan gives, with the module's user and password."""
    return Endpoint(
        access.websocket(PATH), ForkPlatform(identity), access.credentials, ("audio.drachtio.org",)
    )


def configured(identity: Identity, platforms: PlatformsSettings) -> ForkPlatform:
    """The rates of the command, which are those of the settings."""
    settings = platforms.audio_fork
    return ForkPlatform(identity, settings.in_rate_hz, settings.out_rate_hz)


SIDE = Side(ForkPlatform, call_uuid, find, configured=configured)
