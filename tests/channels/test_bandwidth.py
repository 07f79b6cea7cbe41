"""Bandwidth media streaming, message by message; its webhook and REST interface."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from pydantic import ValidationError

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import bandwidth_rest
from gateway.channels.bandwidth import BandwidthChannel, answer
from gateway.channels.base import (
    AudioIn,
    Clear,
    Close,
    Ended,
    EndReason,
    Hangup,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import DtmfOut, Marks
from gateway.channels.dialect import CallRef, ClientCredentials, Hook, Opening, Request
from gateway.errors import ProtocolError
from gateway.platform_settings import BandwidthSettings
from tests.channels.fuzz import messages, only_protocol_errors

START: dict[str, Any] = {
    "eventType": "start",
    "metadata": {
        "accountId": "a1",
        "callId": "c-1",
        "streamId": "s-1",
        "streamName": "agent",
        "tracks": [{"name": "inbound", "mediaFormat": {"encoding": "PCMU", "sampleRate": 8000}}],
    },
    "streamParams": {"from": "+15550100", "to": "+15550199", "tier": "gold"},
}
NAMES = [
    *("eventType", "start", "media", "stop", "metadata", "callId", "tracks", "mediaFormat"),
    *("encoding", "sampleRate", "name", "payload", "track", "inbound", "streamParams"),
]


def bandwidth(expected_call_id: str = "", **settings: Any) -> BandwidthChannel:
    settings_ = BandwidthSettings(**settings)
    return BandwidthChannel(Opening(settings_, expected_call_id=expected_call_id))


def started(**settings: Any) -> BandwidthChannel:
    channel = bandwidth(**settings)
    channel.receive(json.dumps(START))
    return channel


def with_tracks(*media_formats: Any) -> str:
    tracks = [{"name": "inbound", "mediaFormat": told} for told in media_formats]
    return json.dumps({**START, "metadata": {**START["metadata"], "tracks": tracks}})


def test_the_start_tells_call_account_and_parameters() -> None:
    assert bandwidth().receive(json.dumps(START)) == [
        Started(
            call_id="c-1",
            channel_id="s-1",
            from_="+15550100",
            to="+15550199",
            in_format=MULAW_8K,
            out_format=MULAW_8K,
            custom={"from": "+15550100", "to": "+15550199", "tier": "gold"},
            account="a1",
        )
    ]


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000])
def test_what_is_sent_may_be_linear(rate_hz: int) -> None:
    channel = bandwidth(codec="PCM", rate_hz=rate_hz)
    (event,) = channel.receive(json.dumps(START))
    assert isinstance(event, Started)
    assert (event.in_format, event.out_format) == (
        MULAW_8K,
        AudioFormat(Encoding.LINEAR16, rate_hz),
    )
    media = json.loads(channel.audio(b"\x01\x00", 1))["media"]
    assert media == {
        "contentType": f"audio/pcm;rate={rate_hz};channels=1;bit-depth=16;endian=little;"
        "encoding=signed",
        "payload": "AQA=",
    }


def test_the_telephone_codec_has_one_rate() -> None:
    with pytest.raises(ValidationError, match="8000 Hz only"):
        BandwidthSettings(rate_hz=16000)


def test_audio_of_the_caller_alone() -> None:
    channel = started()
    media = {"eventType": "media", "track": "inbound", "payload": "AQI=", "sequenceNumber": "7"}
    assert channel.receive(json.dumps(media)) == [AudioIn(b"\x01\x02")]
    assert channel.receive(json.dumps({**media, "track": "outbound"})) == []
    assert channel.receive(json.dumps({**media, "payload": ""})) == []
    assert channel.receive('{"eventType":"new","payload":7}') == []
    assert channel.receive(json.dumps({"eventType": "stop", "metadata": {}})) == [Ended()]
    assert channel.receive(json.dumps(media)) == []


@pytest.mark.parametrize("told", ["audio/PCMU", "PCMU", None, {}, {"encoding": "audio/pcmu"}])
def test_the_telephone_codec_in_any_spelling(told: Any) -> None:
    assert bandwidth().receive(with_tracks(told))


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ("[]", "protocol.shape", 1007),
        ("{}", "protocol.shape", 1007),
        ('{"eventType":"stop"}', "protocol.order", 1002),
        ('{"eventType":"start"}', "protocol.shape", 1007),
        ('{"eventType":"media","payload":"%"}', "protocol.shape", 1007),
        (with_tracks("OPUS"), "protocol.format", 1007),
        (with_tracks({"encoding": "PCMU", "sampleRate": 16000}), "protocol.format", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        bandwidth().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_a_second_start_and_another_call_are_refused() -> None:
    with pytest.raises(ProtocolError, match="second start"):
        started().receive(json.dumps(START))
    with pytest.raises(ProtocolError) as caught:
        bandwidth("other").receive(json.dumps(START))
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)


def test_commands() -> None:
    channel = started()
    assert json.loads(channel.audio(b"\xff", 1)) == {
        "eventType": "playAudio",
        "media": {"contentType": "audio/pcmu", "payload": "/w=="},
    }
    assert channel.command(Clear()) == ['{"eventType":"clear"}']
    assert channel.command(SendMark("7.3")) == []
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    able = channel.capabilities
    assert (able.marks, able.dtmf_in) == (Marks.EMULATED, False)


# ---- webhooks

CALL = {"eventType": "initiate", "callId": "c-1", "from": "+15550100", "to": "+15550199"}


def hook(request: Request, **settings: Any) -> Hook[BandwidthSettings]:
    return Hook(BandwidthSettings(**settings), request, lambda call: f"wss://h/{call}/t")


def verbs(told: object, **settings: Any) -> list[ElementTree.Element]:
    web = answer(hook(Request("", body=json.dumps(told).encode()), **settings))
    assert web.content_type == "application/xml"
    return list(ElementTree.fromstring(web.body))


def test_the_answer_streams_the_call_and_keeps_it_up() -> None:
    stream, pause = verbs(CALL, hold_s=600)
    assert (stream.tag, stream.attrib) == (
        "StartStream",
        {"mode": "bidirectional", "tracks": "inbound", "destination": "wss://h/c-1/t"},
    )
    assert [(one.get("name"), one.get("value")) for one in stream] == [
        ("from", "+15550100"),
        ("to", "+15550199"),
    ]
    assert (pause.tag, pause.attrib) == ("Pause", {"duration": "600"})
    assert len(verbs({**CALL, "eventType": "answer"})) == 2


def test_named_fields_go_along_as_far_as_there_is_room() -> None:
    names = {f"f{n}": f"v{n}" for n in range(20)}
    stream, _ = verbs({**CALL, **names, "f0": "gold\n"}, variables=names)
    told = {one.get("name"): one.get("value") for one in stream}
    assert len(told) == 12
    assert told["f0"] == "gold"


def test_other_events_are_taken() -> None:
    assert verbs({"eventType": "disconnect", "callId": "c-1"}) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"callId":"a/b"}', b'{"callId":[]}'])
def test_a_webhook_without_a_call_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        answer(hook(Request("", body=body)))


# ---- REST

REST = {"account": "a1", "api_key": "id", "api_secret": "secret"}


def rest(**over: Any) -> bandwidth_rest.BandwidthRest:
    found = bandwidth_rest.rest(BandwidthSettings(**{**REST, **over}))
    assert found is not None
    return found


def test_what_rest_is_asked() -> None:
    assert rest().auth(0.0) == ClientCredentials(
        "https://api.bandwidth.com/api/v1/oauth2/token", "id", "secret"
    )
    (end,) = rest().hangup(CallRef("c/1"), {})
    assert (end.method, end.path, end.json) == (
        "POST",
        "/api/v2/accounts/a1/calls/c%2F1",
        {"state": "completed"},
    )
    assert bandwidth_rest.rest(BandwidthSettings(account="a1", api_key="id")) is None


@pytest.mark.parametrize(
    ("target", "called"),
    [
        ("tel:+15550123", "<PhoneNumber>+15550123</PhoneNumber>"),
        ("sip:desk@example.com;a=<b>", "<SipUri>sip:desk@example.com;a=&lt;b&gt;</SipUri>"),
    ],
)
def test_a_transfer_is_new_bxml(target: str, called: str) -> None:
    (move,) = rest().transfer(CallRef("c-1"), target, {})
    assert (move.method, move.path) == ("PUT", "/api/v2/accounts/a1/calls/c-1/bxml")
    assert move.xml.decode().endswith(f"<Bxml><Transfer>{called}</Transfer></Bxml>")
    assert rest().transfer(CallRef("c-1"), "", {}) == []


def test_keys_are_new_bxml_that_keeps_the_call_up() -> None:
    (keys,) = rest(hold_s=600).send_dtmf(CallRef("c-1"), "12#" + "4" * 50)
    pressed = f"<SendDtmf>12#{'4' * 47}</SendDtmf><SendDtmf>444</SendDtmf>"
    assert keys.xml.decode().endswith(f'<Bxml>{pressed}<Pause duration="600" /></Bxml>')
    assert not keys.repeatable, "keys that were pressed are not pressed again"


def test_only_a_call_of_our_own_bxml_is_given_other_bxml_in_between() -> None:
    assert bandwidth("c-1").capabilities.dtmf_out is DtmfOut.REST
    assert bandwidth().capabilities.dtmf_out is DtmfOut.INBAND


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(bandwidth, received)
    only_protocol_errors(started, received)
