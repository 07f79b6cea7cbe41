"""The Asterisk dialect, message by message, in both control languages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
from gateway.channels.asterisk import AsteriskChannel, connect
from gateway.channels.asterisk_control import MAX_COMMAND_BYTES, command, parse
from gateway.channels.base import (
    AudioIn,
    Clear,
    DtmfIn,
    EndReason,
    FlowControl,
    Hangup,
    Listen,
    MarkReached,
    PlatformFault,
    SendMark,
    Started,
    Transfer,
    TurnCompleted,
)
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import Hook, Opening, Request
from gateway.channels.dialects import dialect
from gateway.errors import ProtocolError
from gateway.platform_settings import AsteriskSettings
from tests.channels.fuzz import messages, only_protocol_errors

PLAIN = (
    "MEDIA_START connection_id:voice channel:WebSocket/voice/0x7f01 channel_id:1748.12"
    " format:ulaw optimal_frame_size:160 ptime:20"
)
JSON: dict[str, Any] = {
    "event": "MEDIA_START",
    "connection_id": "voice",
    "channel": "WebSocket/voice/0x7f01",
    "channel_id": "1748.12",
    "format": "slin16",
    "optimal_frame_size": 640,
    "ptime": 20,
    "channel_variables": {"from": "+15550100", "to": "100", "plan": "gold"},
}
LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)


def asterisk(request: Request | None = None, **settings: Any) -> AsteriskChannel:
    return AsteriskChannel(Opening(AsteriskSettings(**settings), request or Request("")))


def plain(**settings: Any) -> AsteriskChannel:
    channel = asterisk(**settings)
    channel.receive(PLAIN)
    return channel


def as_json(**settings: Any) -> AsteriskChannel:
    channel = asterisk(**settings)
    channel.receive(json.dumps(JSON))
    return channel


def test_plain_start_tells_channel_and_format() -> None:
    assert asterisk().receive(PLAIN) == [
        Started(
            call_id="1748.12",
            channel_id="1748.12",
            in_format=MULAW_8K,
            out_format=MULAW_8K,
        )
    ]


def test_json_start_brings_the_channel_variables() -> None:
    assert asterisk().receive(json.dumps(JSON)) == [
        Started(
            call_id="1748.12",
            channel_id="1748.12",
            from_="+15550100",
            to="100",
            in_format=LINEAR16_16K,
            out_format=LINEAR16_16K,
            custom=JSON["channel_variables"],
        )
    ]


def test_calls_of_one_configuration_are_told_apart() -> None:
    """`connection_id` is the name of a section; the channel differs, and old versions name it."""
    old = PLAIN.replace(" channel_id:1748.12", "")
    (started,) = asterisk().receive(old)
    assert isinstance(started, Started)
    assert started.call_id == "WebSocket/voice/0x7f01"


@pytest.mark.parametrize(
    ("name", "size", "audio"),
    [
        ("ulaw", 160, MULAW_8K),
        ("alaw", 160, ALAW_8K),
        ("slin", 320, AudioFormat(Encoding.LINEAR16, 8000)),
        ("slin24", 960, AudioFormat(Encoding.LINEAR16, 24000)),
        ("slin44", 1764, AudioFormat(Encoding.LINEAR16, 44100)),
        ("slin48", 1920, AudioFormat(Encoding.LINEAR16, 48000)),
    ],
)
def test_formats_by_asterisks_names(name: str, size: int, audio: AudioFormat) -> None:
    channel = asterisk()
    start = {**JSON, "format": name, "optimal_frame_size": size}
    (started,) = channel.receive(json.dumps(start))
    assert isinstance(started, Started)
    assert started.in_format == started.out_format == audio
    assert channel.capabilities.frame_multiple_bytes == size == audio.frame_bytes


@pytest.mark.parametrize(
    "over",
    [
        {"format": "opus"},
        {"format": None},
        {"optimal_frame_size": 0},
        {"optimal_frame_size": "many"},
    ],
)
def test_what_cannot_be_spoken_is_refused_with_the_way_out(over: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        asterisk().receive(json.dumps({**JSON, **over}))
    assert caught.value.code == "protocol.format"
    assert "c(ulaw)" in str(caught.value.hint)


def test_audio_is_raw_and_may_come_first() -> None:
    channel = asterisk()
    assert channel.receive(b"\x7f" * 160) == [AudioIn(b"\x7f" * 160)]
    assert isinstance(channel.receive(PLAIN)[0], Started)
    assert channel.receive(b"\x7f" * 240) == [AudioIn(b"\x7f" * 240)]
    assert channel.receive(b"") == []
    assert channel.audio(b"\xff" * 160, 1) == b"\xff" * 160


def test_audio_without_a_start_is_a_call_in_the_configured_format() -> None:
    channel = asterisk(format="alaw")
    assert channel.overdue() == [], "nothing has come at all"
    channel.receive(b"\xd5" * 160)
    (started,) = channel.overdue()
    assert isinstance(started, Started)
    assert started.in_format == ALAW_8K
    assert channel.capabilities.marks is Marks.EMULATED
    assert channel.overdue() == []
    with pytest.raises(ProtocolError):
        channel.receive(PLAIN)


def test_a_late_start_in_the_same_format_changes_nothing() -> None:
    channel = asterisk()
    channel.receive(b"\xff" * 160)
    channel.overdue()
    assert channel.receive(PLAIN) == []
    assert channel.receive("DTMF_END digit:1") == [DtmfIn("1")]


def test_a_second_start_is_an_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        plain().receive(PLAIN)
    assert (caught.value.code, caught.value.close_code) == ("protocol.started_twice", 1002)


@pytest.mark.parametrize(
    ("message", "events"),
    [
        ("DTMF_END digit:# channel_id:1748.12", [DtmfIn("#")]),
        ("DTMF_END digit:7", [DtmfIn("7")]),
        ("MEDIA_XOFF", [FlowControl(False)]),
        ("MEDIA_XON", [FlowControl(True)]),
        ("MEDIA_MARK_PROCESSED 7.3", [MarkReached("7.3")]),
        ("MEDIA_BUFFERING_COMPLETED 7.3", []),
        ("QUEUE_DRAINED", []),
        ("STATUS queue_length:3 xon_level:800 queue_full:false media_paused:false", []),
        (
            "ERROR error_text:not supported in passthrough",
            [PlatformFault("asterisk", "not supported in passthrough")],
        ),
        ("SOMETHING_NEW with:more", []),
        ("", []),
    ],
)
def test_plain_events(message: str, events: list[Any]) -> None:
    assert plain().receive(message) == events


@pytest.mark.parametrize(
    ("message", "events"),
    [
        ({"event": "DTMF_END", "channel_id": "1", "digit": "5"}, [DtmfIn("5")]),
        ({"event": "MEDIA_XOFF", "channel_id": "1"}, [FlowControl(False)]),
        ({"event": "MEDIA_XON", "channel_id": "1"}, [FlowControl(True)]),
        ({"event": "MEDIA_MARK_PROCESSED", "correlation_id": "7.3"}, [MarkReached("7.3")]),
        ({"event": "STATUS", "queue_length": 3, "queue_full": False}, []),
        ({"event": "ERROR", "error_text": "no"}, [PlatformFault("asterisk", "no")]),
        ({"event": "SOMETHING_NEW", "with": {"more": 1}}, []),
    ],
)
def test_json_events(message: dict[str, Any], events: list[Any]) -> None:
    assert as_json().receive(json.dumps(message)) == events


def test_events_before_the_start_are_dropped() -> None:
    for message in ("MEDIA_XOFF", "DTMF_END digit:1", '{"event":"MEDIA_XON"}'):
        assert asterisk().receive(message) == []


@pytest.mark.parametrize("message", ["{", "{}", '{"event":7}', "DTMF_END digit:12", "DTMF_END"])
def test_broken_control_is_refused(message: str) -> None:
    with pytest.raises(ProtocolError):
        plain().receive(message)


def test_commands_in_the_language_that_asterisk_began_with() -> None:
    channel = plain()
    assert channel.command(SendMark("7.3")) == ["MARK_MEDIA 7.3"]
    assert channel.command(Clear()) == ["FLUSH_MEDIA"]
    assert channel.command(Hangup(EndReason.COMPLETED)) == ["HANGUP"]
    assert channel.command(Transfer("200")) == ["HANGUP"], "the dialplan goes on"
    assert channel.command(TurnCompleted(1)) == []
    channel = as_json()
    assert channel.command(SendMark("7.3")) == ['{"command":"MARK_MEDIA","correlation_id":"7.3"}']
    assert channel.command(Clear()) == ['{"command":"FLUSH_MEDIA"}']
    assert channel.command(Hangup(EndReason.COMPLETED)) == ['{"command":"HANGUP"}']


def test_asterisk_keeps_its_audio_where_its_language_has_the_word() -> None:
    directions = [as_json().command(Listen(wanted)) for wanted in (False, True)]
    assert [json.loads(str(said)) for (said,) in directions] == [
        {"command": "SET_MEDIA_DIRECTION", "direction": "out"},
        {"command": "SET_MEDIA_DIRECTION", "direction": "both"},
    ]
    assert plain().command(Listen(False)) == []


def test_a_command_that_asterisk_would_not_read_is_never_made() -> None:
    assert len(command("MARK_MEDIA", "9" * 75, as_json=True).encode()) <= MAX_COMMAND_BYTES
    with pytest.raises(ValueError, match="128"):
        command("MARK_MEDIA", "9" * 120, as_json=True)


def test_control_words_are_read_with_and_without_arguments() -> None:
    assert parse("MEDIA_XOFF").name == "MEDIA_XOFF"
    assert parse("MEDIA_XOFF\n").name == "MEDIA_XOFF"
    assert parse("MEDIA_MARK_PROCESSED ").text("correlation_id") == ""
    assert parse(PLAIN).fields["channel"] == "WebSocket/voice/0x7f01"


def test_marks_exist_since_the_version_that_brought_json() -> None:
    """Before, MARK_MEDIA is ignored and never answered: positions then follow the clock."""
    assert as_json().capabilities.marks is Marks.NATIVE
    assert plain().capabilities.marks is Marks.NATIVE
    old = asterisk()
    old.receive(PLAIN.replace(" channel_id:1748.12", ""))
    assert old.capabilities.marks is Marks.EMULATED


def test_what_asterisk_can_do() -> None:
    capabilities = plain().capabilities
    assert capabilities.marks_on_clear is MarksOnClear.LOST
    assert not capabilities.ping_allowed, "a ping hung up before 22.8"
    assert as_json().capabilities.ping_allowed
    assert capabilities.max_out_bytes <= 65_500
    assert capabilities.max_lead_ms < 18_000, "XOFF comes at 900 frames"
    assert capabilities.dtmf_out is DtmfOut.INBAND
    assert (capabilities.end_out, capabilities.transfer) == (EndOut.MESSAGE, TransferBy.MESSAGE)


def test_before_it_has_said_its_version_asterisk_is_not_pinged() -> None:
    assert not dialect("asterisk").capabilities.ping_allowed


def test_with_ari_the_callers_channel_is_ended_and_moved() -> None:
    ari = {"rest_url": "http://ast:8088", "account": "voice", "api_secret": "s"}
    capabilities = asterisk(**ari).capabilities
    assert (capabilities.end_out, capabilities.transfer) == (EndOut.REST, TransferBy.MESSAGE)
    capabilities = asterisk(**ari, stasis=True).capabilities
    assert (capabilities.transfer, capabilities.dtmf_out) == (TransferBy.REST, DtmfOut.REST)


def test_the_address_is_not_believed_unless_a_setting_says_so() -> None:
    """`v()` of one call shows up in the next."""
    request = Request("", query={"plan": ["silver"], "from": ["+1"], "access_token": ["t"]})
    (started,) = asterisk(request).receive(PLAIN)
    assert isinstance(started, Started)
    assert (started.custom, started.from_) == ({}, "")
    (started,) = asterisk(request, trust_query=True).receive(PLAIN)
    assert isinstance(started, Started)
    assert (started.custom, started.from_) == ({"plan": "silver", "from": "+1"}, "+1")


def hook(request: Request, **settings: Any) -> Hook[AsteriskSettings]:
    return Hook(AsteriskSettings(**settings), request, lambda call_id: "")


def test_asterisk_that_waits_is_called_under_its_connection_id() -> None:
    form = Request("", form={"connection_id": ["6f1c-00"], "from": ["+1"]})
    answer = connect(hook(form, media_url="ws://ast:8088/media/"))
    assert answer.connect is not None
    assert answer.connect.url == "ws://ast:8088/media/6f1c-00"
    assert answer.connect.subprotocols == ("media",)
    (started,) = asterisk(form).receive(PLAIN)
    assert isinstance(started, Started)
    assert (started.from_, started.custom) == ("+1", {"from": "+1"})


def test_the_connection_may_be_named_in_json() -> None:
    body = json.dumps({"connection_id": "6f1c-00", "plan": {"name": "gold"}}).encode()
    request = Request("", headers={"content-type": "application/json"}, body=body)
    assert connect(hook(request, media_url="ws://ast/media")).connect is not None
    (started,) = asterisk(request).receive(PLAIN)
    assert isinstance(started, Started)
    assert started.custom == {"plan": '{"name":"gold"}'}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (Request("", form={}), "protocol.form"),
        (Request("", form={"connection_id": ["../evil"]}), "protocol.form"),
        (Request("", form={"connection_id": ["ok"]}), "protocol.no_media_url"),
        (Request("", headers={"content-type": "application/json"}, body=b"{"), "protocol.json"),
        (Request("", headers={"content-type": "application/json"}, body=b"[]"), "protocol.shape"),
    ],
)
def test_a_request_to_connect_that_leads_nowhere(request_: Request, code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        connect(hook(request_))
    assert caught.value.code == code


NAMES = [
    "event",
    "MEDIA_START",
    "DTMF_END",
    "MEDIA_MARK_PROCESSED",
    "channel_id",
    "channel",
    "format",
    "ulaw",
    "format:ulaw",
    "channel_id:1",
    "digit:1",
    "digit",
    "optimal_frame_size",
    "channel_variables",
    "correlation_id",
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(asterisk, received)
    only_protocol_errors(plain, received)
