"""Exotel AgentStream, message by message, and its webhook."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
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
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import DtmfOut, EndOut, TransferBy
from gateway.channels.dialect import Hook, Opening, Request
from gateway.channels.exotel import ExotelChannel, answer
from gateway.channels.outbox import Outbox, needs_outbox
from gateway.errors import ProtocolError
from gateway.platform_settings import ExotelSettings
from tests.channels.fuzz import messages, only_protocol_errors

START: dict[str, Any] = {
    "event": "start",
    "sequence_number": "1",
    "stream_sid": "s1",
    "start": {
        "stream_sid": "s1",
        "call_sid": "c1",
        "account_sid": "a1",
        "from": "+15550100",
        "to": "+15550199",
        "custom_parameters": {"tier": "gold"},
        "media_format": {"encoding": "audio/x-raw", "sample_rate": "8000", "bit_rate": "16"},
    },
}
NAMES = [
    *("event", "start", "media", "dtmf", "mark", "stop", "connected", "digit", "name", "payload"),
    *("stream_sid", "call_sid", "media_format", "sample_rate", "custom_parameters"),
]


def exotel(expected_call_id: str = "", **settings: Any) -> ExotelChannel:
    return ExotelChannel(Opening(ExotelSettings(**settings), expected_call_id=expected_call_id))


def start(rate_hz: object = "8000", **over: Any) -> str:
    told = {**START["start"], "media_format": {"sample_rate": rate_hz}, **over}
    return json.dumps({**START, "start": told})


def started(rate_hz: object = "8000", **settings: Any) -> ExotelChannel:
    channel = exotel(**settings)
    channel.receive(start(rate_hz))
    return channel


def test_the_start_tells_call_numbers_and_rate() -> None:
    linear16 = AudioFormat(Encoding.LINEAR16, 8000)
    assert exotel().receive(json.dumps(START)) == [
        Started(
            call_id="c1",
            channel_id="s1",
            from_="+15550100",
            to="+15550199",
            in_format=linear16,
            out_format=linear16,
            custom={"tier": "gold"},
            account="a1",
        )
    ]
    assert exotel().receive(start(custom_parameters=None))


@pytest.mark.parametrize(("rate_hz", "message_ms"), [(8000, 200), (16000, 100), (24000, 80)])
def test_messages_are_as_long_as_the_least_chunk(rate_hz: int, message_ms: int) -> None:
    channel = started(rate_hz)
    assert channel.capabilities.min_message_ms == message_ms
    assert started(rate_hz, min_chunk_bytes=320).capabilities.min_message_ms == 20


@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000])
def test_audio_goes_out_in_multiples_of_320_bytes_numbered_and_timed(rate_hz: int) -> None:
    channel = started(rate_hz)
    audio = AudioFormat(Encoding.LINEAR16, rate_hz)
    assert needs_outbox(channel.capabilities, audio)
    box = Outbox(channel, channel.capabilities, audio)
    sent: list[Any] = []
    for _ in range(23):
        sent += box.audio(bytes(audio.frame_bytes), 1)
    *rest, mark = box.command(SendMark("7.3"))
    told = [json.loads(str(message)) for message in [*sent, *rest]]
    sizes = [len(base64.b64decode(one["media"]["payload"])) for one in told]
    assert all(size % 320 == 0 for size in sizes)
    assert all(size >= 3200 for size in sizes[:-1])
    assert sum(sizes) == 23 * audio.frame_bytes
    assert [one["media"]["chunk"] for one in told] == list(range(1, len(told) + 1))
    step_ms = channel.capabilities.min_message_ms
    assert [int(one["media"]["timestamp"]) for one in told] == [
        n * step_ms for n in range(len(told))
    ]
    assert json.loads(str(mark)) == {
        "event": "mark",
        "stream_sid": "s1",
        "sequence_number": len(told) + 1,
        "mark": {"name": "7.3"},
    }
    assert {one["stream_sid"] for one in told} == {"s1"}


def test_audio_keys_and_marks() -> None:
    channel = started()
    assert channel.receive('{"event":"connected"}') == []
    media = {"event": "media", "media": {"chunk": "2", "timestamp": "200", "payload": "AQA="}}
    assert channel.receive(json.dumps(media)) == [AudioIn(b"\x01\x00")]
    dtmf = {"event": "dtmf", "dtmf": {"digit": "5", "duration": "100"}}
    assert channel.receive(json.dumps(dtmf)) == [DtmfIn("5")]
    assert channel.receive('{"event":"mark","mark":{"name":"7.3"}}') == [MarkReached("7.3")]
    assert channel.receive('{"event":"new","mark":7}') == []
    assert channel.receive('{"event":"stop","stop":{"reason":"callended"}}') == [Ended()]
    assert channel.receive(json.dumps(media)) == []


def test_before_the_start_only_audio_is_passed_on() -> None:
    media = {"event": "media", "media": {"payload": "AQA="}}
    assert exotel().receive(json.dumps(media)) == [AudioIn(b"\x01\x00")]
    assert exotel().receive('{"event":"dtmf","dtmf":{"digit":"1"}}') == []


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ('{"event":"stop"}', "protocol.order", 1002),
        ('{"event":"start"}', "protocol.shape", 1007),
        ('{"event":"start","start":{"call_sid":"c"}}', "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":"%"}}', "protocol.shape", 1007),
        (start("44100"), "protocol.format", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        exotel().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_a_second_start_and_another_call_are_refused() -> None:
    with pytest.raises(ProtocolError, match="second start"):
        started().receive(start())
    with pytest.raises(ProtocolError) as caught:
        exotel("other").receive(start())
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)


def test_commands() -> None:
    channel = started()
    assert [json.loads(str(one)) for one in channel.command(Clear())] == [
        {"event": "clear", "stream_sid": "s1", "sequence_number": 1}
    ]
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert channel.command(AgentText("hi", 1)) == []
    able = channel.capabilities
    assert (able.dtmf_out, able.end_out, able.transfer) == (
        DtmfOut.INBAND,
        EndOut.CLOSE,
        TransferBy.NONE,
    )


@pytest.mark.parametrize(
    "request_",
    [
        Request("", query={"CallSid": ["c1"]}),
        Request("", method="POST", form={"CallSid": ["c1"]}),
    ],
)
def test_the_answer_names_the_socket_and_the_rate(request_: Request) -> None:
    hook = Hook(ExotelSettings(rate_hz=16000), request_, lambda call: f"wss://h/{call}/t")
    web = answer(hook)
    assert json.loads(web.body) == {"url": "wss://h/c1/t?sample-rate=16000"}
    assert web.content_type == "application/json"


def test_a_webhook_without_a_call_is_refused() -> None:
    with pytest.raises(ProtocolError):
        answer(Hook(ExotelSettings(), Request("", query={"CallSid": ["a/b"]}), str))


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(exotel, received)
    only_protocol_errors(started, received)
