"""AudioCodes' bot API in streaming mode, message by message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels.audiocodes import FORMATS, AudioCodesChannel
from gateway.channels.base import (
    AgentText,
    AudioIn,
    ChannelCommand,
    Clear,
    Close,
    DtmfIn,
    Ended,
    EndReason,
    Hangup,
    MarkReached,
    ParamsUpdated,
    Rejoin,
    Rejoined,
    Reply,
    SendDtmf,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import Opening
from gateway.channels.outbox import Outbox
from gateway.errors import ProtocolError
from gateway.platform_settings import AudioCodesSettings
from tests.channels.fuzz import messages, only_protocol_errors

INITIATE: dict[str, Any] = {
    "type": "session.initiate",
    "conversationId": "v1",
    "botName": "bot",
    "caller": "+15550100",
    "expectAudioMessages": True,
    "supportedMediaFormats": ["wav/lpcm16", "raw/mulaw", "raw/lpcm16"],
}
PARAMETERS = {"callee": "+15550199", "tier": "gold", "locale": "de-DE"}
LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)
NAMES = [
    *INITIATE,
    *("session.initiate", "session.resume", "session.end", "connection.validate", "activities"),
    *("userStream.start", "userStream.chunk", "userStream.stop", "participant", "audioChunk"),
    *("type", "event", "name", "start", "dtmf", "hangup", "playFinished", "value", "parameters"),
]


def vaic(**settings: Any) -> AudioCodesChannel:
    return AudioCodesChannel(Opening(AudioCodesSettings(**settings)))


def message(kind: str, **more: Any) -> str:
    return json.dumps({"type": kind, "conversationId": "v1", **more})


def activity(name: str, **more: Any) -> str:
    return message("activities", activities=[{"type": "event", "name": name, **more}])


def started(**settings: Any) -> AudioCodesChannel:
    channel = vaic(**settings)
    channel.receive(json.dumps(INITIATE))
    channel.receive(activity("start", parameters=PARAMETERS))
    return channel


def said(channel: AudioCodesChannel, command: ChannelCommand) -> list[Any]:
    return [
        one if isinstance(one, Close) else json.loads(str(one)) for one in channel.command(command)
    ]


def event(name: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "event", "name": name, **more}
    if params:
        told["activityParams"] = params
    return {"type": "activities", "activities": [told]}


def played(channel: AudioCodesChannel, data: bytes = b"\x01\x00") -> list[Any]:
    """What goes out for one piece of audio."""
    made = channel.audio(data, 1)
    return [json.loads(one) for one in (made if isinstance(made, tuple) else (made,))]


# ---- the session


def test_the_session_is_accepted_at_once_and_the_call_starts_with_its_activity() -> None:
    channel = vaic()
    assert channel.receive(json.dumps(INITIATE)) == [
        Reply('{"type":"session.accepted","mediaFormat":"raw/lpcm16"}')
    ]
    assert channel.receive(activity("start", parameters=PARAMETERS)) == [
        Started(
            call_id="v1",
            from_="+15550100",
            to="+15550199",
            language="de-DE",
            in_format=LINEAR16_16K,
            out_format=LINEAR16_16K,
            custom={"botName": "bot", **PARAMETERS},
        )
    ]


def test_without_the_activity_the_call_starts_after_a_moment() -> None:
    channel = vaic()
    channel.receive(json.dumps(INITIATE))
    (assumed,) = channel.overdue()
    assert isinstance(assumed, Started)
    assert (assumed.call_id, assumed.from_) == ("v1", "+15550100")
    assert channel.receive(activity("start", parameters=PARAMETERS)) == [
        ParamsUpdated("de-DE", PARAMETERS)
    ], "what comes late is an update"
    late = vaic()
    assert late.overdue() == []
    accepted, begun = late.receive(json.dumps(INITIATE))
    assert isinstance(accepted, Reply)
    assert isinstance(begun, Started)


@pytest.mark.parametrize(
    ("offered", "preferred", "chosen"),
    [
        (["raw/mulaw", "raw/lpcm16"], "raw/lpcm16", "raw/lpcm16"),
        (["raw/mulaw", "raw/lpcm16_8"], "raw/lpcm16", "raw/mulaw"),
        (["wav/mulaw", "raw/lpcm16_24"], "raw/lpcm16_24", "raw/lpcm16_24"),
        (None, "raw/mulaw", "raw/mulaw"),
    ],
)
def test_a_format_that_both_speak_is_chosen(
    offered: list[str] | None, preferred: str, chosen: str
) -> None:
    channel = vaic(media_format=preferred)
    (reply,) = channel.receive(json.dumps({**INITIATE, "supportedMediaFormats": offered}))
    assert isinstance(reply, Reply)
    assert json.loads(str(reply.message))["mediaFormat"] == chosen
    (begun,) = channel.overdue()
    assert isinstance(begun, Started)
    assert begun.in_format == begun.out_format == FORMATS[chosen]


def test_without_a_common_format_the_session_is_refused_in_words() -> None:
    channel = vaic()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(json.dumps({**INITIATE, "supportedMediaFormats": ["wav/mulaw"]}))
    assert caught.value.code == "protocol.format"
    error, close = channel.protocol_close(caught.value)
    assert json.loads(str(error))["type"] == "session.error"
    assert isinstance(close, Close)
    assert json.loads(str(channel.protocol_close(ValueError())[0]))["reason"] == "internal error"


def test_a_connection_that_is_only_tried_is_answered() -> None:
    assert vaic().receive(message("connection.validate")) == [
        Reply('{"type":"connection.validated","success":true}')
    ]


# ---- the caller


def test_the_caller_s_stream() -> None:
    channel = started()
    assert channel.receive(message("userStream.start")) == [Reply('{"type":"userStream.started"}')]
    assert channel.receive(message("userStream.chunk", audioChunk="AQA=")) == [AudioIn(b"\x01\x00")]
    assert channel.receive(message("userStream.chunk", audioChunk="")) == []
    assert channel.receive(message("userStream.stop")) == [Reply('{"type":"userStream.stopped"}')]
    assert channel.receive(message("userStream.start")), "it may begin again"


def test_of_two_participants_the_first_is_the_caller() -> None:
    channel = started()
    for name in ("caller", "agent"):
        assert channel.receive(message("userStream.start", participant=name)) == [
            Reply(f'{{"type":"userStream.started","participant":"{name}"}}')
        ]
    chunk = {"audioChunk": "AQA="}
    assert channel.receive(message("userStream.chunk", participant="caller", **chunk))
    assert channel.receive(message("userStream.chunk", **chunk))
    assert channel.receive(message("userStream.chunk", participant="agent", **chunk)) == []


@pytest.mark.parametrize(("value", "digits"), [("5", "5"), (5, "5"), ("12#", "12#"), ("a", "A")])
def test_keys(value: object, digits: str) -> None:
    assert started().receive(activity("dtmf", value=value)) == [DtmfIn(digits)]


@pytest.mark.parametrize(
    "ended", [activity("hangup"), message("session.end", reasonCode="x", reason="y")]
)
def test_the_caller_hangs_up(ended: str) -> None:
    channel = started()
    assert channel.receive(ended) == [Ended()]
    assert channel.receive(message("session.end")) == [], "told once"


def test_what_is_not_known_is_ignored() -> None:
    channel = started()
    assert channel.receive(activity("callConnected")) == []
    assert channel.receive(message("activities", activities=[{"type": "message"}])) == []
    assert channel.receive('{"type":"new","activities":7}') == []
    assert vaic().receive(activity("dtmf", value="1")) == []


@pytest.mark.parametrize(
    ("told", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ("{}", "protocol.shape", 1007),
        (json.dumps(INITIATE), "protocol.started_twice", 1002),
        (message("session.resume"), "protocol.order", 1002),
        (message("userStream.chunk"), "protocol.shape", 1007),
        (message("userStream.chunk", audioChunk="%"), "protocol.shape", 1007),
        (message("activities"), "protocol.shape", 1007),
        (activity("dtmf"), "protocol.dtmf", 1007),
        (activity("dtmf", value="x"), "protocol.dtmf", 1007),
    ],
)
def test_a_broken_peer_is_told_how(told: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        started().receive(told)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_sessions_without_a_name_or_a_beginning_are_refused() -> None:
    for told in (message("session.initiate", conversationId=""), '{"type":"session.resume"}'):
        with pytest.raises(ProtocolError, match="conversationId"):
            vaic().receive(told)
    with pytest.raises(ProtocolError, match="start without a session"):
        vaic().receive(activity("start"))


# ---- the agent


def test_an_utterance_is_a_stream_and_its_end_is_its_mark() -> None:
    channel = started()
    assert played(channel) == [
        {"type": "playStream.start", "streamId": "1", "mediaFormat": "raw/lpcm16"},
        {"type": "playStream.chunk", "streamId": "1", "audioChunk": "AQA="},
    ]
    assert [one["type"] for one in played(channel)] == ["playStream.chunk"]
    assert said(channel, SendMark("7.3")) == [{"type": "playStream.stop", "streamId": "1"}]
    assert played(channel)[0]["streamId"] == "2", "a new id for each"
    assert said(channel, SendMark("8.3"))
    assert channel.receive(activity("playFinished")) == [MarkReached("7.3")]
    assert channel.receive(activity("playFinished")) == [MarkReached("8.3")]
    assert channel.receive(activity("playFinished")) == []
    assert said(channel, SendMark("9.3")) == [], "nothing was sent that it could stand for"


def test_streams_keep_their_order_where_audio_is_gathered() -> None:
    channel = started()
    box = Outbox(channel, vaic().capabilities, LINEAR16_16K)
    sent = [json.loads(str(one))["type"] for one in box.audio(bytes(640), 1)]
    sent += [json.loads(str(one))["type"] for one in box.command(SendMark("1.1"))]
    assert sent == ["playStream.start", "playStream.chunk", "playStream.stop"]


def test_a_clear_closes_the_stream_and_aborts_what_plays() -> None:
    channel = started()
    played(channel)
    said(channel, SendMark("7.3"))
    played(channel)
    assert said(channel, Clear()) == [
        {"type": "playStream.stop", "streamId": "2"},
        event("abortPrompts"),
    ]
    assert channel.receive(activity("playFinished")) == [], "its mark is gone with it"
    assert said(channel, Clear()) == [event("abortPrompts")]


def test_keys_are_pressed_in_words() -> None:
    assert said(started(), SendDtmf("12#")) == [event("sendDtmf", {"dtmf": "12#"})]


def test_a_hang_up_leaves_the_data_first() -> None:
    channel = started()
    played(channel)
    assert said(channel, Hangup(EndReason.COMPLETED, {"params": {"intent": "billing"}})) == [
        {"type": "playStream.stop", "streamId": "1"},
        event("sendMetaData", value={"intent": "billing"}),
        event("hangup", {"hangupReason": "completed"}),
    ]
    assert said(vaic(), Hangup(EndReason.ERROR)) == [Close(1000, "error")]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("+15550123", {"transferTarget": "tel:+15550123"}),
        ("sip:desk@example.com", {"transferTarget": "sip:desk@example.com"}),
        ("", {}),
    ],
)
def test_a_transfer_carries_data_as_sip_headers(target: str, told: dict[str, str]) -> None:
    metadata = {"reason": "wants a person", "params": {"case": "4711\r\nEvil: 1"}}
    assert said(started(), Transfer(target, metadata)) == [
        event(
            "transfer",
            {
                "handoverReason": "wants a person",
                **told,
                "transferSipHeaders": [{"name": "X-case", "value": "4711Evil: 1"}],
            },
        )
    ]


def test_headers_that_a_hand_off_names_are_its_own() -> None:
    handoff = {"xHeaders": {"X-Queue": "gold", "level": 2}, "uuiHeaders": ["4a;encoding=hex"]}
    metadata = {"params": {"level": "1", "LIVE_AGENT_HANDOFF": handoff}}
    (transfer,) = started().command(Transfer("", metadata))
    told = json.loads(str(transfer))["activities"][0]["activityParams"]["transferSipHeaders"]
    headers = {one["name"]: one["value"] for one in told}
    assert (headers["X-Queue"], headers["X-level"]) == ("gold", "2")
    assert headers["User-to-User"] == "4a;encoding=hex"


def test_what_the_platform_does_not_know_is_not_sent() -> None:
    assert said(started(), AgentText("hi", 1)) == []


# ---- a platform that comes back


def test_a_session_goes_on_over_another_socket() -> None:
    channel = vaic()
    assert channel.receive(message("session.resume")) == [Rejoin("v1")]
    begun = Started("v1", in_format=MULAW_8K, out_format=MULAW_8K)
    assert said(channel, Rejoined(True, begun)) == [
        {"type": "session.accepted", "mediaFormat": "raw/mulaw"}
    ]
    assert played(channel)[0]["mediaFormat"] == "raw/mulaw"
    assert channel.receive(activity("dtmf", value="1")) == [DtmfIn("1")]
    assert vaic(resume_s=7).capabilities.resume_s == 7


def test_one_that_is_not_known_any_more_does_not() -> None:
    channel = vaic()
    channel.receive(message("session.resume"))
    error, close = said(channel, Rejoined(False))
    assert error["type"] == "session.error"
    assert close.code == 1000


def test_the_record() -> None:
    able = vaic().capabilities
    assert (able.marks, able.marks_on_clear) == (Marks.NATIVE, MarksOnClear.LOST)
    assert (able.dtmf_out, able.end_out, able.transfer) == (
        DtmfOut.NATIVE,
        EndOut.MESSAGE,
        TransferBy.MESSAGE,
    )


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(vaic, received)
    only_protocol_errors(started, received)
