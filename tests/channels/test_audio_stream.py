"""FreeSWITCH mod_audio_stream, message by message, in both editions."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.audio_stream import StreamChannel
from gateway.channels.base import (
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    EndReason,
    Hangup,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import ClearBy, EndOut, Marks, TransferBy
from gateway.channels.dialect import Opening, Request
from gateway.platform_settings import AudioStreamSettings
from tests.channels.fuzz import messages, only_protocol_errors
from tests.channels.test_audio_fork import NAMES


def stream(query: dict[str, str] | None = None, **settings: Any) -> StreamChannel:
    request = Request("", query={name: [value] for name, value in (query or {}).items()})
    return StreamChannel(Opening(AudioStreamSettings(**settings), request))


def started(**settings: Any) -> StreamChannel:
    channel = stream(**settings)
    channel.receive('{"call_id":"5e1b"}')
    return channel


def test_metadata_name_the_call_where_there_are_any() -> None:
    linear = AudioFormat(Encoding.LINEAR16, 16000)
    assert stream(rate_hz=16000).receive('{"call_id":"5e1b","from":"+1"}') == [
        Started(
            call_id="5e1b",
            channel_id="5e1b",
            from_="+1",
            in_format=linear,
            out_format=linear,
            custom={"call_id": "5e1b", "from": "+1"},
        )
    ]
    start, audio = stream({"uuid": "q7"}).receive(b"\x01\x00")
    assert isinstance(start, Started)
    assert (start.call_id, audio) == ("q7", AudioIn(b"\x01\x00"))


def test_frames_follow_the_codecs_ptime() -> None:
    for size in (320, 480, 640, 1280):
        assert started().receive(bytes(size)) == [AudioIn(bytes(size))]


def test_of_two_channels_the_caller_is_the_first() -> None:
    assert started(channels=2).receive(b"\x01\x00\x09\x09") == [AudioIn(b"\x01\x00")]


def test_keys_come_from_the_application() -> None:
    assert started().receive('{"event":"dtmf","dtmf":"3"}') == [DtmfIn("3")]
    assert started().receive("any other text") == []


def test_the_community_edition_is_given_files() -> None:
    channel = started(clip_ms=200)
    message = json.loads(str(channel.audio(b"\x01\x00" * 160, 1)))
    assert message == {
        "type": "streamAudio",
        "data": {
            "audioDataType": "raw",
            "sampleRate": 8000,
            "audioData": base64.b64encode(b"\x01\x00" * 160).decode(),
        },
    }
    assert channel.capabilities.min_message_ms == 200


def test_the_commercial_edition_is_given_raw_audio() -> None:
    channel = started(playback="binary")
    assert channel.audio(b"\xff\xff", 1) == b"\xff\xff"
    assert channel.capabilities.min_message_ms == 20


def test_there_are_no_marks_and_no_clear() -> None:
    channel = started()
    assert channel.command(SendMark("1.1")) == []
    assert channel.command(Clear()) == []
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("200")) == [Close(1000, "transferred")]
    capabilities = channel.capabilities
    assert (capabilities.marks, capabilities.clear) == (Marks.EMULATED, ClearBy.LOCAL_ONLY)
    assert (capabilities.end_out, capabilities.transfer) == (EndOut.CLOSE, TransferBy.NONE)


def test_an_application_that_obeys_is_told_more() -> None:
    channel = started(controlled=True)
    assert channel.command(Clear()) == ['{"type":"killAudio"}']
    words, close = channel.command(Transfer("200", {"params": {"queue": "b", "kind": "x"}}))
    assert json.loads(str(words)) == {
        "type": "transfer",
        "data": {"queue": "b", "kind": "x", "target": "200"},
    }
    assert close == Close(1000, "transferred")
    words, close = channel.command(Hangup(EndReason.COMPLETED))
    assert (words, close) == ('{"type":"disconnect"}', Close(1000, "completed"))
    assert channel.capabilities.clear is ClearBy.NATIVE


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(stream, received)
    only_protocol_errors(lambda: stream(channels=2), received)
