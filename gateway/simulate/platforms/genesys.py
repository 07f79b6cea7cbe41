"""Genesys Cloud's side of an Audio Connector session: numbered JSON, audio as raw binary.

Sends 200 ms of the caller in a message once `opened` has come, pings every five seconds, tells
when its playing begins and when it has run dry, and closes only by itself. It counts what the
gateway sends: the numbers of the messages, and how many there are a second.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import FRAME_MS, MULAW_8K, Pcm
from gateway.channels.dialect import Request
from gateway.errors import ScenarioError
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

PATH = "/genesys/audiohook"
ORGANIZATION_ID = "d7934305-0972-4844-938e-9060eef73d05"
MAX_BYTES: Final = 64 << 10
RATE_PER_S: Final = 5.0
BURST: Final = 25.0
_CHUNK_FRAMES = 10
_FIRST_PINGS = (50, 100)
_PING_FRAMES = 250
_OFFERS: Final[list[dict[str, Any]]] = [
    {"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000},
    {"type": "audio", "format": "L16", "channels": ["external"], "rate": 8000},
]
_ENVELOPE = frozenset({"version", "id", "type", "seq", "clientseq", "parameters"})


def session_id(name: str) -> str:
    """A session id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class _Allowance:
    """Messages that the platform takes: some a second, and a burst."""

    def __init__(self) -> None:
        self._left = BURST
        self._frame = 0

    def spend(self, frame: int) -> bool:
        """Whether one more is taken; `frame`: the platform's clock in frames."""
        gained = (frame - self._frame) * FRAME_MS / 1000 * RATE_PER_S
        self._left, self._frame = min(BURST, self._left + gained) - 1.0, frame
        return self._left >= 0


class GenesysPlatform:
    """One session."""

    in_format = MULAW_8K
    out_format = MULAW_8K
    hangup_wait_s = 0.5

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.streams = 0
        self.finished = False
        self.outputs: dict[str, str] = {}
        """What the gateway has left for the flow."""
        self._buffer = PlayoutBuffer(self.out_format)
        self._playing = False
        self._opened = False
        self._closing = False
        self._paused = False
        self._seq = 0
        self._server_seq = 0
        self._frame = 0
        self._sent_frames = 0
        self._chunk: list[bytes] = []
        self._pongs_due = 0
        self._texts = _Allowance()
        self._binaries = _Allowance()

    @property
    def received_bytes(self) -> int:
        """Mu-law bytes that have arrived so far."""
        return self._buffer.received_bytes

    # ---- what it says

    @property
    def _position(self) -> str:
        return f"PT{self._sent_frames * FRAME_MS / 1000:.2f}S"

    def _say(self, kind: str, parameters: Mapping[str, Any] | None = None) -> str:
        self._seq += 1
        return orjson.dumps(
            {
                "version": "2",
                "id": self.identity.call_id,
                "type": kind,
                "seq": self._seq,
                "serverseq": self._server_seq,
                "position": self._position,
                "parameters": dict(parameters or {}),
            }
        ).decode()

    def open(self) -> list[Wire]:
        """`open`; audio waits for the answer."""
        identity = self.identity
        parameters = {
            "organizationId": ORGANIZATION_ID,
            "conversationId": session_id(f"conversation {identity.call_id}"),
            "participant": {
                "id": session_id(f"participant {identity.call_id}"),
                "ani": identity.from_,
                "aniName": "",
                "dnis": identity.to,
            },
            "media": _OFFERS,
            "language": "en-US",
            "inputVariables": {name: str(value) for name, value in identity.variables.items()},
        }
        return [self._say("open", parameters)]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """Ten frames in a message; a `ping` where one is due."""
        if not self._opened or self._closing:
            return []
        out: list[Wire] = []
        # Its position advances while it is paused.
        self._sent_frames += 1
        if not self._paused:
            silent = self.in_format.silence
            frame = silent if pcm is None else g711.encode(pcm, self.in_format.encoding)
            self._chunk.append(frame)
        if len(self._chunk) == _CHUNK_FRAMES:
            out.append(b"".join(self._chunk))
            self._chunk.clear()
        if self._sent_frames in _FIRST_PINGS or self._sent_frames % _PING_FRAMES == 0:
            self._pongs_due += 1
            out.append(self._say("ping"))
        return out

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        return [self._say("dtmf", {"digit": digit})]

    def pause(self) -> list[Wire]:
        """The caller is put on hold: no audio from here on."""
        return [self._say("paused")]

    def hangup(self) -> list[Wire]:
        """`close`; the socket closes once it was answered."""
        self._closing = True
        return [self._say("close", {"reason": "end"})]

    # ---- what it takes

    def receive(self, message: Wire) -> list[Wire]:
        """A message of the gateway; judged as the platform would."""
        if isinstance(message, bytes):
            self._audio(message)
            return []
        told = self._checked(message)
        kind, parameters = told["type"], told["parameters"]
        if not self._texts.spend(self._frame):
            raise complain("genesys", "more than five text messages a second")
        if kind == "opened":
            if parameters.get("media") not in [[offer] for offer in _OFFERS[:1]]:
                raise complain("genesys", "opened does not choose the first offer as it was made")
            self._opened = True
            return []
        if kind == "pong":
            self._pongs_due -= 1
            if self._pongs_due < 0:
                raise complain("genesys", "a pong that nobody asked for")
            if self._pongs_due:
                raise complain("genesys", f"{self._pongs_due} pings without a pong")
            return []
        if kind == "event":
            return self._event(parameters)
        if kind == "disconnect":
            return self._disconnect(parameters)
        if kind == "closed":
            self.finished = True
            return []
        if kind in ("pause", "resume"):
            return self._pause(kind == "pause")
        if kind in ("updated", "reconnect"):
            return []
        raise complain("genesys", f"unknown message {kind!r}")

    def _checked(self, message: str) -> dict[str, Any]:
        if len(message.encode()) > MAX_BYTES:
            raise complain("genesys", "a text above 64 KiB")
        try:
            told = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("genesys", "a message that is not JSON") from None
        if not isinstance(told, dict) or set(told) != _ENVELOPE:
            raise complain("genesys", "a message with other fields than the protocol's")
        if told["version"] != "2" or told["id"] != self.identity.call_id:
            raise complain("genesys", "another version or another session")
        if told["seq"] != self._server_seq + 1:
            raise complain("genesys", f"seq {told['seq']} after {self._server_seq}")
        if told["clientseq"] > self._seq:
            raise complain("genesys", f"clientseq {told['clientseq']} was never sent")
        if not isinstance(told["parameters"], dict):
            raise complain("genesys", "parameters that are no object")
        self._server_seq += 1
        return told

    def _audio(self, data: bytes) -> None:
        if not self._opened:
            raise complain("genesys", "audio before opened")
        if self.finished:
            raise complain("genesys", "audio after closed")
        if len(data) > MAX_BYTES:
            raise complain("genesys", "a binary message above 64 KiB")
        if not self._binaries.spend(self._frame):
            raise complain("genesys", "more than five binary messages a second")
        self._buffer.push(data)

    def _event(self, parameters: dict[str, Any]) -> list[Wire]:
        entities = parameters.get("entities")
        if not isinstance(entities, list) or not all(isinstance(one, dict) for one in entities):
            raise complain("genesys", "an event without entities")
        for entity in entities:
            if entity.get("type") != "barge_in" or entity.get("data") != {}:
                raise complain("genesys", f"unknown entity {entity.get('type')!r}")
        self._buffer.clear()
        self.streams += 1
        return self._ran_dry()

    def _pause(self, paused: bool) -> list[Wire]:
        if paused is self._paused:
            raise complain("genesys", "a pause in a pause, or a resume without one")
        self._paused = paused
        self._chunk.clear()
        nothing = {"start": self._position, "discarded": "PT0S"}
        return [self._say("paused" if paused else "resumed", {} if paused else nothing)]

    def _disconnect(self, parameters: dict[str, Any]) -> list[Wire]:
        if parameters.get("reason") not in ("completed", "unauthorized", "error"):
            raise complain("genesys", f"disconnect for {parameters.get('reason')!r}")
        outputs = parameters.get("outputVariables", {})
        if not isinstance(outputs, dict) or not all(isinstance(v, str) for v in outputs.values()):
            raise complain("genesys", "outputVariables that are not text")
        self.outputs = outputs
        self._closing = True
        return [self._say("close", {"reason": "disconnect"})]

    def _ran_dry(self) -> list[Wire]:
        if not self._playing:
            return []
        self._playing = False
        return [self._say("playback_completed")]

    def play(self) -> Played:
        """20 ms from the buffer; tells where playing begins and where it has run dry."""
        self._frame += 1
        replies: list[Wire] = []
        if self._buffer.buffered_s and not self._playing:
            self._playing = True
            replies.append(self._say("playback_started"))
        data, _ = self._buffer.take()
        if self._playing and not self._buffer.buffered_s:
            self.streams += 1
            replies += self._ran_dry()
        return Played(g711.decode(data, self.out_format.encoding), tuple(replies))


