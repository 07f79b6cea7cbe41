"""Vonage Voice websocket endpoint: raw Linear16 frames, JSON for the rest.

Audio is little endian despite its content type's name, in messages of exactly 20 ms; the platform
drops the socket at any other size. There is no message that ends a call: the socket closes. The
call is known by what the answer put into the endpoint's `headers`, which come back in the first
message. How a broken peer is closed:

    1002  a second `websocket:connected`
    1007  not JSON, a field of the wrong type, another content type
    1008  another call than the media token was issued for

Names: Vonage's published description.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import orjson

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels import vonage_rest
from gateway.channels.base import (
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    MarkReached,
    SendMark,
    Started,
    Wire,
    first_text,
    flat,
    key_of,
)
from gateway.channels.capabilities import (
    Capabilities,
    ClearBy,
    DtmfOut,
    EndOut,
    Marks,
    MarksOnClear,
    TransferBy,
)
from gateway.channels.dialect import (
    Dialect,
    Hook,
    MediaRoute,
    Opening,
    Proof,
    Request,
    WebAnswer,
    Webhook,
)
from gateway.channels.vonage_proof import VonageProof, account
from gateway.errors import ProtocolError
from gateway.platform_settings import VonageSettings

CAPABILITIES: Final = Capabilities(
    dialect="vonage",
    marks=Marks.NATIVE,
    # Whether they come back after a clear is not said, so nobody waits for them.
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.NATIVE,
    # It keeps a minute; more than a second of it would only be dropped again.
    max_lead_ms=1000,
    frame_exact=True,
    binary_in=True,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.REST,
    transfer=TransferBy.REST,
)

MARK: Final = "mark"
"""Field of a notification's payload that holds the name of a mark."""
MAX_HEADERS_BYTES: Final = 512
"""Most bytes of an endpoint's custom values, as JSON."""

_CONTENT_TYPE: Final = re.compile(r"audio/l16\s*;\s*rate=(8000|16000|24000)\s*", re.IGNORECASE)
_CALL_ID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)
_OWN_FIELDS: Final = frozenset({"event", "content-type"})


class VonageChannel(Codec):
    """The codec of one websocket endpoint."""

    call_id_fields: tuple[str, ...] = ("uuid", "call_uuid")
    """Custom values that may name the call."""

    def __init__(self, opening: Opening[Any], capabilities: Capabilities = CAPABILITIES) -> None:
        super().__init__(capabilities)
        self._expected_call_id = opening.expected_call_id
        self._account = opening.account
        self._started = False

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message. Raises ProtocolError as the module says."""
        if isinstance(message, bytes):
            return [AudioIn(message)] if message else []
        told = json_object(message)
        event = told.get("event")
        if event == "websocket:connected":
            return [self._start(told)]
        if not self._started:
            return []
        if event == "websocket:dtmf":
            digit = told.get("digit")
            if digit is None and isinstance(told.get("dtmf"), dict):
                digit = told["dtmf"].get("digit")
            return [key_of(digit, "digit")]
        if event == "websocket:notify":
            payload = told.get("payload")
            name = payload.get(MARK) if isinstance(payload, dict) else None
            return [MarkReached(name)] if isinstance(name, str) else []
        return []

    def _start(self, told: dict[str, Any]) -> Started:
        if self._started:
            raise ProtocolError(
                "protocol.started_twice", "a second websocket:connected", close_code=1002
            )
        content_type = told.get("content-type")
        found = _CONTENT_TYPE.fullmatch(content_type) if isinstance(content_type, str) else None
        if found is None:
            raise ProtocolError(
                "protocol.format",
                "only audio/l16 at 8000, 16000 or 24000 Hz is spoken",
                where="content-type",
            )
        custom = {name: value for name, value in told.items() if name not in _OWN_FIELDS}
        call_id = first_text(custom, *self.call_id_fields)
        if self._expected_call_id and call_id not in ("", self._expected_call_id):
            raise ProtocolError(
                "protocol.other_call",
                "the media token belongs to another call",
                where="uuid",
                close_code=1008,
            )
        self._started = True
        audio = AudioFormat(Encoding.LINEAR16, int(found[1]))
        return Started(
            # An answer that is not ours may name no call; then nobody can address it either.
            call_id=self._expected_call_id
            or call_id
            or f"{self._capabilities.dialect}-{secrets.token_hex(8)}",
            channel_id=first_text(custom, "conversation_uuid"),
            from_=first_text(custom, "from"),
            to=first_text(custom, "to"),
            language=first_text(custom, "language"),
            in_format=audio,
            out_format=audio,
            custom=custom,
            account=self._account or first_text(custom, "application_id", "api_key"),
        )

    def audio(self, data: bytes, turn: int) -> bytes:
        """One frame of exactly 20 ms."""
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, clear, hang-up and transfer.

        The last two close the socket: without REST the call goes on with the rest of its NCCO.
        """
        if isinstance(command, SendMark):
            notify = {"action": "notify", "payload": {MARK: command.name}}
            return [orjson.dumps(notify).decode()]
        if isinstance(command, Clear):
            return ['{"action":"clear"}']
        return super().command(command)


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def json_object(message: str | bytes) -> dict[str, Any]:
    """A message or body that is a JSON object. Raises ProtocolError."""
    try:
        return _decode(message)
    except msgspec.ValidationError:
        raise ProtocolError("protocol.shape", "the message is not a JSON object") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProtocolError("protocol.json", f"the message is not JSON: {error}") from None


# ---- webhooks


def answer(hook: Hook[VonageSettings]) -> WebAnswer:
    """The NCCO that connects the call to its media socket."""
    told = _told(hook.request)
    uuid = told.get("uuid", "")
    if not _CALL_ID.fullmatch(uuid):
        raise ProtocolError("protocol.form", "the request names no call", where="uuid")
    endpoint = {
        "type": "websocket",
        "uri": hook.media_url(uuid),
        "content-type": f"audio/l16;rate={hook.settings.rate_hz}",
        "headers": _headers(told, uuid, hook.settings.variables),
    }
    return _json([{"action": "connect", "endpoint": [endpoint]}])


def noted(hook: Hook[VonageSettings]) -> WebAnswer:
    """What happens to calls is told here; the media socket knows it already."""
    return _json({})


def _told(request: Request) -> dict[str, str]:
    if request.method == "GET":
        return {name: values[0] for name, values in request.query.items() if values}
    return flat(json_object(request.body))


def _headers(told: dict[str, str], uuid: str, named: Iterable[str]) -> dict[str, str]:
    """What comes back in the first message: as much as the platform carries, the call first."""
    headers = {"uuid": uuid}
    for name in ("from", "to", *named, "conversation_uuid"):
        more = {**headers, name: told.get(name, "")}
        if more[name] and len(orjson.dumps(more)) <= MAX_HEADERS_BYTES:
            headers = more
    return headers


def _json(value: object) -> WebAnswer:
    return WebAnswer(orjson.dumps(value), "application/json")


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=VonageChannel,
    settings=lambda platforms: platforms.vonage,
    routes=(
        MediaRoute("/vonage/media/{token}", Proof.TOKEN),
        # For NCCOs that are not ours: the endpoint's own authorization is the proof.
        MediaRoute("/vonage/media", Proof.PLATFORM),
    ),
    webhooks=(
        Webhook("/vonage/answer", answer, methods=("GET", "POST")),
        Webhook("/vonage/event", noted, methods=("GET", "POST")),
    ),
    proof=VonageProof,
    secrets="auth_tokens",
    proof_keys=frozenset({"account"}),
    rest=vonage_rest.rest,
    account=account,
)
