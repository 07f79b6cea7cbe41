"""The Twilio dialect, message by message."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import MULAW_8K
from gateway.channels.base import (
    AgentText,
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    Ended,
    EndReason,
    GoAway,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    Transfer,
    TurnCompleted,
)
from gateway.channels.capabilities import ClearBy, Marks
from gateway.channels.dialect import Hook, Opening, Request
from gateway.channels.twilio import TwilioChannel, answer
from gateway.errors import ProtocolError
from gateway.platform_settings import TwilioSettings

START: dict[str, Any] = {
    "event": "start",
    "sequenceNumber": "1",
    "streamSid": "MZ1",
    "start": {
        "streamSid": "MZ1",
        "accountSid": "AC1",
        "callSid": "CA1",
        "tracks": ["inbound"],
        "customParameters": {"from": "+15550100", "to": "+15550199", "plan": "gold"},
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    },
}


def test_fields_that_the_operator_names_go_along() -> None:
    settings = TwilioSettings(variables={"SipHeader_X-Tier": "tier", "CallerName": "name"})
    form = {"CallSid": ["CA1"], "From": ["+1"], "SipHeader_X-Tier": ["gold"], "City": ["Ulm"]}
    hook = Hook(settings, Request("/twilio/voice", form=form), lambda call: f"wss://h/{call}")
    assert answer(hook).body.decode().partition("<Response>")[2] == (
        '<Connect><Stream url="wss://h/CA1"><Parameter name="SipHeader_X-Tier" value="gold" />'
        '<Parameter name="callSid" value="CA1" /><Parameter name="from" value="+1" />'
        "</Stream></Connect></Response>"
    )


def test_audio_may_be_sent_in_longer_messages() -> None:
    channel = TwilioChannel(Opening(TwilioSettings(batch_ms=60)))
    assert channel.capabilities.min_message_ms == 60
    assert twilio().capabilities.min_message_ms == 20


def twilio(expected_call_id: str = "") -> TwilioChannel:
    return TwilioChannel(Opening(TwilioSettings(), expected_call_id=expected_call_id))


def started(**over: Any) -> TwilioChannel:
    channel = twilio()
    channel.receive(json.dumps({**START, **over}))
    return channel


def media(payload: bytes, **over: Any) -> str:
    body = {"track": "inbound", "chunk": "1", "timestamp": "5"}
    body |= {"payload": base64.b64encode(payload).decode(), **over}
    return json.dumps({"event": "media", "sequenceNumber": "3", "streamSid": "MZ1", "media": body})


def test_start_tells_call_stream_numbers_and_formats() -> None:
    assert twilio().receive(json.dumps(START)) == [
        Started(
            call_id="CA1",
            channel_id="MZ1",
            from_="+15550100",
            to="+15550199",
            in_format=MULAW_8K,
            out_format=MULAW_8K,
            custom={"from": "+15550100", "to": "+15550199", "plan": "gold"},
            account="AC1",
        )
    ]


def test_numbers_may_be_strings_in_start() -> None:
    start = {**START["start"], "mediaFormat": {"sampleRate": "8000", "channels": "1"}}
    assert isinstance(twilio().receive(json.dumps({**START, "start": start}))[0], Started)


def test_media_of_any_length_is_audio() -> None:
    channel = started()
    assert channel.receive(media(b"\x01\x02\x03")) == [AudioIn(b"\x01\x02\x03")]
    assert channel.receive(media(b"")) == []
    assert channel.receive(media(b"\x01", track="outbound")) == []


def test_media_before_start_is_passed_on_for_the_session_to_keep() -> None:
    assert twilio().receive(media(b"\x7f")) == [AudioIn(b"\x7f")]


def test_keys_and_marks() -> None:
    channel = started()
    mark = {"event": "mark", "streamSid": "MZ1", "mark": {"name": "7:3"}}
    assert channel.receive(json.dumps(mark)) == [MarkReached("7:3")]
    for digit, expected in (("1", "1"), (5, "5"), ("#", "#"), ("a", "A")):
        dtmf = {"event": "dtmf", "dtmf": {"track": "inbound_track", "digit": digit}}
        assert channel.receive(json.dumps(dtmf)) == [DtmfIn(expected)]


def test_keys_and_marks_before_start_are_dropped() -> None:
    channel = twilio()
    assert channel.receive('{"event":"mark","mark":{"name":"x"}}') == []
    assert channel.receive('{"event":"dtmf","dtmf":{"digit":"1"}}') == []


def test_stop_ends_the_call_and_nothing_counts_after_it() -> None:
    channel = started()
    assert channel.receive('{"event":"stop","stop":{"callSid":"CA1"}}') == [Ended()]
    assert channel.receive(media(b"\x01")) == []
    assert channel.receive('{"event":"stop"}') == []


@pytest.mark.parametrize(
    "message",
    [
        '{"event":"connected","protocol":"Call","version":"1.0.0"}',
        '{"event":"something-new","start":7}',
        '{"event":"x","media":{"payload":"%%"}}',
    ],
)
def test_unknown_events_are_ignored_whatever_they_hold(message: str) -> None:
    assert started().receive(message) == []


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b'{"event":"connected"}', "protocol.binary", 1003),
        ("", "protocol.json", 1007),
        ("hello", "protocol.json", 1007),
        ("[]", "protocol.shape", 1007),
        ("{}", "protocol.shape", 1007),
        ('{"event":"stop"}', "protocol.order", 1002),
        ('{"event":"media"}', "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":"a$b="}}', "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":7}}', "protocol.shape", 1007),
        ('{"event":"start"}', "protocol.shape", 1007),
        ('{"event":"start","start":{"streamSid":"MZ1"}}', "protocol.shape", 1007),
        ('{"event":"start","start":{"callSid":"CA1"}}', "protocol.shape", 1007),
        ('{"event":"\ud800"}', "protocol.json", 1007),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    channel = twilio()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)
    [close] = channel.protocol_close(caught.value)
    assert isinstance(close, Close)
    assert close.code == close_code
    assert len(close.reason.encode()) <= 123


def test_a_second_start_is_an_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        started().receive(json.dumps(START))
    assert caught.value.code == "protocol.started_twice"


@pytest.mark.parametrize(
    "audio",
    [{"encoding": "audio/l16"}, {"sampleRate": 16000}, {"channels": 2}],
)
def test_only_mulaw_at_8_khz_mono_is_spoken(audio: dict[str, Any]) -> None:
    start = {**START["start"], "mediaFormat": audio}
    with pytest.raises(ProtocolError) as caught:
        twilio().receive(json.dumps({**START, "start": start}))
    assert caught.value.code == "protocol.format"


def test_a_start_for_another_call_than_the_token_s_is_refused() -> None:
    with pytest.raises(ProtocolError) as caught:
        twilio("CA2").receive(json.dumps(START))
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)
    assert twilio("CA1").receive(json.dumps(START))


def test_messages_out_carry_the_exact_stream_id() -> None:
    sid = 'MZ"\\é'
    channel = started(streamSid=sid, start={**START["start"], "streamSid": sid})
    assert json.loads(channel.audio(b"\xff\x00", 1)) == {
        "event": "media",
        "streamSid": sid,
        "media": {"payload": "/wA="},
    }
    [mark] = channel.command(SendMark('1:"2'))
    assert json.loads(str(mark)) == {"event": "mark", "streamSid": sid, "mark": {"name": '1:"2'}}
    [clear] = channel.command(Clear())
    assert json.loads(str(clear)) == {"event": "clear", "streamSid": sid}


def test_hang_up_and_transfer_close_the_socket() -> None:
    channel = started()
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1555")) == [Close(1000, "transferred")]


def test_what_the_platform_does_not_know_is_not_sent() -> None:
    channel = started()
    for command in (AgentText("hi", 1), TurnCompleted(1), GoAway()):
        assert channel.command(command) == []


def test_nothing_is_sent_before_the_stream_exists() -> None:
    with pytest.raises(RuntimeError):
        twilio().audio(b"\xff", 1)


def test_what_twilio_can_do() -> None:
    capabilities = twilio().capabilities
    assert capabilities.dialect == "twilio"
    assert capabilities.marks is Marks.NATIVE
    assert capabilities.clear is ClearBy.NATIVE
    assert capabilities.kickoff
    assert capabilities.receive_idle_s is not None, "silence is sent as well"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "event",
                    "start",
                    "media",
                    "mark",
                    "dtmf",
                    "streamSid",
                    "callSid",
                    "payload",
                    "digit",
                    "name",
                    "track",
                    "customParameters",
                    "mediaFormat",
                    "sampleRate",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
EVENTS = st.sampled_from(["connected", "start", "media", "dtmf", "mark", "stop", "other"])


@given(st.lists(st.tuples(EVENTS, JSON), max_size=4))
def test_only_protocol_errors_escape_on_any_json(messages: list[tuple[str, Any]]) -> None:
    channel = twilio()
    for event, body in messages:
        try:
            channel.receive(json.dumps({"event": event, event: body, "streamSid": "MZ"}))
            channel.receive(json.dumps(body))
        except ProtocolError:
            return


@given(st.text() | st.binary() | st.text(alphabet='{}[]":,\\ud8event0'))
def test_only_protocol_errors_escape_on_any_bytes(message: str | bytes) -> None:
    try:
        twilio().receive(message)
    except ProtocolError:
        return