# ---- how it connects


def headers(identity: Identity, key: str) -> dict[str, str]:
    """What the upgrade says of the session."""
    return {
        "Audiohook-Organization-Id": ORGANIZATION_ID,
        "Audiohook-Session-Id": identity.call_id,
        "Audiohook-Correlation-Id": session_id(f"correlation {identity.call_id}"),
        "X-API-KEY": key,
    }


def signature(told: Mapping[str, str], authority: str, target: str, secret: str) -> dict[str, str]:
    """The signature of an upgrade, made now. `secret`: base64."""
    created = int(time.time())
    values = {"@request-target": target, "@authority": authority}
    values.update({name.lower(): value for name, value in told.items()})
    inner = "(" + " ".join(f'"{name}"' for name in values) + ")"
    nonce = secrets.token_urlsafe(24)
    inner += f';keyid="{told["X-API-KEY"]}";nonce="{nonce}";alg="hmac-sha256"'
    inner += f";created={created};expires={created + 30}"
    lines = [f'"{name}": {value}' for name, value in values.items()]
    text = "\n".join([*lines, f'"@signature-params": {inner}'])
    digest = hmac.digest(_key(secret), text.encode(), "sha256")
    return {
        "Signature-Input": f"sig1={inner}",
        "Signature": f"sig1=:{base64.b64encode(digest).decode()}:",
    }


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        raise ScenarioError(
            "scenario.secret",
            "the platform's secret is not base64",
            hint="the client secret as the integration shows it, and as platforms.genesys has it",
        ) from None


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The connector's address; `key` and `secret` are those of the integration."""
    url = access.websocket(PATH)
    told = headers(identity, access.key or "voice-gateway")
    if access.secret:
        authority = url.split("/")[2]
        target = "/" + url.split("/", 3)[3]
        told |= signature(told, authority, target, access.secret)
    return Endpoint(url, GenesysPlatform(identity), told)


def upgrade(identity: Identity) -> Request:
    """The upgrade of a simulated call."""
    told = {name.lower(): value for name, value in headers(identity, "voice-gateway").items()}
    return Request(PATH, headers=told)


SIDE = Side(
    GenesysPlatform, session_id, find, upgrade, proof="--key API_KEY --secret CLIENT_SECRET"
)
