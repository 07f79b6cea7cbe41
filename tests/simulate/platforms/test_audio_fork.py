"""The habits of FreeSWITCH's modules and of jambonz: prebuffer, markers, clips, files."""

from __future__ import annotations

import base64
import json
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.audio_fork import ForkChannel
from gateway.channels.audio_stream import StreamChannel
from gateway.channels.base import (
    AudioIn,
    Clear,
    DtmfIn,
    EndReason,
    Hangup,
    MarkReached,
    SendMark,
    Started,
)
from gateway.channels.dialect import Opening
from gateway.channels.jambonz import JambonzChannel
from gateway.channels.raw import RawChannel
from gateway.errors import ProtocolError, RuntimeFailure
from gateway.platform_settings import (
    AudioStreamSettings,
    ForkSettings,
    JambonzSettings,
    PlatformSettings,
)
from gateway.simulate.platforms import raw
from gateway.simulate.platforms.audio_fork import ForkPlatform, call_uuid
from gateway.simulate.platforms.audio_stream import StreamPlatform
from gateway.simulate.platforms.base import Identity, Platform
from gateway.simulate.platforms.jambonz import JambonzClipPlatform, JambonzPlatform, listen_of
from gateway.simulate.platforms.raw import RawPlatform

IDENTITY = Identity(call_uuid("test"), "+1", "+2", {"customer_id": 4711})


def loud(samples: int, value: int = 1000) -> bytes:
    return array("h", [value] * samples).tobytes()


def heard(far_side: Platform, frames: int) -> list[int]:
    out: array[int] = array("h")
    for _ in range(frames):
        out.frombytes(far_side.play().pcm)
    return list(out)


def mark(name: str) -> str:
    return json.dumps({"type": "mark", "data": {"name": name}})


def told(replies: Any) -> list[tuple[str, str]]:
    bodies = [json.loads(reply)["data"] for reply in replies]
    return [(body["name"], body["event"]) for body in bodies]


def test_audio_waits_until_the_prebuffer_is_full() -> None:
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(1279))
    assert not any(heard(far_side, 2)), "1280 samples at first"
    far_side.receive(loud(1))
    assert all(heard(far_side, 8))
    far_side.receive(loud(639))
    assert not any(heard(far_side, 2)), "640 later: a tail stays unplayed"
    far_side.receive(loud(1))
    assert all(heard(far_side, 4))


def test_an_odd_byte_is_carried_to_the_next_message() -> None:
    far_side = ForkPlatform(IDENTITY)
    data = loud(1280)
    far_side.receive(data[:101])
    far_side.receive(data[101:])
    assert heard(far_side, 8) == [1000] * 1280


def test_a_mark_is_a_sample_and_a_genuine_one_is_taken_for_it() -> None:
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(1280, -1))
    assert told(far_side.play().replies) == [], "no mark is on its way"
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(640))
    far_side.receive(mark("1.1"))
    far_side.receive(loud(640, -1))
    replies = [reply for _ in range(3) for reply in far_side.play().replies]
    assert replies == []
    far_side.receive(mark("1.2"))
    far_side.receive(loud(640))
    replies = [reply for _ in range(9) for reply in far_side.play().replies]
    assert told(replies) == [("1.1", "playout"), ("1.2", "playout")]
    assert len(far_side.play().pcm) == 320


def test_marks_after_all_audio_are_reached_when_it_was_played() -> None:
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(1280))
    far_side.receive(mark("1.1"))
    replies = [far_side.play().replies for _ in range(9)]
    assert [told(each) for each in replies if each] == [[("1.1", "playout")]]


def test_kill_audio_reports_marks_as_cleared_and_leaves_the_prebuffer() -> None:
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(1280))
    far_side.receive(mark("1.1"))
    far_side.receive(loud(160, 500))
    assert told(far_side.receive('{"type":"killAudio"}')) == [("1.1", "cleared")]
    assert not any(heard(far_side, 4))
    far_side.receive(loud(640, 700))
    assert set(heard(far_side, 5)) == {500, 700, -1}


