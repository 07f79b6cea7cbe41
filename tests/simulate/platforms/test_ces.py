"""The session client: configures, kicks off, never stops sending, and drains before it leaves."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from google.cloud import ces_v1
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from gateway.audio.formats import MULAW_8K
from gateway.channels.base import AudioIn, DtmfIn, Ended, EventIn, Started, VariablesIn
from gateway.channels.ces import CesChannel
from gateway.errors import ProtocolError
from gateway.simulate.platforms import call_id
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.ces import CesPlatform

IDENTITY = Identity(call_id("ces", "test"), "+1", "+2", {"customer_id": "4711"})


def platform() -> CesPlatform:
    return CesPlatform(IDENTITY)


def output(**fields: Any) -> str:
    return json.dumps({"sessionOutput": fields})


def test_config_then_variables_then_the_kick_off() -> None:
    config, variables, event = (json.loads(message) for message in platform().open())
    audio = {"audioEncoding": "LINEAR16", "sampleRateHertz": 16000}
    assert config["config"]["session"].endswith(f"/sessions/{IDENTITY.call_id}")
    assert config["config"]["inputAudioConfig"] == config["config"]["outputAudioConfig"] == audio
    assert variables == {"realtimeInput": {"variables": {"customer_id": "4711"}}}
    assert event == {"realtimeInput": {"event": {"event": "session start"}}}


def test_every_message_parses_with_the_published_protos() -> None:
    ces = platform()
    messages = [
        *ces.open(),
        *ces.media(None),
        *ces.media(b"\x01\x00" * 320),
        *ces.digit("#"),
        *ces.hangup(),
    ]
    for message in messages:
        target = ces_v1.BidiSessionClientMessage()
        json_format.Parse(message, ces_v1.BidiSessionClientMessage.pb(target))


def test_audio_is_played_in_the_output_format() -> None:
    ces = CesPlatform(IDENTITY, MULAW_8K)
    ces.receive(output(audio=base64.b64encode(b"\x00" * 240).decode(), turnIndex=1))
    first, second = ces.play().pcm, ces.play().pcm
    assert len(first) == len(second) == 320
    assert set(first[:2]) != {0}
    assert set(second[-2:]) == {0}


def test_an_interruption_drops_what_is_buffered() -> None:
    ces = platform()
    ces.receive(output(audio=base64.b64encode(b"\x11" * 6400).decode(), turnIndex=1))
    ces.receive('{"interruptionSignal":{"bargeIn":true}}')
    assert set(ces.play().pcm) == {0}


def test_after_the_end_it_plays_the_rest_and_waits_half_a_second() -> None:
    ces = platform()
    ces.receive('{"endSession":{}}')
    ces.receive(output(audio=base64.b64encode(b"\x11" * 6400).decode(), turnIndex=1))
    frames = 0
    while not ces.finished:
        ces.play()
        frames += 1
    assert frames == 10 + 25


def test_the_end_is_found_in_either_place() -> None:
    ces = platform()
    ces.receive(output(endSession={"metadata": {}}, turnIndex=1))
    for _ in range(25):
        ces.play()
    assert ces.finished


@pytest.mark.parametrize(
    "message",
    [
        output(text="Hello.", turnIndex=1),
        output(payload={"chips": []}, turnIndex=1),
        '{"recognitionResult":{"transcript":"hi"}}',
        '{"goAway":{}}',
    ],
)
def test_what_makes_no_sound_is_taken_in_silence(message: str) -> None:
    ces = platform()
    assert ces.receive(message) == []
    assert ces.received_bytes == 0


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("{}", "fields"),
        ('{"hello":{}}', "fields"),
        ('{"sessionOutput":{},"goAway":{}}', "fields"),
        ('{"sessionOutput":1}', "not an object"),
        ('{"sessionOutput":{"audio":1}}', "not a string"),
        ('{"sessionOutput":{"audio":"?"}}', "base64"),
        ('{"sessionOutput":{"audio":"AAAA"}}', "within a sample"),
    ],
)
def test_it_objects_to_what_is_not_in_the_language(message: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        platform().receive(message)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_nothing_but_a_complaint_ever_escapes(message: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        platform().receive(message)


CALLS = output(
    turnIndex=1,
    toolCalls={
        "toolCalls": [
            {"id": "a", "tool": "projects/p/locations/l/apps/a/tools/show", "args": {"n": 1}},
            {"id": "b", "tool": "none", "displayName": "show", "args": {}},
            {"id": "c", "tool": "other"},
        ]
    },
)


def test_a_client_with_functions_answers_call_after_call() -> None:
    functions = {"show": [{"place": "here"}, {"place": "there"}]}
    ces = CesPlatform(replace(IDENTITY, functions=functions))
    for expected in (["here", "there"], ["there", "there"]):
        (message,) = ces.receive(CALLS)
        answers = json.loads(message)["realtimeInput"]["toolResponses"]["toolResponses"]
        assert [one["response"].get("place") for one in answers[:2]] == expected
        assert answers[2] == {
            "id": "c",
            "tool": "other",
            "response": {"error": "no client is there to run this function"},
        }
        target = ces_v1.BidiSessionClientMessage()
        json_format.Parse(message, ces_v1.BidiSessionClientMessage.pb(target))


def test_a_client_without_functions_answers_nothing() -> None:
    assert platform().receive(CALLS) == []


@pytest.mark.parametrize("calls", [[], {"toolCalls": "show"}, {"toolCalls": ["show"]}])
def test_calls_of_another_shape_are_objected_to(calls: Any) -> None:
    ces = CesPlatform(replace(IDENTITY, functions={}))
    with pytest.raises(ProtocolError, match="toolCalls"):
        ces.receive(output(turnIndex=1, toolCalls=calls))


def test_it_and_the_gateways_codec_understand_each_other() -> None:
    ces, channel = platform(), CesChannel()
    started, variables, event = (e for m in ces.open() for e in channel.receive(m))
    assert isinstance(started, Started)
    assert started.call_id == IDENTITY.call_id
    assert variables == VariablesIn({"customer_id": "4711"})
    assert event == EventIn("session start")
    (audio,) = channel.receive(ces.media(b"\x01\x02" * 320)[0])
    assert audio == AudioIn(b"\x01\x02" * 320)
    assert channel.receive(ces.digit("5")[0]) == [DtmfIn("5")]
    assert ces.receive(channel.audio(b"\x10" * 640, 1)) == []
    assert ces.play().pcm == b"\x10" * 640
    assert channel.receive(ces.hangup()[0]) == [Ended()]
