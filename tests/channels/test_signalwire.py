"""SignalWire streams, message by message; its webhooks, proof and REST interface."""

from __future__ import annotations

import base64
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from twilio.request_validator import RequestValidator

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import signalwire_rest
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
    SendDtmf,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import ClearBy, DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import Basic, CallRef, Hook, Opening, Request
from gateway.channels.signalwire import SignalWireChannel, answer, transfer
from gateway.channels.signalwire_proof import SignalWireProof
from gateway.errors import AuthError, ProtocolError
from gateway.platform_settings import SignalWireSettings
from tests.channels.fuzz import messages, only_protocol_errors

CALL_SID = "70b0d3a4-6a8e-4a14-8f54-0a7f3cbd5b7e"
STREAM_SID = "d1f2a3b4-0000-4000-8000-00000000beef"
START: dict[str, Any] = {
    "event": "start",
    "sequenceNumber": "1",
    "start": {
        "streamSid": STREAM_SID,
        "accountSid": "1ab2c3d4-0000-4000-8000-00000000abcd",
        "callSid": CALL_SID,
        "tracks": ["inbound"],
        "customParameters": {"from": "+15550100", "to": "+15550199", "tier": "gold"},
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    },
}
LINEAR16_24K = {"encoding": "audio/x-L16", "sampleRate": 24000, "channels": 1}


def signalwire(expected_call_id: str = "", **settings: Any) -> SignalWireChannel:
    return SignalWireChannel(
        Opening(SignalWireSettings(**settings), expected_call_id=expected_call_id)
    )


def start(**over: Any) -> str:
    return json.dumps({**START, "start": {**START["start"], **over}})


def started(**settings: Any) -> SignalWireChannel:
    channel = signalwire(**settings)
    channel.receive(start())
    return channel


def media(payload: bytes, **over: Any) -> str:
    body = {"track": "inbound", "payload": base64.b64encode(payload).decode(), **over}
    return json.dumps({"event": "media", "streamSid": STREAM_SID, "media": body})


# ---- in


def test_start_holds_the_stream_s_id_inside() -> None:
    assert signalwire().receive('{"event":"connected","protocol":"Call","version":"0.2.0"}') == []
    assert signalwire().receive(start()) == [
        Started(
            call_id=CALL_SID,
            channel_id=STREAM_SID,
            from_="+15550100",
            to="+15550199",
            in_format=MULAW_8K,
            out_format=MULAW_8K,
            custom=START["start"]["customParameters"],
            account=START["start"]["accountSid"],
        )
    ]


def test_custom_parameters_may_be_missing() -> None:
    for custom in ({}, None):
        (event,) = signalwire().receive(start(customParameters=custom))
        assert isinstance(event, Started)
        assert event.custom == {}


@pytest.mark.parametrize("rate_hz", [16000, 24000])
def test_linear16_both_ways(rate_hz: int) -> None:
    channel = signalwire()
    (event,) = channel.receive(start(mediaFormat={**LINEAR16_24K, "sampleRate": rate_hz}))
    assert isinstance(event, Started)
    assert event.in_format == event.out_format == AudioFormat(Encoding.LINEAR16, rate_hz)
    assert channel.receive(media(b"\x01\x02")) == [AudioIn(b"\x01\x02")]


def test_linear16_in_network_order_is_a_setting() -> None:
    channel = signalwire(l16_big_endian=True)
    channel.receive(start(mediaFormat=LINEAR16_24K))
    assert channel.receive(media(b"\x01\x02\x03")) == [AudioIn(b"\x02\x01")]
    out = json.loads(channel.audio(b"\x02\x01", 1))
    assert base64.b64decode(out["media"]["payload"]) == b"\x01\x02"
    plain = started(l16_big_endian=True)
    assert plain.receive(media(b"\x01\x02")) == [AudioIn(b"\x01\x02")], "mu-law has no order"


