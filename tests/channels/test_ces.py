"""The native dialect as a server, with the published protos as the oracle."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.cloud import ces_v1
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import (
    AgentPayload,
    AgentText,
    AgentToolCalls,
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    DtmfIn,
    Ended,
    EndReason,
    EventIn,
    GoAway,
    Hangup,
    SendMark,
    Started,
    TextIn,
    ToolResponsesIn,
    Transfer,
    TurnCompleted,
    UserTranscript,
    VariablesIn,
)
from gateway.channels.ces import CesChannel
from gateway.errors import ProtocolError

SESSION = "projects/p/locations/us/apps/a1/sessions/call-0001"
LINEAR_8K = {"audioEncoding": "LINEAR16", "sampleRateHertz": 8000}


def configured(**config: Any) -> CesChannel:
    channel = CesChannel()
    config = {"session": SESSION, "inputAudioConfig": LINEAR_8K} | config
    channel.receive(json.dumps({"config": config}))
    return channel


def send(channel: CesChannel, **realtime: Any) -> list[ChannelEvent]:
    return channel.receive(json.dumps({"realtimeInput": realtime}))


def proto(message: Any) -> Any:
    """The message as the published proto reads it; unknown or mistyped fields are errors."""
    assert isinstance(message, str)
    target = ces_v1.BidiSessionServerMessage()
    return ces_v1.BidiSessionServerMessage.wrap(json_format.Parse(message, target._pb))


# ---- config


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("rate_hz", [8000, 16000, 24000, 48000])
def test_every_encoding_and_rate_in_each_direction(encoding: Encoding, rate_hz: int) -> None:
    audio = {"audioEncoding": encoding.value, "sampleRateHertz": rate_hz}
    [event] = CesChannel().receive(
        json.dumps({"config": {"session": SESSION, "inputAudioConfig": audio}})
    )
    assert isinstance(event, Started)
    assert event.in_format == AudioFormat(encoding, rate_hz)
    assert event.out_format is None
    [event] = CesChannel().receive(
        json.dumps({"config": {"session": SESSION, "outputAudioConfig": audio}})
    )
    assert isinstance(event, Started)
    assert event.in_format is None
    assert event.out_format == AudioFormat(encoding, rate_hz)


def test_config_in_snake_case_with_numbers_as_proto_json_allows() -> None:
    config = {
        "session": SESSION,
        "input_audio_config": {"audio_encoding": 2, "sample_rate_hertz": "16000"},
        "outputAudioConfig": {"audioEncoding": "ALAW", "sampleRateHertz": 48000.0},
        "entry_agent": "x/agents/y",
        "time_zone": "Europe/Berlin",
        "unknown": [1],
    }
    [event] = CesChannel().receive(json.dumps({"config": config}))
    assert event == Started(
        call_id="call-0001",
        in_format=AudioFormat(Encoding.MULAW, 16000),
        out_format=AudioFormat(Encoding.ALAW, 48000),
        session=SESSION,
        config={"entryAgent": "x/agents/y", "timeZone": "Europe/Berlin"},
    )


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({}, "protocol.shape"),
        ({"session": 7}, "protocol.shape"),
        ({"session": "sessions/abc"}, "protocol.session"),
        ({"session": SESSION[:-9] + "ab"}, "protocol.session"),
        ({"inputAudioConfig": 3}, "protocol.shape"),
        ({"inputAudioConfig": {}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "sampleRateHertz": 11025}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "sampleRateHertz": True}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "sampleRateHertz": "8k"}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "audioEncoding": "OPUS"}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "audioEncoding": True}}, "protocol.format"),
        ({"inputAudioConfig": {**LINEAR_8K, "audioEncoding": 0}}, "protocol.format"),
        ({"deployment": {}}, "protocol.shape"),
        ({"historicalContexts": {}}, "protocol.shape"),
    ],
)
def test_a_wrong_config_is_an_invalid_argument(config: dict[str, Any], code: str) -> None:
    full = config if not config or "session" in config else {"session": SESSION, **config}
    channel = CesChannel()
    with pytest.raises(ProtocolError) as caught:
        channel.receive(json.dumps({"config": full}))
    assert caught.value.code == code
    [close] = channel.protocol_close(caught.value)
    assert isinstance(close, Close)
    assert close.code == 1007
    assert close.reason.startswith("generic::invalid_argument: ")


# ---- inputs


@pytest.mark.parametrize(
    "spelling",
    ["+/8A+w==", "-_8A-w==", "-_8A-w", "+/8A+w"],
)
def test_audio_in_either_base64_padded_or_not(spelling: str) -> None:
    assert send(configured(), audio=spelling) == [AudioIn(b"\xfb\xff\x00\xfb")]


def test_a_sample_cut_in_two_is_put_together_again() -> None:
    channel = configured()
    heard = b""
    for chunk in (b"\x01", b"\x02\x03\x04", b"\x05", b"", b"\x06\x07"):
        for event in send(channel, audio=base64.b64encode(chunk).decode()):
            assert isinstance(event, AudioIn)
            assert len(event.data) % 2 == 0
            heard += event.data
    assert heard == b"\x01\x02\x03\x04\x05\x06"


def test_companded_audio_may_have_any_length() -> None:
    mulaw = {"audioEncoding": "MULAW", "sampleRateHertz": 8000}
    assert send(configured(inputAudioConfig=mulaw), audio="/w==") == [AudioIn(b"\xff")]


def test_an_adapter_tells_by_an_event_that_its_caller_hung_up() -> None:
    channel = configured()
    hung_up = Ended(EndReason.REMOTE_HANGUP)
    assert send(channel, event={"event": "sys.remote-call-disconnected"}) == [hung_up]


def test_each_kind_of_input() -> None:
    channel = configured()
    assert send(channel, text="hi") == [TextIn("hi")]
    assert send(channel, text="", willContinue=True) == [TextIn("", True)]
    assert channel.receive('{"realtime_input":{"text":"a","will_continue":true}}') == [
        TextIn("a", True)
    ]
    assert send(channel, dtmf="12#a") == [DtmfIn("12#A")]
    assert send(channel, dtmf="") == []
    assert send(channel, event={"event": "session_start"}) == [EventIn("session_start")]
    assert send(channel, variables={"a": {"b": 1}}) == [VariablesIn({"a": {"b": 1}})]
    assert send(channel, text="x", audio=None) == [TextIn("x")]
    answer = {"id": "1", "display_name": "t", "response": {"output": 3}, "odd": 1}
    assert send(channel, toolResponses={"tool_responses": [answer]}) == [
        ToolResponsesIn([{"id": "1", "displayName": "t", "response": {"output": 3}}])
    ]
    assert channel.receive(b'{"realtimeInput":{"text":"binary"}}') == [TextIn("binary")]


@pytest.mark.parametrize(
    ("realtime", "code", "close_code"),
    [
        ({}, "protocol.shape", 1007),
        ({"willContinue": True}, "protocol.shape", 1007),
        ({"text": "a", "dtmf": "1"}, "protocol.shape", 1007),
        ({"text": 5}, "protocol.shape", 1007),
        ({"text": "a", "willContinue": "yes"}, "protocol.shape", 1007),
        ({"audio": "a$b="}, "protocol.base64", 1007),
        ({"audio": "é"}, "protocol.base64", 1007),
        ({"audio": 7}, "protocol.shape", 1007),
        ({"audio": base64.b64encode(bytes(160002)).decode()}, "protocol.too_much_audio", 1009),
        ({"dtmf": "12x"}, "protocol.dtmf", 1007),
        ({"dtmf": "1" * 129}, "protocol.dtmf", 1007),
        ({"event": "session start"}, "protocol.shape", 1007),
        ({"event": {"name": "session start"}}, "protocol.shape", 1007),
        ({"variables": []}, "protocol.shape", 1007),
        ({"toolResponses": {}}, "protocol.shape", 1007),
        ({"toolResponses": {"toolResponses": [1]}}, "protocol.shape", 1007),
        ({"image": {"mimeType": "image/png"}}, "protocol.unsupported", 1003),
        ({"blob": {}}, "protocol.unsupported", 1003),
    ],
)
def test_wrong_inputs(realtime: dict[str, Any], code: str, close_code: int) -> None:
    channel = configured()
    with pytest.raises(ProtocolError) as caught:
        send(channel, **realtime)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)
    [close] = channel.protocol_close(caught.value)
    assert isinstance(close, Close)
    assert (close.code, len(close.reason.encode()) <= 123) == (close_code, True)
    assert close.reason.startswith("generic::")


def test_order_and_envelope() -> None:
    for message, code in (
        ('{"realtimeInput":{"text":"hi"}}', "protocol.order"),
        ("{}", "protocol.shape"),
        ('{"config":{},"realtimeInput":{}}', "protocol.shape"),
        ('{"config":[]}', "protocol.shape"),
        ("[]", "protocol.shape"),
        ("", "protocol.json"),
        (b"\xff\xfe", "protocol.json"),
    ):
        with pytest.raises(ProtocolError) as caught:
            CesChannel().receive(message)
        assert caught.value.code == code
    with pytest.raises(ProtocolError) as caught:
        configured().receive(json.dumps({"config": {"session": SESSION}}))
    assert caught.value.code == "protocol.started_twice"
    with pytest.raises(ProtocolError) as caught:
        send(configured(inputAudioConfig=None), audio="AAA=")
    assert caught.value.code == "protocol.audio"


# ---- outputs


def test_agent_outputs_parse_with_the_published_protos() -> None:
    channel = configured()

    def out(command: ChannelCommand) -> Any:
        [message] = channel.command(command)
        return proto(message)

    assert out(AgentText("Hé", 2)).session_output.text == "Hé"
    assert out(AgentText("x", 2)).session_output.turn_index == 2
    payload = out(AgentPayload({"chips": [{"a": 1.5}], "n": None}, 3)).session_output
    assert payload.turn_index == 3
    assert payload.payload["chips"][0]["a"] == 1.5
    assert out(TurnCompleted(4)).session_output.turn_completed
    assert out(UserTranscript("i lost")).recognition_result.transcript == "i lost"
    assert out(Clear()).interruption_signal.barge_in
    assert not out(Clear(barge_in=False)).interruption_signal.barge_in
    assert "interruption_signal" in out(Clear(barge_in=False))
    assert "go_away" in out(GoAway())
    calls = [
        {
            "id": "c1",
            "display_name": "ask",
            "args": {"a": 1},
            "toolset_tool": {"toolset": "t", "tool_id": "x"},
            "internal": True,
        }
    ]
    call = out(AgentToolCalls(calls, 5)).session_output.tool_calls.tool_calls[0]
    assert (call.id, call.toolset_tool.tool_id) == ("c1", "x")
    audio = proto(channel.audio(b"\x00\xff\x10", 6)).session_output
    assert (audio.audio, audio.turn_index) == (b"\x00\xff\x10", 6)
    assert channel.command(SendMark("1")) == []


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (Hangup(EndReason.COMPLETED, {"reason": "done", "params": {"q": "x"}}), 1000),
        (Hangup(EndReason.SHUTDOWN), 1001),
        (Hangup(EndReason.LIMIT), 1000),
        (Transfer("+1", {"session_escalated": True}), 1000),
    ],
)
def test_the_end_is_told_with_its_metadata_and_then_closed(
    command: Hangup | Transfer, code: int
) -> None:
    end, close = configured().command(command)
    assert json_format.MessageToDict(proto(end).end_session._pb) == (
        {"metadata": dict(command.metadata)} if command.metadata else {}
    )
    assert isinstance(close, Close)
    assert close.code == code


def test_a_failed_session_closes_as_internal_and_a_gone_client_plainly() -> None:
    channel = configured()
    [close] = channel.command(Hangup(EndReason.ERROR))
    assert isinstance(close, Close)
    assert close.code == 1011
    [close] = channel.command(Hangup(EndReason.REMOTE_HANGUP))
    assert isinstance(close, Close)
    assert close.code == 1000
    [close] = channel.protocol_close(ValueError("secret"))
    assert isinstance(close, Close)
    assert close == Close(1011, "generic::internal: the session failed")


# ---- anything at all

NAMES = st.sampled_from(
    [
        "config",
        "realtimeInput",
        "realtime_input",
        "session",
        "inputAudioConfig",
        "audioEncoding",
        "sampleRateHertz",
        "audio",
        "text",
        "dtmf",
        "event",
        "variables",
        "toolResponses",
        "willContinue",
        "image",
        "entryAgent",
        "id",
        "toolsetTool",
        "response",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([SESSION, "MULAW", 8000, "AAAA"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=15,
)


@settings(max_examples=60)
@given(st.lists(JSON, max_size=4))
def test_only_protocol_errors_escape_on_any_json(bodies: list[Any]) -> None:
    for channel in (CesChannel(), configured()):
        for body in bodies:
            for message in (body, {"realtimeInput": body}, {"config": body}):
                try:
                    channel.receive(json.dumps(message))
                except ProtocolError as error:
                    channel.protocol_close(error)


@given(st.text() | st.binary())
def test_only_protocol_errors_escape_on_any_bytes(message: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        CesChannel().receive(message)
