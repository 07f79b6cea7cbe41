"""jambonz's side of `listen`: the module's socket, streaming or with `playAudio` clips."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from typing import Any

import aiohttp
import orjson

from gateway.errors import RuntimeFailure
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask, first_line
from gateway.simulate.platforms.audio_fork import ForkPlatform, call_uuid
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

ACCOUNT_SID = "9351f46a-678c-43f5-b8a6-d4eb58d131af"
SUBPROTOCOL = "audio.jambonz.org"
MAX_CLIPS = 10


class JambonzPlatform(ForkPlatform):
    """A `listen` with bidirectional streaming."""

    dialect = "jambonz"

    def metadata(self) -> dict[str, Any]:
        """The call, with the verb's own metadata over it."""
        return {
            "sampleRate": self.in_format.rate_hz,
            "mixType": "mono",
            "callSid": self.identity.call_id,
            "direction": "inbound",
            "from": self.identity.from_,
            "to": self.identity.to,
            "callId": f"{self.identity.call_id}@sbc",
            "sipStatus": 200,
            "sipReason": "OK",
            "callStatus": "in-progress",
            "accountSid": ACCOUNT_SID,
            "applicationSid": "0e0681b0-d49f-4fb8-b973-b5a3c6758de1",
            **self.identity.variables,
        }


class JambonzClipPlatform(JambonzPlatform):
    """A `listen` without streaming: clips are queued, ten at most, and reported when played."""

    def __init__(self, identity: Identity, in_rate_hz: int = 8000, out_rate_hz: int = 8000) -> None:
        super().__init__(identity, in_rate_hz, out_rate_hz)
        self._clips: deque[tuple[str, PlayoutBuffer]] = deque()

    def receive(self, message: Wire) -> list[Wire]:
        """`playAudio`, `killAudio` or `disconnect`; binary audio is refused."""
        if isinstance(message, bytes):
            raise complain("jambonz", "binary audio without bidirectional streaming")
        try:
            body = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("jambonz", "a message that is not JSON") from None
        kind = body.get("type") if isinstance(body, dict) else None
        if kind == "mark":
            raise complain("jambonz", "a mark without bidirectional streaming")
        if kind == "killAudio":
            self.streams += 1
            self._clips.clear()
            return []
        if kind != "playAudio":
            return super().receive(message)
        self._play_audio(body.get("data"))
        return []

    def _play_audio(self, data: Any) -> None:
        if not isinstance(data, dict) or data.get("audioContentType") != "raw":
            raise complain("jambonz", "a clip that is no raw audio")
        if data.get("sampleRate") != self.out_format.rate_hz:
            raise complain("jambonz", f"a clip at {data.get('sampleRate')} Hz")
        try:
            audio = base64.b64decode(data["audioContent"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise complain("jambonz", "a clip without content") from None
        if not data.get("queuePlay"):
            self._clips.clear()
        if len(self._clips) > MAX_CLIPS:
            raise complain("jambonz", "more clips than it queues")
        clip = PlayoutBuffer(self.out_format)
        clip.push(audio)
        self.received_bytes += len(audio)
        self._clips.append((str(data.get("id", "")), clip))

    def play(self) -> Played:
        """20 ms of the first clip."""
        if not self._clips:
            return Played(bytes(self.out_format.pcm_frame_bytes))
        name, clip = self._clips[0]
        data, _ = clip.take()
        if clip.buffered_s:
            return Played(data)
        self._clips.popleft()
        self.streams += 1
        done = {"type": "playDone", "data": {"id": name, "playbackSeconds": "0"}}
        return Played(data, (orjson.dumps(done).decode(),))


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The application's webhook; its `listen` verb names the socket."""
    call = {
        "call_sid": identity.call_id,
        "account_sid": ACCOUNT_SID,
        "direction": "inbound",
        "from": identity.from_,
        "to": identity.to,
        "call_status": "trying",
    }
    headers = {"Content-Type": "application/json", **access.credentials}
    url = access.http("/jambonz/voice")
    answer = await ask(http, url, body=orjson.dumps(call), headers=headers)
    listen = listen_of(answer)
    back = listen.get("bidirectionalAudio", {})
    far_side = _listening(
        identity,
        bool(back.get("streaming")),
        int(listen.get("sampleRate", 8000)),
        int(back.get("sampleRate", 8000)),
    )
    return Endpoint(str(listen["url"]), far_side, {}, (SUBPROTOCOL,))


def _listening(
    identity: Identity, streaming: bool, in_rate_hz: int, out_rate_hz: int
) -> JambonzPlatform:
    make = JambonzPlatform if streaming else JambonzClipPlatform
    return make(identity, in_rate_hz, out_rate_hz)


def listen_of(answer: bytes) -> dict[str, Any]:
    """The `listen` verb of a webhook's answer. Raises RuntimeFailure without one."""
    try:
        verbs = orjson.loads(answer)
    except orjson.JSONDecodeError:
        verbs = None
    for verb in verbs if isinstance(verbs, list) else ():
        if isinstance(verb, dict) and verb.get("verb") == "listen" and verb.get("url"):
            return verb
    raise RuntimeFailure(
        "protocol.verbs", f"the webhook's answer listens to nothing: {first_line(answer)}"
    )


def configured(identity: Identity, platforms: PlatformsSettings) -> JambonzPlatform:
    """The verb that our own webhook would answer with."""
    settings = platforms.jambonz
    return _listening(identity, settings.streaming, settings.in_rate_hz, settings.out_rate_hz)


SIDE = Side(JambonzPlatform, call_uuid, find, configured=configured)