@pytest.mark.parametrize(
    "told",
    [
        {"encoding": "audio/x-mulaw", "sampleRate": 16000},
        {"encoding": "audio/x-L16", "sampleRate": 44100},
        {"encoding": "audio/opus"},
        {"channels": 2},
    ],
)
def test_other_codecs_are_not_spoken(told: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        signalwire().receive(start(mediaFormat=told))
    assert caught.value.code == "protocol.format"


def test_media_keys_marks_and_the_end() -> None:
    channel = started()
    assert channel.receive(media(b"\x7f" * 3)) == [AudioIn(b"\x7f" * 3)]
    assert channel.receive(media(b"\x7f", track="outbound")) == []
    dtmf = {"event": "dtmf", "streamSid": STREAM_SID, "dtmf": {"digit": "5", "duration": 100}}
    assert channel.receive(json.dumps(dtmf)) == [DtmfIn("5")]
    mark = {"event": "mark", "streamSid": STREAM_SID, "mark": {"name": "7.3"}}
    assert channel.receive(json.dumps(mark)) == [MarkReached("7.3")]
    assert channel.receive('{"event":"new-one","start":7}') == []
    assert channel.receive('{"event":"stop"}') == [Ended()]
    assert channel.receive(media(b"\x7f")) == []


def test_before_start_audio_is_passed_on_and_the_rest_is_dropped() -> None:
    channel = signalwire()
    assert channel.receive(media(b"\x7f")) == [AudioIn(b"\x7f")]
    assert channel.receive('{"event":"mark","mark":{"name":"x"}}') == []
    assert channel.receive('{"event":"dtmf","dtmf":{"digit":"1"}}') == []


def test_the_token_s_call_is_the_call() -> None:
    assert signalwire(CALL_SID).receive(start())
    with pytest.raises(ProtocolError) as caught:
        signalwire("another").receive(start())
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ("[]", "protocol.shape", 1007),
        ('{"event":"stop"}', "protocol.order", 1002),
        ('{"event":"media"}', "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":7}}', "protocol.shape", 1007),
        ('{"event":"start","start":{"callSid":"a"}}', "protocol.shape", 1007),
        ('{"event":"start","start":{"callSid":"","streamSid":"b"}}', "protocol.shape", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        signalwire().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_a_second_start_is_an_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        started().receive(start())
    assert caught.value.code == "protocol.started_twice"


# ---- out


def said(channel: SignalWireChannel, command: Any) -> list[dict[str, Any]]:
    bodies = [json.loads(str(item)) for item in channel.command(command)]
    assert {body.pop("streamSid") for body in bodies} == {STREAM_SID}
    return bodies


def test_commands() -> None:
    channel = started()
    out = json.loads(channel.audio(b"\xff\x00", 1))
    assert out == {"event": "media", "streamSid": STREAM_SID, "media": {"payload": "/wA="}}
    assert said(channel, SendMark('7"3')) == [{"event": "mark", "mark": {"name": '7"3'}}]
    assert said(channel, Clear()) == [{"event": "clear"}]
    assert said(channel, SendDtmf("1#")) == [
        {"event": "dtmf", "dtmf": {"digit": "1"}},
        {"event": "dtmf", "dtmf": {"digit": "#"}},
    ]
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert channel.command(AgentText("hi", 1)) == []


def test_what_signalwire_can_do() -> None:
    able = signalwire().capabilities
    assert (able.marks, able.marks_on_clear) == (Marks.NATIVE, MarksOnClear.ECHOED)
    assert able.clear is ClearBy.NATIVE
    assert able.dtmf_out is DtmfOut.NATIVE
    assert (able.end_out, able.transfer) == (EndOut.REST, TransferBy.REST)
    assert signalwire(realtime=True).capabilities.max_lead_ms < able.max_lead_ms


# ---- webhooks


def hook(request: Request, **settings: Any) -> Hook[SignalWireSettings]:
    return Hook(SignalWireSettings(**settings), request, lambda _: "wss://v.example/t")


FORM = {"CallSid": [CALL_SID], "From": ["+15550100"], "To": ["+15550199"]}


def test_the_answer_connects_the_call_to_its_socket() -> None:
    made = answer(hook(Request("/", form=FORM), codec="L16@16000h", realtime=True))
    stream = ElementTree.fromstring(made.body).find("Connect/Stream")
    assert stream is not None
    assert stream.attrib == {
        "url": "wss://v.example/t",
        "codec": "L16@16000h",
        "realtime": "true",
    }
    told = {one.get("name"): one.get("value") for one in stream.findall("Parameter")}
    assert told == {"callSid": CALL_SID, "from": "+15550100", "to": "+15550199"}


@pytest.mark.parametrize("sid", ["", "../x", "a b"])
def test_a_form_that_names_no_call_is_refused(sid: str) -> None:
    with pytest.raises(ProtocolError):
        answer(hook(Request("/", form={"CallSid": [sid]})))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("+15550123", "<Response><Dial>+15550123</Dial></Response>"),
        ("sip:a@b.example", "<Response><Dial><Sip>sip:a@b.example</Sip></Dial></Response>"),
        ("<Hangup/>", "<Response><Dial>&lt;Hangup/&gt;</Dial></Response>"),
    ],
)
def test_where_a_transfer_leads_its_target_is_dialled(target: str, expected: str) -> None:
    assert transfer(hook(Request("/", query={"target": [target]}))).body.decode() == expected


