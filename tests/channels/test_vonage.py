"""The Vonage websocket endpoint, message by message; its webhooks, proof and REST interface."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import jwt as pyjwt
import pytest
from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels import vonage_rest
from gateway.channels.base import (
    AgentText,
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    EndReason,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import ClearBy, DtmfOut, EndOut, Marks, TransferBy
from gateway.channels.dialect import Bearer, CallRef, Hook, Opening, Request, WebAnswer
from gateway.channels.vonage import MAX_HEADERS_BYTES, VonageChannel, answer, noted
from gateway.channels.vonage_proof import VonageProof
from gateway.errors import AuthError, ProtocolError
from gateway.platform_settings import VonageSettings
from tests.channels.fuzz import messages, only_protocol_errors
from tests.channels.test_jwt import KEY, pem

UUID = "63f61863-4a51-4f6b-86e1-46edebcf9356"
CONNECTED: dict[str, Any] = {
    "event": "websocket:connected",
    "content-type": "audio/l16;rate=16000",
    "uuid": UUID,
    "conversation_uuid": "CON-1",
    "from": "15550100",
    "to": "15550199",
    "tier": "gold",
}
LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)
SECRET = "a signature secret of thirty-two characters"
NOW_S = 1700000000.0


def vonage(expected_call_id: str = "") -> VonageChannel:
    return VonageChannel(Opening(VonageSettings(), expected_call_id=expected_call_id))


def connected() -> VonageChannel:
    channel = vonage()
    channel.receive(json.dumps(CONNECTED))
    return channel


# ---- in


def test_the_first_message_tells_format_and_custom_values() -> None:
    assert vonage().receive(json.dumps(CONNECTED)) == [
        Started(
            call_id=UUID,
            channel_id="CON-1",
            from_="15550100",
            to="15550199",
            in_format=LINEAR16_16K,
            out_format=LINEAR16_16K,
            custom={k: v for k, v in CONNECTED.items() if k not in ("event", "content-type")},
        )
    ]


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000])
def test_the_rate_is_what_the_content_type_says(rate_hz: int) -> None:
    told = {**CONNECTED, "content-type": f"audio/l16; rate={rate_hz}"}
    (started,) = vonage().receive(json.dumps(told))
    assert isinstance(started, Started)
    assert started.out_format == AudioFormat(Encoding.LINEAR16, rate_hz)


@pytest.mark.parametrize("content_type", ["audio/l16;rate=44100", "audio/mulaw", "", None, 7])
def test_another_content_type_is_not_spoken(content_type: object) -> None:
    with pytest.raises(ProtocolError) as caught:
        vonage().receive(json.dumps({**CONNECTED, "content-type": content_type}))
    assert caught.value.code == "protocol.format"


def test_the_token_s_call_is_the_call() -> None:
    assert vonage(UUID).receive(json.dumps(CONNECTED))
    with pytest.raises(ProtocolError) as caught:
        vonage("another").receive(json.dumps(CONNECTED))
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)
    unnamed = {name: value for name, value in CONNECTED.items() if name != "uuid"}
    (started,) = vonage("from-the-token").receive(json.dumps(unnamed))
    assert isinstance(started, Started)
    assert started.call_id == "from-the-token"
    ids = {vonage().receive(json.dumps(unnamed))[0].call_id for _ in range(3)}  # type: ignore[union-attr]
    assert len(ids) == 3


def test_audio_keys_and_notifications() -> None:
    channel = connected()
    assert channel.receive(b"\x01\x00" * 320) == [AudioIn(b"\x01\x00" * 320)]
    assert channel.receive(b"") == []
    for digit in (
        {"digit": "5", "duration": 260},
        {"digit": 5},
        {"dtmf": {"digit": "5"}},
    ):
        told = {"event": "websocket:dtmf", **digit}
        assert channel.receive(json.dumps(told)) == [DtmfIn("5")]
    notify = {"event": "websocket:notify", "payload": {"mark": "7.3"}}
    assert channel.receive(json.dumps(notify)) == [MarkReached("7.3")]
    for payload in ({"other": 1}, {"mark": 7}, None, []):
        assert channel.receive(json.dumps({**notify, "payload": payload})) == []


@pytest.mark.parametrize(
    "message", ['{"event":"websocket:cleared"}', '{"event":"new"}', "{}", '{"event":7}']
)
def test_what_tells_nothing_is_ignored(message: str) -> None:
    assert connected().receive(message) == []


def test_keys_before_the_start_are_dropped_and_audio_is_passed_on() -> None:
    assert vonage().receive('{"event":"websocket:dtmf","digit":"1"}') == []
    assert vonage().receive(b"\x01\x00") == [AudioIn(b"\x01\x00")]


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        ("hello", "protocol.json", 1007),
        ("", "protocol.json", 1007),
        ("[1]", "protocol.shape", 1007),
        (json.dumps(CONNECTED), "protocol.started_twice", 1002),
        ('{"event":"websocket:dtmf"}', "protocol.dtmf", 1007),
        ('{"event":"websocket:dtmf","digit":"12"}', "protocol.dtmf", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str, code: str, close_code: int) -> None:
    channel = connected()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)
    assert channel.protocol_close(caught.value) == [
        Close(close_code, str(caught.value).encode()[:123].decode())
    ]


# ---- out


def test_commands() -> None:
    channel = connected()
    frame = bytes(640)
    assert channel.audio(frame, 1) is frame
    (notify,) = channel.command(SendMark("7.3"))
    assert json.loads(str(notify)) == {"action": "notify", "payload": {"mark": "7.3"}}
    assert channel.command(Clear()) == ['{"action":"clear"}']
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert channel.command(AgentText("hi", 1)) == []


def test_every_message_of_audio_is_one_frame_exactly() -> None:
    able = vonage().capabilities
    assert (able.frame_exact, able.min_message_ms) == (True, 20)
    assert able.clear is ClearBy.NATIVE
    assert able.marks is Marks.NATIVE
    assert (able.dtmf_out, able.end_out, able.transfer) == (
        DtmfOut.REST,
        EndOut.REST,
        TransferBy.REST,
    )


# ---- webhooks


def hook(request: Request, **settings: Any) -> Hook[VonageSettings]:
    return Hook(VonageSettings(**settings), request, lambda call_id: f"wss://v.example/{call_id}/t")


def ncco(answered: WebAnswer) -> list[dict[str, Any]]:
    assert answered.content_type == "application/json"
    body: list[dict[str, Any]] = json.loads(answered.body)
    return body


CALL = {"uuid": UUID, "from": "15550100", "to": "15550199", "conversation_uuid": "CON-1"}


@pytest.mark.parametrize(
    "request_",
    [
        Request("/vonage/answer", method="POST", body=json.dumps(CALL).encode()),
        Request("/vonage/answer", query={name: [value] for name, value in CALL.items()}),
    ],
)
def test_the_answer_connects_the_call_to_its_socket(request_: Request) -> None:
    assert ncco(answer(hook(request_, rate_hz=24000))) == [
        {
            "action": "connect",
            "endpoint": [
                {
                    "type": "websocket",
                    "uri": f"wss://v.example/{UUID}/t",
                    "content-type": "audio/l16;rate=24000",
                    "headers": CALL,
                }
            ],
        }
    ]


def test_what_does_not_fit_into_the_headers_is_left_out() -> None:
    long = {**CALL, "from": "sip:" + "a" * 600}
    request = Request("/vonage/answer", method="POST", body=json.dumps(long).encode())
    headers = ncco(answer(hook(request)))[0]["endpoint"][0]["headers"]
    assert len(json.dumps(headers)) <= MAX_HEADERS_BYTES
    assert headers == {name: CALL[name] for name in ("uuid", "to", "conversation_uuid")}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"uuid":"../x"}', b'{"uuid":""}'])
def test_a_request_that_names_no_call_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        answer(hook(Request("/vonage/answer", method="POST", body=body)))


def test_events_are_taken() -> None:
    assert noted(hook(Request("/vonage/event"))).body == b"{}"


# ---- the proof


def signed(body: bytes = b"", secret: str = SECRET, **claims: Any) -> Request:
    told = {"iat": NOW_S, "iss": "Vonage", **claims}
    token = pyjwt.encode(told, secret, algorithm="HS256")
    return Request("/vonage/answer", body=body, headers={"authorization": f"Bearer {token}"})


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def test_a_token_counts_once_however_its_signature_is_spelled() -> None:
    proof = VonageProof(VonageSettings(auth_tokens=[SECRET]))
    first = signed(jti="1")
    proof.check(first, NOW_S)
    proof.check(signed(jti="2"), NOW_S)
    padded = Request("", headers={"authorization": first.header("authorization") + "="})
    for again in (first, padded):
        with pytest.raises(AuthError) as caught:
            proof.check(again, NOW_S + 1)
        assert (caught.value.code, caught.value.status) == ("auth.replayed", 401)


def test_a_token_of_the_account_opens() -> None:
    proof = VonageProof(VonageSettings(auth_tokens=["old " + SECRET, SECRET], account="app-1"))
    assert proof.configured
    proof.check(signed(), NOW_S)
    proof.check(signed(payload_hash=digest(b"")), NOW_S)
    proof.check(signed(b"{}", payload_hash=digest(b"{}"), application_id="app-1"), NOW_S + 200)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request("/"), "auth.missing"),
        (Request("/", headers={"authorization": "Bearer x"}), "auth.signature"),
        (signed(secret=SECRET + "x"), "auth.signature"),
        (signed(iat=NOW_S - 301), "auth.expired"),
        (signed(iat=NOW_S + 61), "auth.expired"),
        (signed(iat=None), "auth.expired"),
        (signed(exp=NOW_S - 61), "auth.expired"),
        (signed(application_id="app-2"), "auth.application"),
        (signed(b"{}"), "auth.body"),
        (signed(b"{}", payload_hash=digest(b"[]")), "auth.body"),
        (signed(b"", payload_hash=digest(b"[]")), "auth.body"),
    ],
)
def test_anything_else_does_not(request_: Request, code: str) -> None:
    proof = VonageProof(VonageSettings(auth_tokens=[SECRET], account="app-1"))
    with pytest.raises(AuthError) as caught:
        proof.check(request_, NOW_S)
    assert (caught.value.code, caught.value.status) == (code, 401)


def test_basic_credentials_of_an_endpoint_open_too_but_a_bare_secret_does_not() -> None:
    proof = VonageProof(VonageSettings(auth_tokens=[SECRET], username="v", password="pw"))
    proof.check(Request("/", headers={"authorization": "Basic djpwdw=="}), NOW_S)
    with pytest.raises(AuthError):
        proof.check(Request("/", headers={"authorization": f"Bearer {SECRET}"}), NOW_S)


# ---- REST


def rest() -> vonage_rest.VonageRest:
    made = vonage_rest.rest(VonageSettings(account="app-1", api_secret=pem(KEY)))
    assert made is not None
    return made


def test_rest_is_opened_by_a_token_of_the_application() -> None:
    made = rest()
    first = made.auth(NOW_S)
    assert isinstance(first, Bearer)
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims = pyjwt.decode(first.token, KEY.public_key(), algorithms=["RS256"], options=options)
    assert (claims["application_id"], claims["iat"]) == ("app-1", NOW_S)
    assert claims["exp"] - claims["iat"] == 600
    assert claims["jti"]
    assert made.auth(NOW_S + 200) == first, "it is kept for a while"
    assert made.auth(NOW_S + 301) != first
    assert made.base_url == "https://api.nexmo.com"


def asked(requests: Sequence[Any]) -> tuple[str, str, Any]:
    (request,) = requests
    return request.method, request.path, request.json


def test_what_rest_is_asked() -> None:
    call = CallRef("a/b", custom={"to": "+15550199"})
    assert asked(rest().hangup(call, {})) == ("PUT", "/v1/calls/a%2Fb", {"action": "hangup"})
    assert asked(rest().send_dtmf(call, "12#")) == (
        "PUT",
        "/v1/calls/a%2Fb/dtmf",
        {"digits": "12#"},
    )
    connect = {
        "action": "connect",
        "from": "15550199",
        "endpoint": [{"type": "phone", "number": "15550123"}],
    }
    destination = {"type": "ncco", "ncco": [connect]}
    assert asked(rest().transfer(call, "tel:+15550123", {})) == (
        "PUT",
        "/v1/calls/a%2Fb",
        {"action": "transfer", "destination": destination},
    )
    (sip,) = rest().transfer(CallRef("c"), "sip:desk@example.com", {})
    assert sip.json["destination"]["ncco"] == [
        {"action": "connect", "endpoint": [{"type": "sip", "uri": "sip:desk@example.com"}]}
    ]
    assert rest().transfer(call, "", {}) == []


def test_keys_are_not_pressed_twice() -> None:
    (request,) = rest().send_dtmf(CallRef("c"), "1")
    assert not request.repeatable


NAMES = [
    *("event", "websocket:connected", "websocket:dtmf", "websocket:notify", "content-type"),
    *("audio/l16;rate=16000", "uuid", "digit", "dtmf", "payload", "mark", "from"),
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(vonage, received)
    only_protocol_errors(connected, received)
