"""FreeSWITCH mod_audio_fork, message by message."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.audio_fork import MAX_MARKS, ForkChannel
from gateway.channels.base import (
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
    TurnCompleted,
)
from gateway.channels.capabilities import ClearBy, Marks, MarksOnClear
from gateway.channels.dialect import Opening, Request
from gateway.errors import ProtocolError
from gateway.platform_settings import ForkSettings
from tests.channels.fuzz import messages, only_protocol_errors

METADATA = {"uuid": "5e1b", "from": "+15550100", "to": "100", "plan": "gold"}


def linear(rate_hz: int) -> AudioFormat:
    return AudioFormat(Encoding.LINEAR16, rate_hz)


def fork(query: dict[str, str] | None = None, **settings: Any) -> ForkChannel:
    request = Request("", query={name: [value] for name, value in (query or {}).items()})
    return ForkChannel(Opening(ForkSettings(**settings), request))


def started(metadata: dict[str, Any] | None = None, **settings: Any) -> ForkChannel:
    channel = fork(**settings)
    channel.receive(json.dumps(METADATA if metadata is None else metadata))
    return channel


def first(channel: ForkChannel, message: str | bytes) -> Started:
    event = channel.receive(message)[0]
    assert isinstance(event, Started)
    return event


def test_metadata_name_the_call() -> None:
    assert fork().receive(json.dumps(METADATA)) == [
        Started(
            call_id="5e1b",
            channel_id="5e1b",
            from_="+15550100",
            to="100",
            in_format=linear(8000),
            out_format=linear(8000),
            custom=METADATA,
        )
    ]


def test_metadata_may_be_any_text_or_be_left_out() -> None:
    start = first(fork({"call_id": "q1", "access_token": "t"}), "sales; line 2")
    assert (start.call_id, start.custom) == ("q1", {"call_id": "q1", "metadata": "sales; line 2"})
    channel = fork()
    start, audio = channel.receive(b"\x01\x00" * 160)
    assert isinstance(start, Started)
    assert start.call_id.startswith("audio_fork-")
    assert audio == AudioIn(b"\x01\x00" * 160)
    assert isinstance(fork().overdue()[0], Started)
    assert started().overdue() == []


@pytest.mark.parametrize(
    ("said", "rate_hz"), [(16000, 16000), ("24000", 24000), ("16k", 16000), (None, 8000)]
)
def test_the_rate_in_is_the_metadatas_and_the_rate_out_the_settings(
    said: Any, rate_hz: int
) -> None:
    start = first(fork(out_rate_hz=24000), json.dumps({**METADATA, "sampleRate": said}))
    assert (start.in_format, start.out_format) == (linear(rate_hz), linear(24000))


@pytest.mark.parametrize("rate", [44100, 0, -8000, "fast", 96000, True, [8000], "8" * 5000])
def test_a_rate_that_is_not_spoken_is_refused(rate: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        fork().receive(json.dumps({"sampleRate": rate}))
    assert caught.value.code == "protocol.format"


def test_audio_comes_in_any_size_and_of_two_channels_the_first_counts() -> None:
    channel = started({**METADATA, "mixType": "stereo"})
    assert channel.receive(b"\x01\x00\x02\x00\x03") == [AudioIn(b"\x01\x00")]
    assert channel.receive(b"\x00\x04\x00") == [AudioIn(b"\x03\x00")]
    assert started().receive(b"\x01\x00\x02") == [AudioIn(b"\x01\x00\x02")]


def test_an_empty_message_is_the_graceful_end() -> None:
    channel = started()
    assert channel.receive(b"") == [Ended()]
    assert channel.receive(b"\x01\x00") == []
    assert channel.receive('{"event":"dtmf","dtmf":"1"}') == []


def test_keys_come_as_the_application_passes_them_on() -> None:
    channel = started()
    assert channel.receive('{"event":"dtmf","dtmf":"#","duration":"1600"}') == [DtmfIn("#")]
    with pytest.raises(ProtocolError):
        channel.receive('{"event":"dtmf","dtmf":"12"}')


@pytest.mark.parametrize("text", ["hello", "[1]", '{"type":"new"}', '{"type":"mark"}', "{"])
def test_other_text_of_the_application_is_its_own_affair(text: str) -> None:
    assert started().receive(text) == []


def test_marks_come_back_played_or_cleared() -> None:
    channel = started()
    for name in ("1.1", "1.2"):
        (mark,) = channel.command(SendMark(name))
        assert json.loads(str(mark)) == {"type": "mark", "data": {"name": name}}
    told = {"type": "mark", "data": {"name": "1.1", "event": "playout"}}
    assert channel.receive(json.dumps(told)) == [MarkReached("1.1")]
    told = {"type": "mark", "data": {"name": "1.2", "event": "cleared"}}
    assert channel.receive(json.dumps(told)) == []
    assert channel.receive(json.dumps(told)) == []


def test_no_more_marks_are_under_way_than_the_module_keeps() -> None:
    channel = started()
    sent = [channel.command(SendMark(f"1.{number}")) for number in range(MAX_MARKS + 5)]
    assert [len(messages) for messages in sent] == [1] * MAX_MARKS + [0] * 5
    channel.receive('{"type":"mark","data":{"name":"1.0","event":"playout"}}')
    assert channel.command(SendMark("2.1"))


def test_streamed_audio_is_raw_and_never_holds_the_modules_marker() -> None:
    assert started().audio(b"\xff\xff\xfe\xff\x00\xff\xff\x00", 1) == (
        b"\xfe\xff\xfe\xff\x00\xff\xff\x00"
    )


def test_without_streaming_audio_is_clips_that_wait_for_each_other() -> None:
    channel = started(streaming=False, out_rate_hz=16000, clip_ms=200)
    clips = [json.loads(str(channel.audio(b"\xff\xff" * 320, 1))) for _ in range(2)]
    assert clips[0] == {
        "type": "playAudio",
        "data": {
            "audioContentType": "raw",
            "id": "1",
            "sampleRate": 16000,
            "audioContent": base64.b64encode(b"\xff\xff" * 320).decode(),
            "queuePlay": True,
        },
    }
    assert clips[1]["data"]["id"] == "2"
    assert channel.command(SendMark("1.1")) == []
    capabilities = channel.capabilities
    assert (capabilities.marks, capabilities.min_message_ms) == (Marks.EMULATED, 200)


def test_the_ends_are_words_for_the_application() -> None:
    channel = started()
    assert channel.command(Clear()) == ['{"type":"killAudio"}']
    words, close = channel.command(Hangup(EndReason.COMPLETED, {"params": {"ticket": 7}}))
    assert json.loads(str(words)) == {"type": "disconnect", "data": {"ticket": "7"}}
    assert close == Close(1000, "completed")
    words, close = channel.command(Transfer("200", {"params": {"target": "x", "queue": "b"}}))
    assert json.loads(str(words)) == {"type": "transfer", "data": {"target": "200", "queue": "b"}}
    assert close == Close(1000, "transferred")
    assert channel.command(TurnCompleted(1)) == []


def test_what_the_module_can_do() -> None:
    capabilities = fork().capabilities
    assert capabilities.marks_on_clear is MarksOnClear.CLEARED_STATUS
    assert capabilities.clear is ClearBy.NATIVE
    assert capabilities.continuous, "a tail below the prebuffer waits for more"
    assert capabilities.subprotocols == ("audio.drachtio.org", "audio.jambonz.org")


NAMES = [
    "event",
    "dtmf",
    "type",
    "mark",
    "data",
    "name",
    "playout",
    "callSid",
    "uuid",
    "sampleRate",
    "rate",
    "mixType",
    "stereo",
    "playDone",
    "id",
    "from",
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(fork, received)
    only_protocol_errors(started, received)
