"""Twilio's side of a bidirectional media stream: JSON text, mu-law at 8 kHz, marks and clear.

Numbers travel as strings, as the real service sends them. Echoes every waiting mark on `clear`,
and a mark with nothing before it at once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, Pcm
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask
from gateway.simulate.platforms.base import (
    Identity,
    Played,
    PlayoutBuffer,
    Wire,
    complain,
)
from gateway.simulate.platforms.xml_answer import stream_of

ACCOUNT_SID = "AC" + "0" * 32
_SILENCE = base64.b64encode(MULAW_8K.silence).decode()


def call_sid(name: str) -> str:
    """A call id in Twilio's shape, always the same for `name`."""
    return "CA" + hashlib.sha256(name.encode()).hexdigest()[:32]


class TwilioPlatform:
    """One stream of one call. `custom`: the Parameters that the TwiML answer carried."""

    in_format = MULAW_8K
    out_format = MULAW_8K
    hangup_wait_s = 0.0

    def __init__(self, identity: Identity, custom: dict[str, str] | None = None) -> None:
        self.identity = identity
        self.stream_sid = "MZ" + hashlib.sha256(identity.call_id.encode()).hexdigest()[:32]
        self._custom = custom if custom is not None else self._own_parameters()
        self._buffer = PlayoutBuffer(self.out_format)
        self._sequence = 0
        self._chunk = 0
        self.streams = 0
        self.finished = False
        """Never set: this dialect ends a call by closing the socket."""

    @property
    def received_bytes(self) -> int:
        """Mu-law bytes that have arrived so far."""
        return self._buffer.received_bytes

    def _own_parameters(self) -> dict[str, str]:
        named = {"from": self.identity.from_, "to": self.identity.to}
        return {**named, **{key: str(value) for key, value in self.identity.variables.items()}}

    def open(self) -> list[Wire]:
        """`connected`, then `start`."""
        connected = {"event": "connected", "protocol": "Call", "version": "1.0.0"}
        start = {
            "streamSid": self.stream_sid,
            "accountSid": ACCOUNT_SID,
            "callSid": self.identity.call_id,
            "tracks": ["inbound"],
            "customParameters": self._custom,
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        }
        return [orjson.dumps(connected).decode(), self._message("start", {"start": start})]

    def _message(self, event: str, body: dict[str, Any]) -> str:
        self._sequence += 1
        head = {
            "event": event,
            "sequenceNumber": str(self._sequence),
            "streamSid": self.stream_sid,
        }
        return orjson.dumps({**head, **body}).decode()

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One `media` of 20 ms."""
        payload = _SILENCE
        if pcm is not None:
            payload = base64.b64encode(g711.encode(pcm, self.in_format.encoding)).decode()
        self._sequence += 1
        self._chunk += 1
        timestamp_ms = (self._chunk - 1) * 20
        # Written out: a load generator makes fifty of these a second for every call.
        return [
            f'{{"event":"media","sequenceNumber":"{self._sequence}","media":{{"track":"inbound",'
            f'"chunk":"{self._chunk}","timestamp":"{timestamp_ms}","payload":"{payload}"}},'
            f'"streamSid":"{self.stream_sid}"}}'
        ]

    def digit(self, digit: str) -> list[Wire]:
        """One `dtmf`."""
        return [self._message("dtmf", {"dtmf": {"track": "inbound_track", "digit": digit}})]

    def hangup(self) -> list[Wire]:
        """`stop`; the socket closes after it."""
        stop = {"accountSid": ACCOUNT_SID, "callSid": self.identity.call_id}
        return [self._message("stop", {"stop": stop})]

    def _mark(self, name: str) -> str:
        return self._message("mark", {"mark": {"name": name}})

    def receive(self, message: Wire) -> list[Wire]:
        """`media`, `mark` or `clear` of the gateway; mark echoes come back."""
        if isinstance(message, bytes):
            raise complain("twilio", "a binary message")
        try:
            body = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("twilio", "a message that is not JSON") from None
        if not isinstance(body, dict):
            raise complain("twilio", "a message that is not an object")
        if body.get("streamSid") != self.stream_sid:
            raise complain("twilio", f"streamSid {body.get('streamSid')!r} is not this stream's")
        event = body.get("event")
        if event == "media":
            self._buffer.push(_payload(body))
            return []
        if event == "mark":
            mark = body.get("mark")
            name = mark.get("name") if isinstance(mark, dict) else None
            if not isinstance(name, str) or not name:
                raise complain("twilio", "a mark without a name")
            self.streams += 1
            return [self._mark(reached) for reached in self._buffer.mark(name)]
        if event == "clear":
            self.streams += 1
            return [self._mark(name) for name in self._buffer.clear()]
        raise complain("twilio", f"unknown event {event!r}")

    def play(self) -> Played:
        """20 ms from the buffer, and echoes of the marks that were reached."""
        data, names = self._buffer.take()
        pcm = g711.decode(data, self.out_format.encoding)
        return Played(pcm, tuple(self._mark(name) for name in names))


def _payload(body: dict[str, Any]) -> bytes:
    media = body.get("media")
    payload = media.get("payload") if isinstance(media, dict) else None
    if not isinstance(payload, str):
        raise complain("twilio", "media without a payload")
    try:
        return base64.b64decode(payload, validate=True)
    except binascii.Error:
        raise complain("twilio", "a payload that is not base64") from None


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The voice webhook, signed with `secret`; its TwiML names the socket and the parameters."""
    url = access.http("/twilio/voice")
    form = {
        "AccountSid": ACCOUNT_SID,
        "CallSid": identity.call_id,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "From": identity.from_,
        "To": identity.to,
    }
    headers = {}
    if access.secret:
        headers["X-Twilio-Signature"] = _signature(url, form, access.secret)
    stream = stream_of(await ask(http, url, form=form, headers=headers))
    parameters = dict(stream.parameters)
    parameters.update({key: str(value) for key, value in identity.variables.items()})
    return Endpoint(stream.url, TwilioPlatform(identity, parameters))


def _signature(url: str, form: Mapping[str, str], auth_token: str) -> str:
    text = url + "".join(key + form[key] for key in sorted(form))
    digest = hmac.new(auth_token.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


SIDE = Side(TwilioPlatform, call_sid, find, proof="--secret AUTH_TOKEN")
