"""A session API client: `BidiRunSession` JSON on a websocket, the way its users write it.

Sends `config`, the variables, the event `session start`, then audio without a pause, silence
included. Plays what arrives, drops it on `interruptionSignal`, and after `endSession` plays the
rest before it closes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

PATH = "/ws/google.cloud.ces.v1.SessionService/BidiRunSession/locations/local"
LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)
_SERVER_FIELDS = frozenset(
    ("sessionOutput", "recognitionResult", "interruptionSignal", "endSession", "goAway")
)
NO_FUNCTION = "no client is there to run this function"
_DRAIN_FRAMES = 25
"""Quiet frames after `endSession` before the client closes: 500 ms."""


def session_number(name: str) -> str:
    """A session id of the allowed shape, always the same for `name`."""
    return "s-" + hashlib.sha256(name.encode()).hexdigest()[:24]


class CesPlatform:
    """One session. `audio`: format of both directions."""

    hangup_wait_s = 2.0

    def __init__(self, identity: Identity, audio: AudioFormat = LINEAR16_16K) -> None:
        self.identity = identity
        self.in_format = audio
        self.out_format = audio
        self.streams = 0
        self._buffer = PlayoutBuffer(audio)
        self._silence = self._input({"audio": base64.b64encode(audio.silence).decode()})
        self._ending = False
        self._idle_frames = 0
        self._asked: Counter[str] = Counter()

    @property
    def received_bytes(self) -> int:
        """Encoded bytes that have arrived so far."""
        return self._buffer.received_bytes

    @property
    def finished(self) -> bool:
        """`endSession` came, all audio was played and nothing followed for 500 ms."""
        return self._ending and self._idle_frames >= _DRAIN_FRAMES

    def open(self) -> list[Wire]:
        """`config`, the variables if there are any, and the kick-off event."""
        audio = {
            "audioEncoding": self.in_format.encoding.value,
            "sampleRateHertz": self.in_format.rate_hz,
        }
        session = f"projects/local/locations/local/apps/local/sessions/{self.identity.call_id}"
        config = {"session": session, "inputAudioConfig": audio, "outputAudioConfig": audio}
        messages: list[Wire] = [orjson.dumps({"config": config}).decode()]
        if self.identity.variables:
            messages.append(self._input({"variables": dict(self.identity.variables)}))
        messages.append(self._input({"event": {"event": "session start"}}))
        return messages

    @staticmethod
    def _input(body: dict[str, Any]) -> str:
        return orjson.dumps({"realtimeInput": body}).decode()

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One audio input of 20 ms."""
        if pcm is None:
            return [self._silence]
        data = g711.encode(pcm, self.in_format.encoding)
        return [self._input({"audio": base64.b64encode(data).decode()})]

    def digit(self, digit: str) -> list[Wire]:
        """One key."""
        return [self._input({"dtmf": digit})]

    def hangup(self) -> list[Wire]:
        """The event by which adapters tell that the caller is gone."""
        return [self._input({"event": {"event": "sys.remote-call-disconnected"}})]

    def receive(self, message: Wire) -> list[Wire]:
        """Any server message; only calls of the client's functions are answered."""
        body = _object(message)
        kinds = set(body) & _SERVER_FIELDS
        if len(kinds) != 1 or set(body) - _SERVER_FIELDS:
            raise complain("ces", f"a message with the fields {sorted(body)}")
        kind = kinds.pop()
        value = body[kind]
        if not isinstance(value, dict):
            raise complain("ces", f"{kind} is not an object")
        if kind == "sessionOutput":
            self._output(value)
            if "toolCalls" in value and self.identity.functions is not None:
                return [self._answers(value["toolCalls"], self.identity.functions)]
        elif kind == "interruptionSignal":
            self._buffer.clear()
            self.streams += 1
        elif kind == "endSession":
            self._ending = True
        return []

    def _output(self, output: dict[str, Any]) -> None:
        if "audio" in output:
            if not isinstance(output["audio"], str):
                raise complain("ces", "audio that is not a string")
            try:
                data = base64.b64decode(output["audio"], validate=True)
            except binascii.Error:
                raise complain("ces", "audio that is not base64") from None
            if len(data) % self.out_format.sample_bytes:
                raise complain("ces", "audio that ends within a sample")
            self._buffer.push(data)
            self._idle_frames = 0
        if output.get("turnCompleted"):
            self.streams += 1
        if "endSession" in output:
            self._ending = True

    def _answers(self, called: Any, functions: Mapping[str, Sequence[Any]]) -> str:
        """What the client's functions answer to `toolCalls`."""
        calls = called.get("toolCalls") if isinstance(called, dict) else None
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise complain("ces", "toolCalls that are no list of objects")
        answers = []
        for call in calls:
            name = str(call.get("displayName") or call.get("tool")).rsplit("/", 1)[-1]
            known = functions.get(name) or [{"error": NO_FUNCTION}]
            answer = known[min(self._asked[name], len(known) - 1)]
            self._asked[name] += 1
            named = {key: call[key] for key in ("id", "tool", "toolsetTool") if key in call}
            answers.append({**named, "response": answer})
        return self._input({"toolResponses": {"toolResponses": answers}})

    def play(self) -> Played:
        """20 ms from the buffer; this dialect has no marks."""
        self._idle_frames = 0 if self._buffer.buffered_s else self._idle_frames + 1
        data, _ = self._buffer.take()
        return Played(g711.decode(data, self.out_format.encoding))


def _object(message: Wire) -> dict[str, Any]:
    try:
        body = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise complain("ces", "a message that is not JSON") from None
    if not isinstance(body, dict):
        raise complain("ces", "a message that is not an object")
    return body


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The well-known path; the bearer token is the proof."""
    return Endpoint(access.websocket(PATH), CesPlatform(identity), access.headers)


SIDE = Side(CesPlatform, session_number, find)