def test_more_than_30_marks_are_forgotten() -> None:
    far_side = ForkPlatform(IDENTITY)
    far_side.receive(loud(1280))
    for number in range(33):
        assert far_side.receive(mark(f"1.{number}")) == []
    assert far_side.forgotten_marks == 3
    assert len(far_side.receive('{"type":"killAudio"}')) == 30


def test_the_callers_audio_comes_in_messages_of_varying_size() -> None:
    far_side = ForkPlatform(IDENTITY)
    messages = [message for _ in range(14) for message in far_side.media(loud(160))]
    assert {len(message) for message in messages} == {320, 640}
    assert sum(map(len, messages)) in (13 * 320, 14 * 320)


def test_clips_are_played_one_after_the_other_and_reported() -> None:
    far_side = JambonzClipPlatform(IDENTITY)

    def clip(name: str, *, queue: bool = True) -> str:
        data = {
            "audioContentType": "raw",
            "sampleRate": 8000,
            "audioContent": base64.b64encode(loud(160)).decode(),
            "id": name,
            "queuePlay": queue,
        }
        return json.dumps({"type": "playAudio", "data": data})

    far_side.receive(clip("1"))
    far_side.receive(clip("2"))
    done = [json.loads(far_side.play().replies[0])["data"]["id"] for _ in range(2)]
    assert done == ["1", "2"]
    far_side.receive(clip("3"))
    far_side.receive(clip("4", queue=False))
    assert json.loads(far_side.play().replies[0])["data"]["id"] == "4", "it replaces the others"
    far_side.receive(clip("5"))
    far_side.receive('{"type":"killAudio"}')
    assert far_side.play().replies == ()
    for number in range(11):
        far_side.receive(clip(str(number)))
    with pytest.raises(ProtocolError, match="more clips"):
        far_side.receive(clip("12"))


@pytest.mark.parametrize(
    ("far_side", "message"),
    [
        (ForkPlatform, b""),
        (ForkPlatform, "{"),
        (ForkPlatform, "[]"),
        (ForkPlatform, '{"type":"media"}'),
        (ForkPlatform, '{"type":"mark","data":{"name":""}}'),
        (JambonzClipPlatform, b"\x00\x00"),
        (JambonzClipPlatform, '{"type":"mark","data":{"name":"x"}}'),
        (JambonzClipPlatform, '{"type":"playAudio"}'),
        (JambonzClipPlatform, '{"type":"playAudio","data":{"audioContentType":"raw"}}'),
        (StreamPlatform, b"\x00\x00"),
        (StreamPlatform, "{"),
        (StreamPlatform, '{"type":"mark","data":{"name":"x"}}'),
        (StreamPlatform, '{"type":"streamAudio","data":{"audioDataType":"wav"}}'),
        (StreamPlatform, '{"type":"streamAudio","data":{"audioDataType":"raw"}}'),
        (RawPlatform, "text"),
    ],
)
def test_they_object_to_what_the_real_ones_would_drop(far_side: Any, message: str | bytes) -> None:
    with pytest.raises(ProtocolError, match="the gateway broke"):
        far_side(IDENTITY).receive(message)


@given(
    st.sampled_from([ForkPlatform, JambonzPlatform, JambonzClipPlatform, StreamPlatform]),
    st.text(max_size=60) | st.binary(min_size=1, max_size=60),
)
def test_nothing_but_a_complaint_ever_escapes(far_side: Any, message: str | bytes) -> None:
    try:
        far_side(IDENTITY).receive(message)
    except ProtocolError as error:
        assert "the gateway broke" in error.message  # noqa: PT017


