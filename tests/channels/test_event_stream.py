"""The order of events in streams of JSON, the same on every dialect that has it."""

from __future__ import annotations

import pytest

from gateway.channels.base import AudioIn, Channel, DtmfIn, Ended, Started
from gateway.channels.dialects import DIALECTS, open_channel
from gateway.channels.event_stream import EventStream
from gateway.errors import ProtocolError
from gateway.simulate.platforms import platform
from gateway.simulate.platforms.base import Identity, Platform, Wire

STREAMS = [name for name in DIALECTS if isinstance(open_channel(name), EventStream)]
ON_EACH = pytest.mark.parametrize("dialect", STREAMS)
STOP = '{"event":"stop"}'


def far_side(dialect: str) -> Platform:
    return platform(dialect, Identity("call-1"))


def events(channel: Channel, messages: list[Wire]) -> list[object]:
    return [event for message in messages for event in channel.receive(message)]


def test_the_dialects_that_have_it() -> None:
    assert STREAMS == ["twilio", "telnyx", "signalwire", "plivo", "exotel"]


@ON_EACH
def test_before_the_start_only_audio_counts(dialect: str) -> None:
    channel, far = open_channel(dialect), far_side(dialect)
    opening = far.open()
    media = [message for _ in range(6) for message in far.media(None)]
    kinds = {type(event) for event in events(channel, media + far.digit("5"))}
    assert kinds == {AudioIn}
    assert [type(event) for event in events(channel, opening)] == [Started]
    assert events(channel, far.digit("5")) == [DtmfIn("5")]


@ON_EACH
def test_a_start_comes_once_and_a_stop_after_it(dialect: str) -> None:
    channel, far = open_channel(dialect), far_side(dialect)
    with pytest.raises(ProtocolError) as early:
        channel.receive(STOP)
    opening = far.open()
    events(channel, opening)
    with pytest.raises(ProtocolError) as twice:
        channel.receive(opening[-1])
    assert (early.value.close_code, twice.value.close_code) == (1002, 1002)
    assert channel.receive(STOP) == [Ended()]
    assert events(channel, far.digit("5") + far.open()) == []


@ON_EACH
def test_a_token_opens_its_own_call_only(dialect: str) -> None:
    opening = far_side(dialect).open()
    assert events(open_channel(dialect, "call-1"), opening)
    with pytest.raises(ProtocolError) as caught:
        events(open_channel(dialect, "call-2"), opening)
    assert caught.value.close_code == 1008
