"""Infobip as a profile of Vonage's dialect: what is the same, and what is not relied on."""

from __future__ import annotations

import json

from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import AudioIn, Clear, DtmfIn, Started
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, TransferBy
from gateway.channels.dialect import Opening
from gateway.channels.infobip import InfobipChannel
from gateway.platform_settings import PlatformSettings
from tests.channels.fuzz import messages, only_protocol_errors

CONNECTED = {
    "event": "websocket:connected",
    "content-type": "audio/l16;rate=16000",
    "callId": "c1",
    "from": "15550100",
    "tier": "gold",
}
NAMES = [*CONNECTED, "websocket:connected", "websocket:dtmf", "digit", "payload", "uuid"]


def infobip() -> InfobipChannel:
    return InfobipChannel(Opening(PlatformSettings()))


def test_the_first_message_and_frames_are_vonage_s() -> None:
    channel = infobip()
    (event,) = channel.receive(json.dumps(CONNECTED))
    assert isinstance(event, Started)
    assert (event.call_id, event.from_) == ("c1", "15550100")
    assert event.out_format == AudioFormat(Encoding.LINEAR16, 16000)
    assert event.custom["tier"] == "gold"
    assert channel.receive(bytes(640)) == [AudioIn(bytes(640))]
    assert channel.receive('{"event":"websocket:dtmf","digit":"5"}') == [DtmfIn("5")]
    assert channel.command(Clear()) == ['{"action":"clear"}']


def test_a_call_without_a_name_is_given_one() -> None:
    told = {name: value for name, value in CONNECTED.items() if name != "callId"}
    ids = [infobip().receive(json.dumps(told))[0] for _ in range(2)]
    names = {event.call_id for event in ids if isinstance(event, Started)}
    assert len(names) == 2
    assert all(name.startswith("infobip-") for name in names)


def test_nothing_that_is_unknown_there_is_relied_on() -> None:
    able = infobip().capabilities
    assert able.dialect == "infobip"
    assert able.frame_exact
    assert (able.marks, able.dtmf_out, able.end_out, able.transfer) == (
        Marks.EMULATED,
        DtmfOut.INBAND,
        EndOut.CLOSE,
        TransferBy.NONE,
    )


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(infobip, received)
