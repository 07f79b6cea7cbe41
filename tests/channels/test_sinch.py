"""Sinch Voice Stream, message by message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import (
    AudioIn,
    Clear,
    Close,
    EndReason,
    Hangup,
    Reply,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import ClearBy, DtmfOut, EndOut, Marks, TransferBy
from gateway.channels.dialect import Basic, CallRef, Hook, Opening, Request
from gateway.channels.sinch import SinchChannel, account, answer
from gateway.channels.sinch_rest import rest
from gateway.errors import ProtocolError
from gateway.platform_settings import SinchSettings
from tests.channels.fuzz import messages, only_protocol_errors

CONNECT: dict[str, Any] = {
    "command": "connect",
    "version": "1",
    "callId": "c1",
    "applicationKey": "k1",
    "codec": "PCM",
    "sampleRate": 16000,
    "callHeaders": {"from": "+15550100", "to": "+15550199", "tier": "gold"},
}
NAMES = [*CONNECT, "connect", "heartbeat", "clear", "PCM", "key", "value"]


def sinch(expected: str = "") -> SinchChannel:
    return SinchChannel(Opening(SinchSettings(), expected_call_id=expected))


def connect(**over: Any) -> str:
    return json.dumps({**CONNECT, **over})


def connected() -> SinchChannel:
    channel = sinch()
    channel.receive(connect())
    return channel


def test_the_call_is_answered_once_it_has_started() -> None:
    audio = AudioFormat(Encoding.LINEAR16, 16000)
    assert sinch().receive(connect()) == [
        Started(
            call_id="c1",
            channel_id="c1",
            from_="+15550100",
            to="+15550199",
            in_format=audio,
            out_format=audio,
            custom=CONNECT["callHeaders"],
            account="k1",
        ),
        Reply('{"command":"answer"}'),
    ]


def test_the_call_is_the_one_that_the_callback_named() -> None:
    (event, _) = sinch(expected="caller-leg").receive(connect())
    assert isinstance(event, Started)
    assert (event.call_id, event.channel_id) == ("caller-leg", "c1")


def test_headers_may_be_a_list_or_none() -> None:
    told = [{"key": "tier", "value": "gold"}, {"value": "nameless"}]
    (event, _) = sinch().receive(connect(callHeaders=told))
    assert isinstance(event, Started)
    assert event.custom == {"tier": "gold"}
    assert sinch().receive(connect(callHeaders=None))


@pytest.mark.parametrize("rate_hz", [8000, 22050, 44100, 48000, 96000])
def test_every_rate_that_makes_whole_frames(rate_hz: int) -> None:
    (event, _) = sinch().receive(connect(sampleRate=rate_hz))
    assert isinstance(event, Started)
    assert event.in_format == AudioFormat(Encoding.LINEAR16, rate_hz)
    assert event.in_format.frame_bytes == rate_hz // 50 * 2


def test_audio_and_heartbeats() -> None:
    channel = connected()
    assert channel.receive(b"\x01\x00") == [AudioIn(b"\x01\x00")]
    assert channel.receive(b"") == []
    assert channel.receive('{"command":"heartbeat"}') == [Reply('{"command":"heartbeat"}')]
    assert channel.receive('{"command":"new","callId":7}') == []


def test_commands() -> None:
    channel = connected()
    frame = bytes(640)
    assert channel.audio(frame, 1) is frame
    assert channel.command(Clear()) == ['{"command":"clear"}']
    assert channel.command(SendMark("7.3")) == []
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    able = channel.capabilities
    assert (able.marks, able.clear, able.transfer) == (
        Marks.EMULATED,
        ClearBy.NATIVE,
        TransferBy.NONE,
    )
    assert (able.end_out, able.dtmf_out) == (EndOut.REST, DtmfOut.REST)
    alone = able.without_rest()
    assert (alone.end_out, alone.dtmf_out) == (EndOut.CLOSE, DtmfOut.INBAND)


def test_a_call_for_which_there_is_no_room_is_busy() -> None:
    channel = connected()
    assert channel.command(Hangup(EndReason.LIMIT)) == [
        '{"command":"busy"}',
        Close(1000, "limit"),
    ]
    channel.receive(b"\x01\x00")
    assert channel.command(Hangup(EndReason.LIMIT)) == [Close(1000, "limit")], "answered by now"
    assert connected().command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        ("hello", "protocol.json", 1007),
        ("{}", "protocol.shape", 1007),
        (b"\x01\x00", "protocol.order", 1002),
        ('{"command":"heartbeat"}', "protocol.order", 1002),
        (connect(callId=""), "protocol.shape", 1007),
        (connect(codec="OPUS"), "protocol.format", 1007),
        (connect(sampleRate=4000), "protocol.format", 1007),
        (connect(sampleRate=11025), "protocol.format", 1007),
        (connect(sampleRate=192000), "protocol.format", 1007),
    ],
)
def test_a_broken_peer_is_rejected(message: str | bytes, code: str, close_code: int) -> None:
    channel = sinch()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)
    reject, close = channel.protocol_close(caught.value)
    assert reject == '{"command":"reject"}'
    assert isinstance(close, Close)


def test_a_second_connect_only_closes() -> None:
    channel = connected()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(connect())
    (close,) = channel.protocol_close(caught.value)
    assert isinstance(close, Close)
    assert close.code == 1002


# ---- the callback

ICE: dict[str, Any] = {
    "event": "ice",
    "callid": "c1",
    "applicationKey": "k1",
    "cli": "+15550100",
    "to": {"type": "number", "endpoint": "+15550199"},
    "domain": "pstn",
    "custom": "gold",
    "callHeaders": [{"key": "tier", "value": "silver"}],
}


def callback(told: Any, **settings: Any) -> dict[str, Any]:
    body = told if isinstance(told, bytes) else json.dumps(told).encode()
    request = Request("/sinch/voice", body=body, method="POST")
    made = answer(Hook(SinchSettings(**settings), request, lambda call: f"wss://h/{call}"))
    assert made.content_type == "application/json"
    found = json.loads(made.body)
    assert isinstance(found, dict)
    return found


def test_an_incoming_call_is_connected_to_its_socket() -> None:
    told = callback(ICE, rate_hz=24000, variables={"custom": "tier"})
    assert told["action"] == {
        "name": "connectStream",
        "destination": {"type": "Websocket", "endpoint": "wss://h/c1"},
        "streamingOptions": {"version": 1, "sampleRate": 24000},
        "callHeaders": [
            {"key": "tier", "value": "silver"},
            {"key": "custom", "value": "gold"},
            {"key": "from", "value": "+15550100"},
            {"key": "to", "value": "+15550199"},
        ],
    }
    assert account(Request("/sinch/voice", body=json.dumps(ICE).encode())) == "k1"


def test_a_caller_s_client_does_not_choose_who_calls() -> None:
    own = [{"key": name, "value": "+15550666"} for name in ("from", "to", "custom")]
    told = callback({**ICE, "callHeaders": own}, variables={"custom": "tier"})
    assert {one["key"]: one["value"] for one in told["action"]["callHeaders"]} == {
        "from": "+15550100",
        "to": "+15550199",
        "custom": "gold",
    }


@pytest.mark.parametrize("event", ["ace", "pie", "dice", "notify"])
def test_after_other_events_the_call_goes_on(event: str) -> None:
    assert callback({"event": event, "callid": 7})["action"] == {"name": "continue"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'{"event": "ice", "callid": "a/b"}'])
def test_a_callback_without_a_call_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        callback(body)
    assert account(Request("/sinch/voice", body=body)) == ""


# ---- REST


def test_what_rest_is_asked() -> None:
    words = rest(SinchSettings(api_key="k1", api_secret="c2VjcmV0"))  # type: ignore[arg-type]
    assert words is not None
    assert (words.base_url, words.auth(0.0)) == (
        "https://calling.api.sinch.com",
        Basic("k1", "c2VjcmV0"),
    )
    (end,) = words.hangup(CallRef("a/b"), {})
    assert (end.method, end.path) == ("PATCH", "/calling/v1/calls/id/a%2Fb")
    assert end.json == {"instructions": [], "action": {"name": "hangup"}}
    (keys,) = words.send_dtmf(CallRef("c1"), "12#")
    assert keys.json == {
        "instructions": [{"name": "sendDtmf", "value": "12#"}],
        "action": {"name": "continue"},
    }
    assert not keys.repeatable, "keys that were pressed are not pressed again"
    assert words.transfer(CallRef("c1"), "+1", {}) == []
    assert rest(SinchSettings(api_key="k1")) is None


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(sinch, received)
    only_protocol_errors(connected, received)
