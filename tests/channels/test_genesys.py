"""Genesys Audio Connector, message by message."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
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
    Listen,
    ParamsUpdated,
    Paused,
    PlatformFault,
    PlaybackIdle,
    PlaybackStarted,
    Reply,
    Resumed,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import Marks, TransferBy
from gateway.channels.dialect import Opening, Request
from gateway.channels.genesys import MAX_TEXT_BYTES, NULL_ID, GenesysChannel
from gateway.errors import ProtocolError
from gateway.platform_settings import GenesysSettings
from tests.channels.fuzz import json_of, messages, only_protocol_errors

SESSION = "e160e428-53e2-487c-977d-96989bf5c99d"
ORGANIZATION = "d7934305-0972-4844-938e-9060eef73d05"
PCMU = {"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000}
BOTH = {"type": "audio", "format": "PCMU", "channels": ["internal", "external"], "rate": 8000}
L16 = {"type": "audio", "format": "L16", "channels": ["external"], "rate": 8000}
L16_BOTH = {"type": "audio", "format": "L16", "channels": ["external", "internal"], "rate": 8000}
OPEN: dict[str, Any] = {
    "organizationId": ORGANIZATION,
    "conversationId": "090eaa2f-72fa-480a-83e0-8667ff89c0ec",
    "participant": {
        "id": "883efee8-3d6c-4537-b500-6d7ca4b92fa0",
        "ani": "tel:+15550100",
        "aniName": "Ada",
        "dnis": "+15550199",
    },
    "media": [BOTH, PCMU],
    "language": "en-US",
    "customConfig": {"desk": "north"},
    "inputVariables": {"tier": "gold"},
}


class Peer:
    """The platform: numbers its messages and reads what comes back."""

    def __init__(self, request: Request | None = None, **settings: Any) -> None:
        made = Opening(GenesysSettings(**settings), request or Request(""))
        self.channel = GenesysChannel(made)
        self.seq = 0
        self.seen = 0

    def message(self, kind: str, parameters: dict[str, Any] | None = None, **over: Any) -> str:
        self.seq += 1
        body = {
            "version": "2",
            "id": SESSION,
            "type": kind,
            "seq": self.seq,
            "serverseq": self.seen,
            "position": "PT0.5S",
            "parameters": parameters or {},
        }
        return json.dumps({**body, **over})

    def tell(self, kind: str, parameters: dict[str, Any] | None = None, **over: Any) -> list[Any]:
        return self.channel.receive(self.message(kind, parameters, **over))

    def read(self, item: object) -> dict[str, Any]:
        """A message of ours, whose envelope must be right."""
        text = item.message if isinstance(item, Reply) else item
        assert isinstance(text, str)
        body: dict[str, Any] = json.loads(text)
        self.seen += 1
        assert set(body) == {"version", "id", "type", "seq", "clientseq", "parameters"}
        assert (body["version"], body["id"]) == ("2", SESSION)
        assert (body["seq"], body["clientseq"]) == (self.seen, self.seq)
        assert isinstance(body["parameters"], dict)
        return body

    def open(self, **over: Any) -> Started:
        opened, started = self.tell("open", {**OPEN, **over})
        self.opened = self.read(opened)
        assert self.opened["type"] == "opened"
        assert isinstance(started, Started)
        return started


def opened(**settings: Any) -> Peer:
    peer = Peer(**settings)
    peer.open()
    return peer


# ---- open


def test_open_is_answered_at_once_and_tells_the_call() -> None:
    peer = Peer()
    assert peer.open() == Started(
        call_id=SESSION,
        channel_id=OPEN["conversationId"],
        from_="+15550100",
        to="+15550199",
        language="en-US",
        in_format=MULAW_8K,
        out_format=MULAW_8K,
        custom={
            "conversationId": OPEN["conversationId"],
            "participantId": OPEN["participant"]["id"],
            "aniName": "Ada",
            "desk": "north",
            "tier": "gold",
        },
        account=ORGANIZATION,
    )
    assert peer.opened["parameters"] == {"media": [PCMU]}, "one offer, as it was made"


@pytest.mark.parametrize(
    ("offers", "chosen", "audio"),
    [
        ([L16, PCMU], PCMU, MULAW_8K),
        ([L16_BOTH, BOTH], BOTH, MULAW_8K),
        ([L16_BOTH, L16], L16, AudioFormat(Encoding.LINEAR16, 8000)),
        ([{"type": "video"}, 7, {**PCMU, "more": [1]}], {**PCMU, "more": [1]}, MULAW_8K),
    ],
)
def test_the_callers_channel_alone_in_mulaw_is_liked_best(
    offers: list[Any], chosen: dict[str, Any], audio: AudioFormat
) -> None:
    peer = Peer()
    started = peer.open(media=offers)
    assert peer.opened["parameters"]["media"] == [chosen]
    assert started.in_format == started.out_format == audio


@pytest.mark.parametrize(
    "offers",
    [
        [],
        None,
        [{**PCMU, "rate": 16000}],
        [{**PCMU, "channels": ["internal"]}],
        [{**PCMU, "format": "OPUS"}],
    ],
)
def test_without_an_offer_that_is_spoken_there_is_no_call(offers: Any) -> None:
    peer = Peer()
    with pytest.raises(ProtocolError) as caught:
        peer.tell("open", {**OPEN, "media": offers})
    assert caught.value.code == "protocol.format"
    disconnect, close = peer.channel.protocol_close(caught.value)
    told = peer.read(disconnect)
    assert (told["type"], told["parameters"]["reason"]) == ("disconnect", "error")
    assert isinstance(close, Close)


def test_a_probe_is_answered_and_is_no_call() -> None:
    peer = Peer()
    participant = {**OPEN["participant"], "id": NULL_ID}
    probe = {**OPEN, "conversationId": NULL_ID, "participant": participant}
    (answer,) = peer.tell("open", probe)
    assert peer.read(answer)["parameters"] == {"media": [PCMU]}
    assert peer.channel.receive(b"\xff" * 1600) == []
    assert peer.tell("dtmf", {"digit": "1"}) == []
    (pong,) = peer.tell("ping")
    assert peer.read(pong)["type"] == "pong"
    (closed,) = peer.tell("close", {"reason": "end"})
    assert peer.read(closed)["type"] == "closed"


def test_languages_are_told_to_who_asks() -> None:
    peer = Peer(languages=["en-US", "de-DE"])
    peer.open(supportedLanguages=True)
    assert peer.opened["parameters"]["supportedLanguages"] == ["en-US", "de-DE"]
    silent = Peer(languages=["en-US"])
    silent.open()
    assert "supportedLanguages" not in silent.opened["parameters"]


def test_the_upgrade_and_open_must_tell_the_same() -> None:
    headers = {
        "audiohook-session-id": SESSION,
        "audiohook-organization-id": ORGANIZATION,
    }
    assert Peer(Request("", headers=headers)).open()
    for name in headers:
        peer = Peer(Request("", headers={**headers, name: "another"}))
        with pytest.raises(ProtocolError) as caught:
            peer.tell("open", OPEN)
        assert caught.value.code == "protocol.other_call"


def test_the_connector_of_the_address_is_custom_data() -> None:
    peer = Peer(Request("", values={"connector": "billing"}))
    assert peer.open().custom["connector"] == "billing"


# ---- the numbers


@pytest.mark.parametrize("over", [{"seq": 1}, {"seq": 3}, {"seq": 0}, {"serverseq": 2}])
def test_a_gap_in_the_numbers_is_an_error(over: dict[str, int]) -> None:
    peer = opened()
    with pytest.raises(ProtocolError) as caught:
        peer.tell("ping", **over)
    assert (caught.value.code, caught.value.close_code) == ("protocol.sequence", 1002)


def test_binary_messages_are_not_numbered() -> None:
    peer = opened()
    assert peer.channel.receive(b"\xff" * 1600) == [AudioIn(b"\xff" * 1600)]
    (pong,) = peer.tell("ping", {"rtt": "PT0.02S"})
    assert peer.read(pong)["type"] == "pong"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"\xff" * 1600, "protocol.order"),
        ("hello", "protocol.json"),
        ("[]", "protocol.shape"),
        ('{"type":"open","seq":1,"id":"x"}', "protocol.shape"),
        ('{"version":"1","type":"open","seq":1,"id":"x","parameters":{}}', "protocol.version"),
        ('{"version":"2","type":"ping","seq":1,"id":"x","parameters":{}}', "protocol.order"),
        ('{"version":"2","type":"open","seq":"1","id":"x","parameters":{}}', "protocol.shape"),
        ('{"version":"2","type":"open","seq":1,"id":"x","parameters":[]}', "protocol.shape"),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str) -> None:
    channel = Peer().channel
    with pytest.raises(ProtocolError) as caught:
        channel.receive(message)
    assert caught.value.code == code
    assert isinstance(channel.protocol_close(caught.value)[-1], Close)


def test_a_second_open_and_another_session_are_errors() -> None:
    for kind, over, code in (
        ("open", {}, "protocol.started_twice"),
        ("ping", {"id": "another"}, "protocol.other_call"),
    ):
        with pytest.raises(ProtocolError) as caught:
            opened().tell(kind, OPEN, **over)
        assert caught.value.code == code


def test_unknown_messages_are_counted_and_ignored() -> None:
    peer = opened()
    assert peer.tell("something", {"a": 1}) == []
    assert peer.tell("discarded", {"start": "PT0S", "discarded": "PT1S"}) == []
    (pong,) = peer.tell("ping")
    assert peer.read(pong)


# ---- in a call


def test_keys_faults_updates_and_playback() -> None:
    peer = opened()
    assert peer.tell("dtmf", {"digit": "#"}) == [DtmfIn("#")]
    assert peer.tell("playback_started") == [PlaybackStarted()]
    assert peer.tell("playback_completed") == [PlaybackIdle()]
    fault = {"code": 429, "message": "Rate limit exceeded", "retryAfter": "PT2S"}
    assert peer.tell("error", fault) == [PlatformFault("429", "Rate limit exceeded")]
    updated, language = peer.tell("update", {"language": "de-DE"})
    assert peer.read(updated)["type"] == "updated"
    assert language == ParamsUpdated(language="de-DE")
    with pytest.raises(ProtocolError):
        peer.tell("dtmf", {"digit": "12"})


def test_while_the_platform_pauses_no_audio_is_taken() -> None:
    peer = opened()
    assert peer.tell("paused") == [Paused()]
    assert peer.channel.receive(b"\xff" * 1600) == []
    assert peer.tell("resumed", {"start": "PT1S", "discarded": "PT1S"}) == [Resumed()]
    assert peer.channel.receive(b"\xff") == [AudioIn(b"\xff")]


@given(st.lists(st.integers(1, 9), max_size=8))
def test_of_two_channels_the_caller_is_heard(cuts: list[int]) -> None:
    peer = Peer()
    peer.open(media=[BOTH])
    wire = b"".join(bytes([200, caller]) for caller in range(20))
    heard = b""
    for cut in [*cuts, len(wire)]:
        piece, wire = wire[:cut], wire[cut:]
        heard += b"".join(event.data for event in peer.channel.receive(piece))
    assert heard == bytes(range(20))


def test_two_channels_of_linear16_and_half_a_frame() -> None:
    peer = Peer()
    peer.open(media=[L16_BOTH])
    wire = array("h", [1, -1, 2, -2, 3, -3]).tobytes()
    pieces = [event.data for cut in (wire[:5], wire[5:]) for event in peer.channel.receive(cut)]
    assert b"".join(pieces) == array("h", [1, 2, 3]).tobytes()


def test_a_caller_who_hangs_up_is_answered() -> None:
    peer = opened()
    closed, ended = peer.tell("close", {"reason": "end"})
    assert peer.read(closed)["type"] == "closed"
    assert ended == Ended()
    assert peer.channel.receive(b"\xff" * 1600) == []
    assert peer.channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("error", EndReason.ERROR), ("reconnect", EndReason.TRANSPORT_LOST)],
)
def test_other_reasons_of_a_close(reason: str, expected: EndReason) -> None:
    assert opened().tell("close", {"reason": reason})[1] == Ended(expected)


# ---- out


def test_a_pause_of_ours_is_no_hold_of_the_caller() -> None:
    peer = opened()
    (pause,) = peer.channel.command(Listen(False))
    assert peer.read(pause)["type"] == "pause"
    assert peer.tell("paused") == [], "the agent is still heard"
    assert peer.channel.receive(b"\xff") == []
    (resume,) = peer.channel.command(Listen(True))
    assert peer.read(resume)["type"] == "resume"
    assert peer.tell("resumed", {"start": "PT1S", "discarded": "PT0S"}) == [Resumed()]
    assert peer.channel.receive(b"\xff") == [AudioIn(b"\xff")]
    assert peer.tell("paused") == [Paused()], "this one is the platform's"


def test_audio_is_raw_and_a_clear_is_told_once() -> None:
    peer = opened()
    assert peer.channel.command(Clear()) == [], "nothing was sent"
    assert peer.channel.audio(b"\x11" * 1920, 1) == b"\x11" * 1920
    (event,) = peer.channel.command(Clear())
    body = peer.read(event)
    assert body["type"] == "event"
    assert body["parameters"] == {"entities": [{"type": "barge_in", "data": {}}]}
    assert peer.channel.command(Clear()) == []


def test_a_hang_up_asks_the_platform_to_close_and_leaves_data_behind() -> None:
    peer = opened()
    params = {"intent": "billing", "score": 0.5, "list": [1], "none": None}
    (disconnect,) = peer.channel.command(Hangup(EndReason.COMPLETED, {"params": params}))
    body = peer.read(disconnect)
    assert body["type"] == "disconnect"
    assert body["parameters"] == {
        "reason": "completed",
        "outputVariables": {
            "action": "hangup",
            "intent": "billing",
            "score": "0.5",
            "list": "[1]",
        },
    }
    (closed,) = peer.tell("close", {"reason": "disconnect"})
    assert peer.read(closed)["type"] == "closed", "and the platform closes the socket"


def test_a_failed_call_says_so() -> None:
    peer = opened(action_output="outcome")
    (disconnect,) = peer.channel.command(Hangup(EndReason.ERROR))
    told = peer.read(disconnect)["parameters"]
    assert told == {"reason": "error", "outputVariables": {"outcome": "error"}}


def test_a_transfer_is_the_flows_to_make() -> None:
    assert GenesysChannel(Opening(GenesysSettings())).capabilities.transfer is TransferBy.OUTPUTS
    peer = opened()
    (disconnect,) = peer.channel.command(Transfer("+15550123", {"params": {"why": "sales"}}))
    assert peer.read(disconnect)["parameters"]["outputVariables"] == {
        "why": "sales",
        "action": "transfer",
        "target": "+15550123",
    }


def test_data_that_no_message_holds_is_left_out_longest_first() -> None:
    params = {"short": "x", "long": "é" * 40000, "longer": "y" * 90000}
    (disconnect,) = opened().channel.command(Hangup(EndReason.COMPLETED, {"params": params}))
    assert isinstance(disconnect, str)
    assert len(disconnect.encode()) <= MAX_TEXT_BYTES
    assert set(json.loads(disconnect)["parameters"]["outputVariables"]) == {"action", "short"}


def test_what_the_platform_does_not_know_is_not_sent() -> None:
    for command in (AgentText("hi", 1), SendMark("1.0"), GoAway()):
        assert opened().channel.command(command) == []


def test_what_genesys_can_do() -> None:
    able = opened(message_ms=400).channel.capabilities
    assert able.marks is Marks.IDLE
    assert able.min_message_ms == 400
    assert GenesysSettings().message_ms >= 200, "five messages a second"
    assert able.lead_ms(100) == 500, "a message more than the one that plays"
    assert able.lead_ms(2000) == 1000
    assert able.receive_idle_s is not None
    assert able.receive_idle_s > 3 * 5, "it pings every five seconds"


NAMES = [
    *("open", "ping", "close", "dtmf", "paused", "resumed", "update", "error", "2", SESSION),
    *("version", "id", "type", "seq", "serverseq", "parameters", "media", "channels", "format"),
    *("external", "PCMU", "audio", "rate", "participant", "digit", "reason", "inputVariables"),
]


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(lambda: Peer().channel, received)


@given(st.lists(st.tuples(st.sampled_from(NAMES), json_of(NAMES)), max_size=4), st.binary())
def test_only_protocol_errors_escape_in_a_call(told: list[tuple[str, Any]], audio: bytes) -> None:
    peer = opened()
    for kind, parameters in told:
        try:
            peer.tell(kind, parameters if isinstance(parameters, dict) else {"x": parameters})
            peer.channel.receive(audio)
            peer.seen = peer.channel._server_seq
        except ProtocolError:
            return