def test_a_transfer_without_a_target_is_refused() -> None:
    with pytest.raises(ProtocolError):
        transfer(hook(Request("/")))


# ---- the proof

ORIGIN = "https://voice.example.com"


def signed(header: str, key: str = "PSK_1") -> Request:
    form = {name: values[0] for name, values in FORM.items()}
    url = f"{ORIGIN}/signalwire/voice"
    signature = RequestValidator(key).compute_signature(url, form)
    return Request(
        "/signalwire/voice", form=FORM, headers={header: signature}, origin=ORIGIN, method="POST"
    )


@pytest.mark.parametrize("header", ["x-signalwire-signature", "x-twilio-signature"])
def test_a_signed_webhook_is_genuine_under_either_name(header: str) -> None:
    proof = SignalWireProof(SignalWireSettings(auth_tokens=["PSK_0", "PSK_1"]))
    assert proof.configured
    assert proof.covers_origin
    proof.check(signed(header), 0.0)
    with pytest.raises(AuthError) as caught:
        proof.check(signed(header, "another"), 0.0)
    assert (caught.value.code, caught.value.status) == ("auth.signature", 403)


def test_a_stream_token_opens_a_socket() -> None:
    proof = SignalWireProof(SignalWireSettings(auth_tokens=["stream-token"]))
    proof.check(Request("/", headers={"authorization": "Bearer stream-token"}), 0.0)
    for headers in ({}, {"authorization": "Bearer another"}):
        with pytest.raises(AuthError) as caught:
            proof.check(Request("/", headers=headers), 0.0)
        assert caught.value.status == 401


# ---- REST


def rest(**over: Any) -> signalwire_rest.SignalWireRest:
    settings = {
        "account": "project-1",
        "api_secret": "PT1",
        "rest_url": "https://space.signalwire.com/",
        "public_origin": ORIGIN,
        **over,
    }
    made = signalwire_rest.rest(SignalWireSettings(**settings))
    assert made is not None
    return made


def test_what_rest_is_asked() -> None:
    call = CallRef(CALL_SID)
    path = f"/api/laml/2010-04-01/Accounts/project-1/Calls/{CALL_SID}.json"
    assert rest().auth(0.0) == Basic("project-1", "PT1")
    assert rest().base_url == "https://space.signalwire.com"
    (hangup,) = rest().hangup(call, {})
    assert (hangup.method, hangup.path, hangup.form) == ("POST", path, {"Status": "completed"})
    (handover,) = rest().transfer(call, "+15550123", {})
    assert handover.form == {
        "Url": f"{ORIGIN}/signalwire/transfer?target=%2B15550123",
        "Method": "POST",
    }
    assert rest().transfer(call, "", {}) == []
    assert rest(public_origin=None).transfer(call, "+1", {}) == []
    assert rest().send_dtmf(call, "1") == []


@pytest.mark.parametrize("missing", ["account", "api_secret", "rest_url"])
def test_without_all_credentials_there_is_no_rest(missing: str) -> None:
    settings = {"account": "a", "api_secret": "b", "rest_url": "https://c", missing: None}
    told = {name: value for name, value in settings.items() if value is not None}
    assert signalwire_rest.rest(SignalWireSettings(**told)) is None  # type: ignore[arg-type]


NAMES = [
    *("event", "start", "media", "dtmf", "mark", "stop", "streamSid", "callSid", "payload"),
    *("digit", "name", "track", "customParameters", "mediaFormat", "encoding", "audio/x-L16"),
    *("sampleRate", "channels"),
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(signalwire, received)
    only_protocol_errors(started, received)
