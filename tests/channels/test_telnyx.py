"""Telnyx media streaming, message by message; its webhooks, proof and REST interface."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from pydantic import ValidationError

from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.channels import telnyx_rest
from gateway.channels.base import (
    AgentText,
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    Ended,
    EndReason,
    Hangup,
    MarkReached,
    PlatformFault,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import ClearBy, DtmfOut, EndOut, Marks, TransferBy
from gateway.channels.dialect import Bearer, CallRef, Hook, Opening, Request
from gateway.channels.telnyx import TelnyxChannel, call_control, texml
from gateway.channels.telnyx_proof import TelnyxProof
from gateway.errors import AuthError, ConfigError, ProtocolError
from gateway.platform_settings import TelnyxSettings
from tests.channels.fuzz import messages, only_protocol_errors

CALL_ID = "v3:MdI91X4lWFEs7IgbBEOT9M4AigoY08M0WWZFISt1Yw2axZ_IiE4pqg"
START: dict[str, Any] = {
    "event": "start",
    "sequence_number": "1",
    "stream_id": "32de0dea-53cb-4b21-89a4-9e1819c043bc",
    "start": {
        "user_id": "3e6f995f-85f7-4705-9741-53b116d28237",
        "call_control_id": CALL_ID,
        "client_state": base64.b64encode(b"desk-7").decode(),
        "custom_parameters": {"tier": "gold"},
        "from": "+15550100",
        "to": "+15550199",
        "media_format": {"encoding": "PCMA", "sample_rate": 8000, "channels": 1},
    },
}
NOW_S = 1700000000.0


def telnyx(expected_call_id: str = "", **settings: Any) -> TelnyxChannel:
    return TelnyxChannel(Opening(TelnyxSettings(**settings), expected_call_id=expected_call_id))


def start(**over: Any) -> str:
    return json.dumps({**START, "start": {**START["start"], **over}})


def started(**settings: Any) -> TelnyxChannel:
    channel = telnyx(**settings)
    channel.receive(start())
    return channel


def media(payload: bytes, **over: Any) -> str:
    body = {"track": "inbound", "timestamp": "5", "payload": base64.b64encode(payload).decode()}
    return json.dumps({"event": "media", "sequence_number": "4", "media": {**body, **over}})


# ---- in


def test_start_tells_the_call_and_the_two_formats() -> None:
    assert telnyx().receive('{"event":"connected","version":"1.0.0"}') == []
    assert telnyx().receive(start()) == [
        Started(
            call_id=CALL_ID,
            channel_id=START["stream_id"],
            from_="+15550100",
            to="+15550199",
            in_format=ALAW_8K,
            out_format=MULAW_8K,
            custom={"tier": "gold", "client_state": "desk-7"},
            account=START["start"]["user_id"],
        )
    ]


@pytest.mark.parametrize(
    ("told", "in_format"),
    [
        ({"encoding": "PCMU", "sample_rate": 8000, "channels": 1}, MULAW_8K),
        ({"encoding": "PCMU", "sample_rate": "8000"}, MULAW_8K),
        ({"encoding": "PCMA"}, ALAW_8K),
        ({"encoding": "L16", "sample_rate": 16000}, AudioFormat(Encoding.LINEAR16, 16000)),
    ],
)
def test_what_comes_is_what_the_leg_has_agreed_on(
    told: dict[str, Any], in_format: AudioFormat
) -> None:
    (event,) = telnyx(codec="L16", rate_hz=24000).receive(start(media_format=told))
    assert isinstance(event, Started)
    assert event.in_format == in_format
    assert event.out_format == AudioFormat(Encoding.LINEAR16, 24000)


@pytest.mark.parametrize(
    "told",
    [
        {"encoding": "OPUS", "sample_rate": 16000},
        {"encoding": "PCMU", "sample_rate": 16000},
        {"encoding": "L16", "sample_rate": 11025},
        {"encoding": "PCMU", "channels": 2},
    ],
)
def test_other_codecs_are_not_spoken(told: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        telnyx().receive(start(media_format=told))
    assert caught.value.code == "protocol.format"


def test_a_telephone_codec_has_one_rate_in_the_settings_too() -> None:
    with pytest.raises(ValidationError, match="L16"):
        TelnyxSettings(codec="PCMA", rate_hz=16000)


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        ([{"name": "tier", "value": "gold"}, {"other": 1}], {"tier": "gold"}),
        (None, {}),
        ({}, {}),
    ],
)
def test_custom_parameters_come_in_two_forms(custom: Any, expected: dict[str, Any]) -> None:
    (event,) = telnyx().receive(start(custom_parameters=custom, client_state=None))
    assert isinstance(event, Started)
    assert event.custom == expected


def test_a_client_state_that_is_not_base64_is_kept_as_it_is() -> None:
    (event,) = telnyx().receive(start(client_state="not base64!"))
    assert isinstance(event, Started)
    assert event.custom["client_state"] == "not base64!"


def test_audio_is_put_in_order() -> None:
    channel = started()
    heard = [channel.receive(media(str(n).encode(), chunk=str(n))) for n in (1, 3, 2, 2, 4)]
    assert heard == [
        [AudioIn(b"1")],
        [],
        [AudioIn(b"2"), AudioIn(b"3")],
        [],
        [AudioIn(b"4")],
    ]


def test_audio_is_taken_as_it_comes_where_the_settings_or_the_platform_say_so() -> None:
    for channel, numbers in (
        (started(reorder_frames=0), [{"chunk": "3"}, {"chunk": "1"}]),
        (started(), [{}, {}]),
    ):
        heard = [channel.receive(media(b"x", **number)) for number in numbers]
        assert heard == [[AudioIn(b"x")], [AudioIn(b"x")]]
    assert started().receive(media(b"x", track="outbound")) == []
    assert started().receive(media(b"")) == []


def test_linear16_in_network_order_is_a_setting() -> None:
    channel = telnyx(codec="L16", rate_hz=16000, l16_big_endian=True)
    channel.receive(start(media_format={"encoding": "L16", "sample_rate": 16000}))
    assert channel.receive(media(b"\x01\x02\x03", chunk=1)) == [AudioIn(b"\x02\x01")]
    assert channel.receive(media(b"\x04", chunk=2)) == [AudioIn(b"\x04\x03")]
    out = json.loads(channel.audio(b"\x02\x01", 1))
    assert base64.b64decode(out["media"]["payload"]) == b"\x01\x02"


def test_keys_marks_faults_and_the_end() -> None:
    channel = started()
    dtmf = {"event": "dtmf", "occurred_at": "2026-01-01", "dtmf": {"digit": "#"}}
    assert channel.receive(json.dumps(dtmf)) == [DtmfIn("#")]
    assert channel.receive('{"event":"mark","mark":{"name":"7.3"}}') == [MarkReached("7.3")]
    fault = {"code": 100003, "title": "malformed_frame", "detail": "bad audio"}
    assert channel.receive(json.dumps({"event": "error", "payload": fault})) == [
        PlatformFault("100003", "malformed_frame bad audio")
    ]
    assert channel.receive('{"event":"new-one","media":7}') == []
    assert channel.receive('{"event":"stop","stop":{}}') == [Ended()]
    assert channel.receive(media(b"x", chunk=1)) == []


def test_keys_and_marks_before_start_are_dropped() -> None:
    assert telnyx().receive('{"event":"mark","mark":{"name":"x"}}') == []
    assert telnyx().receive('{"event":"dtmf","dtmf":{"digit":"1"}}') == []


def test_the_token_s_call_is_the_call() -> None:
    assert telnyx(CALL_ID).receive(start())
    assert telnyx("CA1").receive(start(custom_parameters={"callSid": "CA1"}))
    with pytest.raises(ProtocolError) as caught:
        telnyx("another").receive(start())
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ("{}", "protocol.shape", 1007),
        ('{"event":"stop"}', "protocol.order", 1002),
        ('{"event":"media"}', "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":"a$b="}}', "protocol.shape", 1007),
        ('{"event":"start","start":{}}', "protocol.shape", 1007),
        ('{"event":"start","start":{"call_control_id":""}}', "protocol.shape", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        telnyx().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_a_second_start_is_an_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        started().receive(start())
    assert caught.value.code == "protocol.started_twice"


# ---- out


def test_commands() -> None:
    channel = started()
    assert json.loads(channel.audio(b"\xff\x00", 1)) == {
        "event": "media",
        "media": {"payload": "/wA="},
    }
    (mark,) = channel.command(SendMark('7"3'))
    assert json.loads(str(mark)) == {"event": "mark", "mark": {"name": '7"3'}}
    assert channel.command(Clear()) == ['{"event":"clear"}']
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert channel.command(AgentText("hi", 1)) == []


def test_what_telnyx_can_do() -> None:
    able = telnyx().capabilities
    assert able.marks is Marks.NATIVE
    assert able.clear is ClearBy.NATIVE
    assert (able.dtmf_out, able.end_out, able.transfer) == (
        DtmfOut.REST,
        EndOut.REST,
        TransferBy.REST,
    )


# ---- webhooks


def hook(request: Request, **settings: Any) -> Hook[TelnyxSettings]:
    return Hook(TelnyxSettings(**settings), request, lambda _: "wss://v.example/t")


FORM = {"CallSid": [CALL_ID], "From": ["+15550100"], "To": ["+15550199"]}


@pytest.mark.parametrize(
    "request_", [Request("/", form=FORM, method="POST"), Request("/", query=FORM)]
)
def test_texml_asks_for_both_directions(request_: Request) -> None:
    stream = ElementTree.fromstring(texml(hook(request_)).body).find("Connect/Stream")
    assert stream is not None
    assert stream.attrib == {
        "url": "wss://v.example/t",
        "bidirectionalMode": "rtp",
        "bidirectionalCodec": "PCMU",
    }
    told = {one.get("name"): one.get("value") for one in stream.findall("Parameter")}
    assert told == {"callSid": CALL_ID, "from": "+15550100", "to": "+15550199"}


def test_texml_names_the_rate_of_linear16() -> None:
    request = Request("/", form=FORM, method="POST")
    body = texml(hook(request, codec="L16", rate_hz=16000)).body
    assert b'bidirectionalCodec="L16" bidirectionalSamplingRate="16000"' in body
    assert b"<Pause" not in body, "a pause would hold the call after its stream"


def event(kind: str = "call.initiated", **payload: Any) -> Request:
    told = {"call_control_id": CALL_ID, "direction": "incoming", **payload}
    body = {"data": {"event_type": kind, "payload": told}, "meta": {}}
    return Request("/telnyx/call-control", method="POST", body=json.dumps(body).encode())


def test_an_incoming_call_is_answered_with_its_stream() -> None:
    (request,) = call_control(hook(event(), codec="L16", rate_hz=16000)).requests
    assert (request.method, request.path) == (
        "POST",
        f"/v2/calls/{CALL_ID.replace(':', '%3A')}/actions/answer",
    )
    told = dict(request.json)
    assert told.pop("command_id")
    assert told == {
        "stream_url": "wss://v.example/t",
        "stream_track": "inbound_track",
        "stream_codec": "L16",
        "stream_bidirectional_mode": "rtp",
        "stream_bidirectional_codec": "L16",
        "stream_bidirectional_sampling_rate": 16000,
    }


@pytest.mark.parametrize(
    "request_", [event("call.answered"), event("streaming.started"), event(direction="outgoing")]
)
def test_other_events_are_only_taken(request_: Request) -> None:
    assert call_control(hook(request_)).requests == ()


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"data":{}}', b"\xff", b"[" * 2000])
def test_a_body_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        call_control(hook(Request("/", method="POST", body=body)))


def test_a_request_that_names_no_call_is_refused() -> None:
    for request in (Request("/", method="POST"), Request("/", query={"CallSid": ["a/b"]})):
        with pytest.raises(ProtocolError):
            texml(hook(request))
    with pytest.raises(ProtocolError):
        call_control(hook(event(call_control_id="")))


# ---- the proof

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = base64.b64encode(KEY.public_key().public_bytes_raw()).decode()
OLD = base64.b64encode(Ed25519PrivateKey.generate().public_key().public_bytes_raw()).decode()
BODY = b'{"data":1}'


def signed(body: bytes = BODY, stamp: str = str(int(NOW_S)), **headers: str) -> Request:
    signature = base64.b64encode(KEY.sign(f"{stamp}|".encode() + BODY)).decode()
    told = {"telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp, **headers}
    return Request("/", method="POST", body=body, headers=told)


def test_a_signed_webhook_is_genuine_whichever_key_has_signed_it() -> None:
    proof = TelnyxProof(TelnyxSettings(public_keys=[OLD, PUBLIC]))
    assert proof.configured
    proof.check(signed(), NOW_S)
    proof.check(signed(stamp=str(int(NOW_S) + 1)), NOW_S + 299)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request("/"), "auth.unsigned"),
        (signed(b'{"data":2}'), "auth.signature"),
        (signed(**{"telnyx-signature-ed25519": "AAAA"}), "auth.signature"),
        (signed(**{"telnyx-signature-ed25519": "%"}), "auth.signature"),
        (signed(**{"telnyx-timestamp": str(int(NOW_S) + 1)}), "auth.signature"),
        (signed(**{"telnyx-timestamp": ""}), "auth.unsigned"),
        (signed(**{"telnyx-timestamp": "²"}), "auth.unsigned"),
        (signed(stamp=str(int(NOW_S) - 301)), "auth.expired"),
        (signed(stamp=str(int(NOW_S) + 301)), "auth.expired"),
        (Request("/", headers={"authorization": "Bearer wrong"}), "auth.bearer"),
    ],
)
def test_anything_else_is_not(request_: Request, code: str) -> None:
    proof = TelnyxProof(TelnyxSettings(public_keys=[PUBLIC], auth_tokens=["stream-token"]))
    with pytest.raises(AuthError) as caught:
        proof.check(request_, NOW_S)
    assert caught.value.code == code


def test_a_signature_is_good_once_however_it_is_spelled() -> None:
    proof = TelnyxProof(TelnyxSettings(public_keys=[PUBLIC]))
    first = signed()
    proof.check(first, NOW_S)
    written = first.header("telnyx-signature-ed25519")
    # The last digit before the padding has bits that mean nothing.
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = written[:-3] + digits[digits.index(written[-3]) ^ 1] + "=="
    assert base64.b64decode(other) == base64.b64decode(written)
    for again in (first, signed(**{"telnyx-signature-ed25519": other})):
        with pytest.raises(AuthError) as caught:
            proof.check(again, NOW_S + 300)
        assert (caught.value.code, caught.value.status) == ("auth.replayed", 401)
    # What the platform itself sends again is signed anew.
    proof.check(signed(stamp=str(int(NOW_S) + 5)), NOW_S + 5)


def test_calls_of_one_second_without_a_body_share_a_signature() -> None:
    proof = TelnyxProof(TelnyxSettings(public_keys=[PUBLIC]))
    stamp = str(int(NOW_S))
    signature = base64.b64encode(KEY.sign(f"{stamp}|".encode())).decode()
    told = {"telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp}
    for query in ("CallSid=a", "CallSid=b"):
        proof.check(Request("/telnyx/texml", raw_query=query, headers=told), NOW_S)
    with pytest.raises(AuthError, match="used before"):
        proof.check(Request("/telnyx/texml", raw_query="CallSid=b", headers=told), NOW_S)


@pytest.mark.parametrize("value", ["Bearer stream-token", "stream-token", "Token stream-token"])
def test_a_stream_token_opens_a_socket(value: str) -> None:
    proof = TelnyxProof(TelnyxSettings(auth_tokens=["other", "stream-token"]))
    proof.check(Request("/", headers={"authorization": value}), NOW_S)


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!"])
def test_a_key_that_is_none_is_told_at_the_start(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TelnyxProof(TelnyxSettings(public_keys=[text]))
    assert caught.value.where == "platforms.telnyx.public_keys"


# ---- REST


def rest() -> telnyx_rest.TelnyxRest:
    made = telnyx_rest.rest(TelnyxSettings(api_secret="KEY1"))
    assert made is not None
    return made


def asked(requests: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    (request,) = requests
    assert request.method == "POST"
    assert '"90018"' in request.gone_words, "a call that has ended is no failure"
    told = {name: value for name, value in request.json.items() if name != "command_id"}
    return request.path, told


def test_what_rest_is_asked() -> None:
    call = CallRef("v3:a/b")
    base = "/v2/calls/v3%3Aa%2Fb/actions"
    assert rest().auth(NOW_S) == Bearer("KEY1")
    assert rest().base_url == "https://api.telnyx.com"
    assert asked(rest().hangup(call, {})) == (f"{base}/hangup", {})
    assert asked(rest().transfer(call, "tel:+15550123", {})) == (
        f"{base}/transfer",
        {"to": "+15550123"},
    )
    assert asked(rest().send_dtmf(call, "12#")) == (f"{base}/send_dtmf", {"digits": "12#"})
    assert rest().transfer(call, "", {}) == []


def test_a_command_that_is_sent_again_is_the_same_command_but_keys_are_not_repeated() -> None:
    (one,), (two,) = rest().hangup(CallRef("a"), {}), rest().hangup(CallRef("a"), {})
    (other,) = rest().hangup(CallRef("b"), {})
    assert one.json["command_id"] == two.json["command_id"] != other.json["command_id"]
    (keys,) = rest().send_dtmf(CallRef("a"), "1")
    assert not keys.repeatable


NAMES = [
    *("event", "start", "media", "dtmf", "mark", "error", "stop", "payload", "chunk", "track"),
    *("inbound", "call_control_id", "custom_parameters", "media_format", "encoding", "digit"),
    *("sample_rate", "client_state", "name", "value", "PCMU", "code"),
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(telnyx, received)
    only_protocol_errors(lambda: started(codec="L16", l16_big_endian=True), received)
