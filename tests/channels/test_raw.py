"""Plain audio with the format in the query."""

from __future__ import annotations

import pytest
from hypothesis import given

from gateway.audio.formats import ALAW_8K, MULAW_8K, AudioFormat, Encoding
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
from gateway.channels.capabilities import ClearBy, Marks
from gateway.channels.dialect import Opening, Request
from gateway.channels.raw import RawChannel
from gateway.errors import ProtocolError
from gateway.platform_settings import PlatformSettings
from tests.channels.fuzz import messages, only_protocol_errors


def raw(expected_call_id: str = "", **query: str) -> RawChannel:
    request = Request("", query={name: [value] for name, value in query.items()})
    return RawChannel(Opening(PlatformSettings(), request, expected_call_id))


def start(**query: str) -> Started:
    (event,) = raw(**query).opened()
    assert isinstance(event, Started)
    return event


def test_the_query_says_all() -> None:
    query = {"call_id": "42", "from": "+1", "to": "+2", "language": "de-DE", "plan": "gold"}
    event = start(**query, encoding="alaw", access_token="secret")
    assert (event.call_id, event.from_, event.to, event.language) == ("42", "+1", "+2", "de-DE")
    assert event.in_format == event.out_format == ALAW_8K
    assert event.custom == {"from": "+1", "to": "+2", "language": "de-DE", "plan": "gold"}


def test_without_a_query_it_is_mulaw_and_each_call_has_its_own_name() -> None:
    assert start().in_format == MULAW_8K
    assert start().call_id != start().call_id


def test_the_directions_may_differ() -> None:
    event = start(encoding="mulaw", out_encoding="l16", out_rate="24000")
    assert event.in_format == MULAW_8K
    assert event.out_format == AudioFormat(Encoding.LINEAR16, 24000)


@pytest.mark.parametrize("rate", ["8000", "16000", "24000", "48000"])
def test_linear16_at_every_rate_in_both_byte_orders(rate: str) -> None:
    channel = raw(encoding="l16be", rate=rate)
    assert channel.receive(b"\x01\x02\x03") == [AudioIn(b"\x02\x01")]
    assert channel.receive(b"\x04") == [AudioIn(b"\x04\x03")]
    assert channel.audio(b"\x01\x02", 1) == b"\x02\x01"
    channel = raw(encoding="l16", rate=rate)
    assert channel.receive(b"\x01\x02") == [AudioIn(b"\x01\x02")]
    assert channel.audio(b"\x01\x02", 1) == b"\x01\x02"


@pytest.mark.parametrize(
    "query",
    [
        {"encoding": "opus"},
        {"rate": "16000"},
        {"encoding": "l16", "rate": "44100"},
        {"encoding": "l16", "rate": "fast"},
        {"out_encoding": "mp3"},
        {"call_id": "no spaces"},
    ],
)
def test_a_query_that_cannot_be_met_is_refused_before_the_upgrade(query: dict[str, str]) -> None:
    with pytest.raises(ProtocolError):
        raw(**query)


def test_text_is_keys() -> None:
    assert raw().receive("12#") == [DtmfIn("12#")]
    assert raw().receive("a") == [DtmfIn("A")]
    for text in ("", "hello", "1" * 40):
        with pytest.raises(ProtocolError):
            raw().receive(text)
    assert raw().receive(b"") == []


def test_only_the_close_is_left_to_say() -> None:
    channel = raw()
    assert channel.command(SendMark("1.1")) == []
    assert channel.command(Clear()) == []
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("1")) == [Close(1000, "transferred")]
    capabilities = channel.capabilities
    assert (capabilities.marks, capabilities.clear) == (Marks.EMULATED, ClearBy.LOCAL_ONLY)
    assert capabilities.max_lead_ms <= 100, "what was sent cannot be taken back"


@given(messages(["1", "#", "event"]))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(raw, received)
    only_protocol_errors(lambda: raw(encoding="l16be"), received)
