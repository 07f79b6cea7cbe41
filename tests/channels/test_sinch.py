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
from gateway.channels.capabilities import ClearBy, EndOut, Marks
from gateway.channels.dialect import Opening
from gateway.channels.sinch import SinchChannel
from gateway.errors import ProtocolError
from gateway.platform_settings import PlatformSettings
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


def sinch() -> SinchChannel:
    return SinchChannel(Opening(PlatformSettings()))


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
            from_="+15550100",
            to="+15550199",
            in_format=audio,
            out_format=audio,
            custom=CONNECT["callHeaders"],
            account="k1",
        ),
        Reply('{"command":"answer"}'),
    ]


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
    assert (able.marks, able.clear, able.end_out) == (Marks.EMULATED, ClearBy.NATIVE, EndOut.CLOSE)


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


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(sinch, received)
    only_protocol_errors(connected, received)
