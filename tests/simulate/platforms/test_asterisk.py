"""Asterisk's habits: XOFF and overflow, marks lost on a flush, frames, short commands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.channels.asterisk import AsteriskChannel
from gateway.channels.base import (
    AudioIn,
    Clear,
    DtmfIn,
    EndReason,
    FlowControl,
    Hangup,
    MarkReached,
    SendMark,
    Started,
)
from gateway.channels.dialect import Opening
from gateway.errors import ProtocolError
from gateway.platform_settings import AsteriskSettings
from gateway.simulate.platforms import call_id
from gateway.simulate.platforms.asterisk import AsteriskPlatform, Control
from gateway.simulate.platforms.base import Identity

IDENTITY = Identity(call_id("asterisk", "test"), "+1", "+2", {"customer_id": 4711})
FRAME = b"\x10" * 160
CONTROLS = pytest.mark.parametrize("control", ["plain", "json"])


def platform(control: Control = "plain", codec: str = "ulaw") -> AsteriskPlatform:
    return AsteriskPlatform(IDENTITY, control, codec)


def say(far_side: AsteriskPlatform, name: str, identifier: str = "") -> list[Any]:
    if far_side.control == "plain":
        return far_side.receive(f"{name} {identifier}" if identifier else name)
    return far_side.receive(json.dumps({"command": name, "correlation_id": identifier}))


def test_it_says_media_start_in_its_language() -> None:
    (start,) = platform().open()
    assert str(start).startswith("MEDIA_START connection_id:voice channel:WebSocket/voice/0x")
    assert str(start).endswith(
        f"channel_id:{IDENTITY.call_id} format:ulaw optimal_frame_size:160 ptime:20"
    )
    body = json.loads(platform("json", "slin16").open()[0])
    assert (body["event"], body["format"], body["optimal_frame_size"]) == (
        "MEDIA_START",
        "slin16",
        640,
    )
    assert body["channel_variables"] == {"from": "+1", "to": "+2", "customer_id": "4711"}


def test_the_queue_says_when_it_is_full_and_loses_what_comes_then() -> None:
    far_side = platform()
    told = [reply for _ in range(950) for reply in far_side.receive(FRAME)]
    assert told == ["MEDIA_XOFF"], "at 900 frames, once"
    assert far_side.receive(FRAME * 49) == []
    assert far_side.receive(FRAME * 5) == [], "one message may still go over"
    assert far_side.lost_frames == 0
    far_side.receive(FRAME * 3)
    assert far_side.lost_frames == 3
    said = [reply for _ in range(300) for reply in far_side.play().replies]
    assert said == ["MEDIA_XON"], "below 800 frames, once"


def test_a_flush_destroys_marks_and_never_reports_them() -> None:
    far_side = platform()
    for _ in range(920):
        far_side.receive(FRAME)
    say(far_side, "MARK_MEDIA", "1.1")
    assert say(far_side, "FLUSH_MEDIA") == ["MEDIA_XON"]
    assert far_side.play().replies == ()
    for _ in range(1000):
        far_side.receive(FRAME)
    assert far_side.lost_frames == 0, "the queue is as good as new"


def test_a_flush_does_not_end_a_pause() -> None:
    far_side = platform()
    say(far_side, "PAUSE_MEDIA")
    say(far_side, "FLUSH_MEDIA")
    far_side.receive(FRAME)
    assert set(far_side.play().pcm) == {0}
    say(far_side, "CONTINUE_MEDIA")
    assert set(far_side.play().pcm) != {0}


@CONTROLS
def test_a_mark_waits_for_its_place_or_the_next_tick(control: Control) -> None:
    far_side = platform(control)
    assert say(far_side, "MARK_MEDIA", "1.1") == []
    assert "1.1" in str(far_side.play().replies[0])
    far_side.receive(FRAME * 2)
    say(far_side, "MARK_MEDIA", "1.2")
    assert far_side.play().replies == ()
    assert "1.2" in str(far_side.play().replies[0])


def test_hangup_ends_it_at_once_whatever_waits() -> None:
    far_side = platform()
    far_side.receive(FRAME * 50)
    say(far_side, "HANGUP")
    assert far_side.finished


@pytest.mark.parametrize(
    ("control", "message", "words"),
    [
        ("plain", b"\x10" * 161, "no whole frames"),
        ("plain", b"", "no whole frames"),
        ("plain", b"\x10" * 160 * 410, "65600 bytes"),
        ("plain", "MARK_MEDIA " + "x" * 120, "128 bytes"),
        ("plain", "HANGUP\n", "the command"),
        ("plain", '{"command":"HANGUP"}', "the command"),
        ("json", "HANGUP", "not JSON"),
        ("json", '{"event":"HANGUP"}', "without a command"),
        ("json", '{"command":"hangup"}', "the command"),
    ],
)
def test_it_objects_to_what_the_real_one_ignores(
    control: Control, message: str | bytes, words: str
) -> None:
    with pytest.raises(ProtocolError, match=words):
        platform(control).receive(message)


@given(st.text(max_size=60) | st.binary(max_size=60), st.sampled_from(["plain", "json"]))
def test_nothing_but_a_complaint_ever_escapes(message: str | bytes, control: Control) -> None:
    far_side = platform(control)
    try:
        far_side.receive(message)
    except ProtocolError as error:
        assert "asterisk" in error.message  # noqa: PT017


@CONTROLS
@pytest.mark.parametrize("codec", ["ulaw", "alaw", "slin", "slin16", "slin48"])
def test_it_and_the_gateways_codec_understand_each_other(control: Control, codec: str) -> None:
    far_side = platform(control, codec)
    channel = AsteriskChannel(Opening(AsteriskSettings()))
    (started,) = channel.receive(far_side.open()[0])
    assert isinstance(started, Started)
    assert started.call_id == IDENTITY.call_id
    assert started.in_format == far_side.in_format
    assert started.from_ == ("+1" if control == "json" else "")
    (audio,) = channel.receive(far_side.media(None)[0])
    assert audio == AudioIn(far_side.in_format.silence)
    assert channel.receive(far_side.digit("#")[0]) == [DtmfIn("#")]
    frame = far_side.out_format.silence
    assert far_side.receive(channel.audio(frame, 1)) == []
    (mark,) = channel.command(SendMark("1.1"))
    assert isinstance(mark, str)
    assert far_side.receive(mark) == []
    assert channel.receive(far_side.play().replies[0]) == [MarkReached("1.1")]
    (xoff,) = [reply for _ in range(900) for reply in far_side.receive(frame)]
    assert channel.receive(xoff) == [FlowControl(False)]
    (flush,) = channel.command(Clear())
    assert isinstance(flush, str)
    (xon,) = far_side.receive(flush)
    assert channel.receive(xon) == [FlowControl(True)]
    (hangup,) = channel.command(Hangup(EndReason.COMPLETED))
    assert isinstance(hangup, str)
    far_side.receive(hangup)
    assert far_side.finished