@pytest.mark.parametrize("dialect", ["audio_fork", "jambonz"])
def test_the_module_and_the_gateways_codec_understand_each_other(dialect: str) -> None:
    far_side: ForkPlatform
    channel: ForkChannel
    if dialect == "jambonz":
        far_side, channel = JambonzPlatform(IDENTITY), JambonzChannel(Opening(JambonzSettings()))
    else:
        far_side, channel = ForkPlatform(IDENTITY), ForkChannel(Opening(ForkSettings()))
    (started,) = channel.receive(far_side.open()[0])
    assert isinstance(started, Started)
    assert (started.call_id, started.from_, started.to) == (IDENTITY.call_id, "+1", "+2")
    assert started.custom["customer_id"] == 4711
    assert channel.receive(far_side.media(None)[0]) == [AudioIn(bytes(320))]
    assert channel.receive(far_side.digit("5")[0]) == [DtmfIn("5")]
    for _ in range(8):
        far_side.receive(channel.audio(loud(160, -1), 1))
    (words,) = channel.command(SendMark("1.1"))
    assert isinstance(words, str)
    far_side.receive(words)
    replies = [reply for _ in range(9) for reply in far_side.play().replies]
    assert channel.receive(replies[0]) == [MarkReached("1.1")], "not before all was played"
    assert len(replies) == 1
    (clear,) = channel.command(Clear())
    assert isinstance(clear, str)
    assert far_side.receive(clear) == []
    words = channel.command(Hangup(EndReason.COMPLETED))[0]
    assert isinstance(words, str)
    far_side.receive(words)
    assert far_side.finished


def test_clips_and_the_gateways_codec_understand_each_other() -> None:
    far_side = JambonzClipPlatform(IDENTITY)
    channel = JambonzChannel(Opening(JambonzSettings(streaming=False)))
    channel.receive(far_side.open()[0])
    far_side.receive(channel.audio(loud(320), 1))
    assert channel.command(SendMark("1.1")) == []
    assert far_side.play().replies == ()
    assert channel.receive(far_side.play().replies[0]) == [MarkReached("1.1")]


@pytest.mark.parametrize("playback", ["files", "binary"])
def test_a_stream_and_the_gateways_codec_understand_each_other(playback: Any) -> None:
    far_side = StreamPlatform(IDENTITY, binary=playback == "binary")
    channel = StreamChannel(Opening(AudioStreamSettings(playback=playback, controlled=True)))
    (started,) = channel.receive(far_side.open()[0])
    assert isinstance(started, Started)
    assert (started.call_id, started.from_) == (IDENTITY.call_id, "+1")
    assert channel.receive(far_side.digit("5")[0]) == [DtmfIn("5")]
    far_side.receive(channel.audio(loud(320), 1))
    assert heard(far_side, 1) == [1000] * 160
    (clear,) = channel.command(Clear())
    assert isinstance(clear, str)
    far_side.receive(clear)
    assert not any(heard(far_side, 1))


@pytest.mark.parametrize("rate_hz", [8000, 16000, 48000])
def test_raw_audio_and_the_gateways_codec_understand_each_other(rate_hz: int) -> None:
    audio = AudioFormat(Encoding.LINEAR16, rate_hz)
    far_side = RawPlatform(IDENTITY, audio)
    request = raw.upgrade(IDENTITY)
    assert request.query_value("customer_id") == "4711"
    query = {name: [value] for name, value in raw.query_of(IDENTITY, audio).items()}
    request = type(request)(request.path, query=query)
    channel = RawChannel(Opening(PlatformSettings(), request))
    (started,) = channel.opened()
    assert isinstance(started, Started)
    assert (started.call_id, started.from_, started.in_format) == (IDENTITY.call_id, "+1", audio)
    assert channel.receive(far_side.media(None)[0]) == [AudioIn(audio.silence)]
    assert channel.receive(far_side.digit("5")[0]) == [DtmfIn("5")]
    far_side.receive(channel.audio(audio.silence, 1))
    assert far_side.received_bytes == audio.frame_bytes


def test_the_verb_that_listens_is_found() -> None:
    verbs = [{"verb": "answer"}, {"verb": "listen", "url": "wss://x"}]
    assert listen_of(json.dumps(verbs).encode())["url"] == "wss://x"
    for answer in (b"", b"{}", b'[{"verb":"listen"}]', b"[7]"):
        with pytest.raises(RuntimeFailure):
            listen_of(answer)
