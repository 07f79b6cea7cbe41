"""Vonage's side of a websocket endpoint: frames of Linear16 in binary, JSON for the rest.

Takes messages of exactly 20 ms and drops the socket at any other size; keeps 3072 of them.
Confirms a clear, and tells of a notification once everything before it was played.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.errors import RuntimeFailure
from gateway.simulate.platforms.access import Access, Endpoint, Side, ask, first_line
from gateway.simulate.platforms.base import Identity, Played, PlayoutBuffer, Wire, complain

MAX_MESSAGES: Final = 3072
API_KEY = "abcd1234"
APPLICATION_ID = "aaaaaaaa-bbbb-cccc-dddd-0123456789ab"


def call_uuid(name: str) -> str:
    """A call id in the platform's shape, always the same for `name`."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


class VonagePlatform:
    """One endpoint. `headers`: the custom values of the NCCO."""

    hangup_wait_s = 0.0

    def __init__(
        self, identity: Identity, headers: Mapping[str, Any] | None = None, rate_hz: int = 16000
    ) -> None:
        self.identity = identity
        self.in_format = self.out_format = AudioFormat(Encoding.LINEAR16, rate_hz)
        own = {"uuid": identity.call_id, "from": identity.from_, "to": identity.to}
        self._headers = {**(own if headers is None else headers), **identity.variables}
        self._buffer = PlayoutBuffer(self.out_format)
        self.streams = 0
        self.finished = False
        """Set where it drops the socket."""

    @property
    def received_bytes(self) -> int:
        """Bytes of audio that have arrived so far."""
        return self._buffer.received_bytes

    def open(self) -> list[Wire]:
        """`websocket:connected`, the custom values beside it."""
        content_type = f"audio/l16;rate={self.in_format.rate_hz}"
        told = {"event": "websocket:connected", "content-type": content_type, **self._headers}
        return [orjson.dumps(told).decode()]

    def media(self, pcm: Pcm | None) -> list[Wire]:
        """One frame."""
        return [self.in_format.silence if pcm is None else pcm]

    def digit(self, digit: str) -> list[Wire]:
        """One `websocket:dtmf`."""
        told = {"event": "websocket:dtmf", "digit": digit, "duration": 260}
        return [orjson.dumps(told).decode()]

    def hangup(self) -> list[Wire]:
        """Nothing: the socket closes."""
        return []

    def receive(self, message: Wire) -> list[Wire]:
        """A frame, `clear` or `notify`."""
        if isinstance(message, bytes):
            wanted = self.out_format.frame_bytes
            if len(message) != wanted:
                self.finished = True
                raise complain(
                    "vonage", f"a message of {len(message)} bytes where {wanted} are taken"
                )
            if self._buffer.buffered_s >= MAX_MESSAGES * 0.02:
                raise complain("vonage", f"more than {MAX_MESSAGES} messages ahead")
            self._buffer.push(message)
            return []
        try:
            told = orjson.loads(message)
        except orjson.JSONDecodeError:
            raise complain("vonage", "a text that is not JSON") from None
        action = told.get("action") if isinstance(told, dict) else None
        self.streams += 1
        if action == "clear":
            # What becomes of waiting notifications is not said: here they are forgotten.
            self._buffer.clear()
            return ['{"event":"websocket:cleared"}']
        if action == "notify":
            if not isinstance(told.get("payload"), dict):
                raise complain("vonage", "a notify without payload")
            payload = orjson.dumps(told["payload"]).decode()
            return [_notified(reached) for reached in self._buffer.mark(payload)]
        raise complain("vonage", f"unknown action {action!r}")

    def play(self) -> Played:
        """20 ms from the buffer, and the notifications that were reached."""
        data, names = self._buffer.take()
        return Played(data, tuple(_notified(name) for name in names))


def _notified(payload: str) -> str:
    return f'{{"event":"websocket:notify","payload":{payload}}}'


def signed_token(secret: str, body: bytes, application: str = APPLICATION_ID) -> str:
    """The token of a webhook, made now: HS256 with the account's signature secret."""
    claims = {
        "iat": int(time.time()),
        "jti": secrets.token_hex(16),
        "iss": "Vonage",
        "payload_hash": hashlib.sha256(body).hexdigest(),
        "api_key": API_KEY,
        "application_id": application,
    }
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
    digest = hmac.digest(secret.encode(), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


def endpoint_of(answer: bytes) -> dict[str, Any]:
    """The websocket endpoint of an NCCO. Raises RuntimeFailure without one."""
    try:
        ncco = orjson.loads(answer)
        for action in ncco:
            for endpoint in action["endpoint"] if action["action"] == "connect" else ():
                if endpoint["type"] == "websocket" and isinstance(endpoint["uri"], str):
                    return dict(endpoint)
    except (orjson.JSONDecodeError, TypeError, KeyError):
        pass
    raise RuntimeFailure(
        "protocol.ncco", f"the webhook's answer connects no websocket: {first_line(answer)}"
    )


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The answer webhook, its token signed with `secret` for the application `key`; its NCCO names
    the socket."""
    call = {
        "from": identity.from_.removeprefix("+"),
        "to": identity.to.removeprefix("+"),
        "uuid": identity.call_id,
        "conversation_uuid": f"CON-{call_uuid(identity.call_id)}",
        "region_url": "https://api-us-3.vonage.com",
    }
    body = orjson.dumps(call)
    headers = {"Content-Type": "application/json"}
    if access.secret:
        token = signed_token(access.secret, body, access.key or APPLICATION_ID)
        headers["Authorization"] = f"Bearer {token}"
    answer = await ask(http, access.http("/vonage/answer"), body=body, headers=headers)
    endpoint = endpoint_of(answer)
    rate = re.fullmatch(r"audio/l16;rate=(\d+)", str(endpoint.get("content-type")))
    if rate is None:
        raise RuntimeFailure("protocol.ncco", "the NCCO asks for another content type")
    told = endpoint.get("headers", {})
    if len(orjson.dumps(told)) > 512:
        raise RuntimeFailure("protocol.ncco", "the NCCO's headers are above 512 bytes")
    return Endpoint(endpoint["uri"], VonagePlatform(identity, told, int(rate[1])))


SIDE = Side(VonagePlatform, call_uuid, find, proof="--secret SIGNATURE_SECRET --key ACCOUNT")
