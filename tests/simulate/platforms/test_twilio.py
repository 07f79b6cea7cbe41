"""The platform's own habits: numbers as strings, marks on clear, and no patience with mistakes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.base import AudioIn, Clear, DtmfIn, Ended, MarkReached, SendMark, Started
from gateway.channels.dialects import open_channel
from gateway.errors import ProtocolError
from gateway.simulate.platforms import call_id
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.twilio import TwilioPlatform

IDENTITY = Identity(call_id("twilio", "test"), "+1", "+2", {"customer_id": 4711})
LOUD = b"\x00\x20" * 160


def platform() -> TwilioPlatform:
    return TwilioPlatform(IDENTITY)


def read(messages: list[str | bytes]) -> list[dict[str, Any]]:
    return [json.loads(message) for message in messages]


def media(to: TwilioPlatform, data: bytes) -> str:
    payload = base64.b64encode(data).decode()
    return json.dumps({"event": "media", "streamSid": to.stream_sid, "media": {"payload": payload}})


def test_it_says_connected_and_start() -> None:
    twilio = platform()
    connected, start = read(twilio.open())
    assert connected == {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    assert start["event"] == "start"
    assert start["sequenceNumber"] == "1"
    assert start["streamSid"] == start["start"]["streamSid"] == twilio.stream_sid
    assert start["start"]["callSid"] == IDENTITY.call_id
    assert start["start"]["tracks"] == ["inbound"]
    assert start["start"]["customParameters"] == {"from": "+1", "to": "+2", "customer_id": "4711"}
    assert start["start"]["mediaFormat"] == {
        "encoding": "audio/x-mulaw",
        "sampleRate": 8000,
        "channels": 1,
    }


def test_numbers_travel_as_strings_and_count_up() -> None:
    twilio = platform()
    twilio.open()
    first, second = read([*twilio.media(None), *twilio.media(LOUD)])
    assert first["sequenceNumber"] == "2"
    assert first["media"] == {
        "track": "inbound",
        "chunk": "1",
        "timestamp": "0",
        "payload": base64.b64encode(b"\xff" * 160).decode(),
    }
    assert (second["media"]["chunk"], second["media"]["timestamp"]) == ("2", "20")
    assert len(base64.b64decode(second["media"]["payload"])) == 160
    (key,) = read(twilio.digit("#"))
    assert key["dtmf"] == {"track": "inbound_track", "digit": "#"}
    (stop,) = read(twilio.hangup())
    assert (stop["event"], stop["stop"]["callSid"]) == ("stop", IDENTITY.call_id)


def test_a_mark_comes_back_when_it_was_played() -> None:
    twilio = platform()
    mark = json.dumps({"event": "mark", "streamSid": twilio.stream_sid, "mark": {"name": "m1"}})
    assert read(twilio.receive(mark))[0]["mark"] == {"name": "m1"}, "nothing before it: at once"
    assert twilio.receive(media(twilio, b"\x10" * 320)) == []
    assert twilio.receive(mark) == []
    assert twilio.play().replies == ()
    (echo,) = read(list(twilio.play().replies))
    assert (echo["event"], echo["mark"]) == ("mark", {"name": "m1"})


def test_clear_drops_the_audio_and_returns_every_mark_at_once() -> None:
    twilio = platform()
    for name in ("m1", "m2"):
        twilio.receive(media(twilio, b"\x10" * 1600))
        twilio.receive(
            json.dumps({"event": "mark", "streamSid": twilio.stream_sid, "mark": {"name": name}})
        )
    echoes = read(twilio.receive(json.dumps({"event": "clear", "streamSid": twilio.stream_sid})))
    assert [echo["mark"]["name"] for echo in echoes] == ["m1", "m2"]
    assert set(twilio.play().pcm) == {0}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"\x00\x01", "binary"),
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"event":"clear","streamSid":"MZother"}', "streamSid"),
        ('{"event":"clear"}', "streamSid"),
        ('{"event":"mark","streamSid":"SID"}', "without a name"),
        ('{"event":"mark","streamSid":"SID","mark":{"name":""}}', "without a name"),
        ('{"event":"media","streamSid":"SID"}', "without a payload"),
        ('{"event":"media","streamSid":"SID","media":{"payload":"?"}}', "base64"),
        ('{"event":"hello","streamSid":"SID"}', "unknown event"),
    ],
)
def test_it_objects_to_what_the_real_one_would_not_take(message: str | bytes, words: str) -> None:
    twilio = platform()
    if isinstance(message, str):
        message = (
            message.replace("SID", twilio.stream_sid, 1) if "other" not in message else message
        )
    with pytest.raises(ProtocolError, match=words):
        twilio.receive(message)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_nothing_but_a_complaint_ever_escapes(message: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        platform().receive(message)


def test_it_and_the_gateways_codec_understand_each_other() -> None:
    twilio, channel = platform(), open_channel("twilio", IDENTITY.call_id)
    events = [e for message in twilio.open() for e in channel.receive(message)]
    (started,) = events
    assert isinstance(started, Started)
    assert (started.call_id, started.from_, started.to) == (IDENTITY.call_id, "+1", "+2")
    (audio,) = channel.receive(twilio.media(LOUD)[0])
    assert isinstance(audio, AudioIn)
    assert len(audio.data) == 160
    assert channel.receive(twilio.digit("5")[0]) == [DtmfIn("5")]
    assert twilio.receive(channel.audio(b"\x10" * 160, 1)) == []
    (mark,) = channel.command(SendMark("1.1"))
    assert isinstance(mark, str)
    assert twilio.receive(mark) == []
    assert channel.receive(twilio.play().replies[0]) == [MarkReached("1.1")]
    (clear,) = channel.command(Clear())
    assert isinstance(clear, str)
    assert twilio.receive(clear) == []
    assert channel.receive(twilio.hangup()[0]) == [Ended()]
