"""Frames of 20 ms become the messages that a dialect wants, and no byte is lost on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels.base import (
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    EndReason,
    Hangup,
    SendMark,
    Wire,
)
from gateway.channels.capabilities import Capabilities
from gateway.channels.outbox import Outbox, needs_outbox

PLAIN = Capabilities(dialect="test")
LINEAR_16K = AudioFormat(Encoding.LINEAR16, 16000)
FRAME = bytes(range(160))


class Plain(Codec):
    """Audio as it is, commands by their names."""

    def receive(self, message: Wire) -> list[ChannelEvent]:
        return []

    def audio(self, data: bytes, turn: int) -> Wire:
        return data

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        return [type(command).__name__]


def outbox(audio_format: AudioFormat = MULAW_8K, **able: object) -> Outbox:
    capabilities = replace(PLAIN, **able)  # type: ignore[arg-type]
    assert needs_outbox(capabilities, audio_format)
    return Outbox(Plain(capabilities), capabilities, audio_format)


def test_plain_frames_need_no_outbox() -> None:
    assert not needs_outbox(PLAIN, MULAW_8K)
    assert not needs_outbox(replace(PLAIN, frame_multiple_bytes=320), LINEAR_16K)
    assert needs_outbox(replace(PLAIN, frame_multiple_bytes=320), MULAW_8K)
    assert needs_outbox(replace(PLAIN, min_message_ms=40), MULAW_8K)


def test_frames_are_gathered_to_the_wanted_length() -> None:
    box = outbox(min_message_ms=200)
    sent = [message for _ in range(25) for message in box.audio(FRAME, 1)]
    assert [len(message) for message in sent] == [1600, 1600]
    assert box.kept_bytes == 5 * 160


def test_the_end_of_a_stretch_goes_out_once_nothing_follows() -> None:
    box = outbox(min_message_ms=60)
    assert box.audio(FRAME, 1) == []
    assert box.tick() == []
    sent = [message for _ in range(6) for message in box.tick()]
    assert sent == [FRAME]
    assert box.tick() == []


def test_a_stumbling_stream_makes_no_more_messages_than_a_fluent_one() -> None:
    box = outbox(min_message_ms=200)
    sent = 0
    for tick in range(500):
        if tick % 3 == 0:
            sent += len(box.audio(FRAME, 1))
        sent += len(box.tick())
    assert sent <= 500 / 10 + 1


def test_a_mark_comes_after_the_audio_before_it() -> None:
    box = outbox(min_message_ms=100)
    box.audio(FRAME, 1)
    assert box.command(SendMark("1.0")) == [FRAME, "SendMark"]


def test_a_clear_drops_what_waits() -> None:
    box = outbox(min_message_ms=100)
    box.audio(FRAME, 1)
    assert box.command(Clear()) == ["Clear"]
    assert box.kept_bytes == 0
    assert [box.tick() for _ in range(9)] == [[]] * 9


def test_the_last_audio_goes_before_the_hang_up() -> None:
    box = outbox(min_message_ms=100)
    box.audio(FRAME, 1)
    assert box.command(Hangup(EndReason.COMPLETED)) == [FRAME, "Hangup"]


def test_a_short_end_is_padded_with_the_codec_s_silence() -> None:
    exact = outbox(min_message_ms=60, frame_exact=True)
    exact.audio(FRAME, 1)
    assert exact.command(SendMark("m"))[0] == FRAME + b"\xff" * 320
    multiple = outbox(frame_multiple_bytes=320, min_message_ms=20)
    multiple.audio(FRAME, 1)
    assert multiple.command(SendMark("m"))[0] == FRAME + b"\xff" * 160
    linear = outbox(LINEAR_16K, frame_multiple_bytes=1024)
    linear.audio(bytes(640), 1)
    assert linear.command(SendMark("m"))[0] == bytes(1024)


def test_a_message_is_never_larger_than_allowed() -> None:
    box = outbox(LINEAR_16K, min_message_ms=1000, max_out_bytes=1000, frame_multiple_bytes=320)
    sent = [message for _ in range(20) for message in box.audio(bytes(640), 1)]
    assert {len(message) for message in sent} == {960}


@given(
    frames=st.lists(st.one_of(st.binary(min_size=160, max_size=160), st.none()), max_size=60),
    message_ms=st.sampled_from([20, 40, 100, 200]),
    multiple=st.sampled_from([1, 80, 160, 320]),
    exact=st.booleans(),
)
@pytest.mark.filterwarnings("error")
def test_every_byte_arrives_in_order_and_in_size(
    frames: list[bytes | None], message_ms: int, multiple: int, exact: bool
) -> None:
    capabilities = replace(
        PLAIN, min_message_ms=message_ms, frame_multiple_bytes=multiple, frame_exact=exact
    )
    box = Outbox(Plain(capabilities), capabilities, MULAW_8K)
    sent: list[Wire | Close] = []
    for frame in frames:
        if frame is not None:
            sent += box.audio(frame, 1)
        sent += box.tick()
    sent += box.command(SendMark("end"))[:-1]
    given_bytes = b"".join(frame for frame in frames if frame is not None)
    # Frames of silence may be told from padding by position only, so both are taken out.
    arrived = b"".join(message for message in sent if isinstance(message, bytes))
    assert arrived.replace(b"\xff", b"") == given_bytes.replace(b"\xff", b"")
    unit = message_ms * 8 if exact else multiple
    assert all(isinstance(m, bytes) and len(m) % unit == 0 for m in sent)
