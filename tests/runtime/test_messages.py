"""The runtime language: inputs parse with the published protos, outputs are read tolerantly."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from google.cloud.ces_v1 import BidiSessionClientMessage
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from gateway.call.events import (
    InputType,
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.errors import RuntimeFailure
from gateway.runtime.messages import (
    RuntimeGoAway,
    RuntimeTranscript,
    outputs,
    realtime_input,
    session_config,
)

SESSION = "projects/p/locations/l/apps/a/sessions/call-0001"


def _parses(message: dict[str, Any]) -> None:
    json_format.ParseDict(message, BidiSessionClientMessage.pb()())


@pytest.mark.parametrize(
    "item",
    [
        ToRuntime(InputType.TEXT, text="hello"),
        ToRuntime(InputType.TEXT, text="", will_continue=True),
        ToRuntime(InputType.EVENT, text="session start"),
        ToRuntime(InputType.DTMF, text="1234#"),
        ToRuntime(InputType.VARIABLES, data={"customer": "4711", "deep": {"a": [1, None]}}),
        ToRuntime(InputType.AUDIO, audio=b"\xff\x7f"),
        ToRuntime(InputType.TOOL_RESPONSES, items=({"id": "1", "response": {"output": 3}},)),
    ],
    ids=lambda item: item.type.value,
)
def test_every_input_parses_with_the_published_protos(item: ToRuntime) -> None:
    _parses(realtime_input(item))


def test_the_configuration_parses_and_is_a_text_session_unless_audio_is_configured() -> None:
    agent = {"entryAgent": "projects/p/locations/l/apps/a/agents/x"}
    message = session_config(SESSION, agent)
    _parses(message)
    assert "inputAudioConfig" not in message["config"]
    audio = {"audioEncoding": "MULAW", "sampleRateHertz": 8000, "noiseSuppressionLevel": "high"}
    message = session_config(SESSION, {**agent, "inputAudioConfig": audio})
    _parses(message)
    assert message["config"]["inputAudioConfig"] == audio


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"sessionOutput": {"text": "Hi", "turnIndex": 2}}, [RuntimeText("Hi", 2)]),
        ({"session_output": {"text": "Hi", "turn_index": 2}}, [RuntimeText("Hi", 2)]),
        (
            {"sessionOutput": {"payload": {"a": 1}, "turnIndex": 1}},
            [RuntimePayload({"a": 1}, 1)],
        ),
        (
            {"sessionOutput": {"turnIndex": 3, "turnCompleted": True}},
            [RuntimeTurnCompleted(3)],
        ),
        (
            {"sessionOutput": {"text": "Bye", "turnIndex": 3, "turnCompleted": True}},
            [RuntimeText("Bye", 3), RuntimeTurnCompleted(3)],
        ),
        (
            {"sessionOutput": {"audio": base64.b64encode(b"\xff\xfe").decode(), "turnIndex": 1}},
            [RuntimeAudio(b"\xff\xfe", 1)],
        ),
        (
            {"sessionOutput": {"audio": "__79", "turnIndex": "1"}},
            [RuntimeAudio(b"\xff\xfe\xfd", 1)],
        ),
        (
            {"sessionOutput": {"audio": "//4", "turnIndex": 1.0}},
            [RuntimeAudio(b"\xff\xfe", 1)],
        ),
        (
            {"sessionOutput": {"toolCalls": {"toolCalls": [{"id": "1"}]}, "turnIndex": 1}},
            [RuntimeToolCalls([{"id": "1"}], 1)],
        ),
        (
            {"endSession": {"metadata": {"reason": "done"}}},
            [RuntimeEndSession({"reason": "done"})],
        ),
        ({"end_session": {}}, [RuntimeEndSession({})]),
        (
            {"sessionOutput": {"endSession": {"metadata": {"reason": "x"}}, "turnIndex": 1}},
            [RuntimeEndSession({"reason": "x"})],
        ),
        ({"interruptionSignal": {"bargeIn": True}}, [RuntimeInterruption(True)]),
        ({"interruption_signal": {}}, [RuntimeInterruption(False)]),
        ({"goAway": {}}, [RuntimeGoAway()]),
        ({"recognitionResult": {"transcript": "yes"}}, [RuntimeTranscript("yes")]),
        ({"recognitionResult": {"transcript": None}}, [RuntimeTranscript("")]),
        ({"recognitionResult": {"transcript": ["x"]}}, [RuntimeTranscript("")]),
        ({"sessionOutput": {"toolCalls": {"toolCalls": 5}}}, [RuntimeToolCalls([], 0)]),
        ({"sessionOutput": {"toolCalls": {"toolCalls": None}}}, [RuntimeToolCalls([], 0)]),
        ({"sessionOutput": {"text": "a", "turnIndex": 10**400}}, [RuntimeText("a", 0)]),
        ({"somethingNew": {}}, []),
        ({"sessionOutput": {"turnIndex": 1, "diagnosticInfo": {}}}, []),
        (
            {
                "sessionOutput": {
                    "turnIndex": 2,
                    "turnCompleted": True,
                    "diagnosticInfo": {"rootSpan": {"name": "LLM", "executionSteps": [1]}},
                    "context": [{"@type": "type.googleapis.com/x"}],
                }
            },
            [RuntimeTurnCompleted(2)],
        ),
        ({"sessionOutput": {"citations": {"citedChunks": [{"uri": "u"}]}, "turnIndex": 2}}, []),
        ({"sessionOutput": {"googleSearchSuggestions": {"htmls": ["x"]}, "turnIndex": 2}}, []),
    ],
)
def test_outputs_are_read_in_either_spelling_and_place(
    message: dict[str, Any], expected: list[Any]
) -> None:
    assert outputs(message) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["sessionOutput", "endSession", "goAway", "interruptionSignal", "recognitionResult"]
)
FIELDS = st.sampled_from(["text", "audio", "payload", "turnIndex", "turnCompleted", "toolCalls"])


@given(st.dictionaries(NAMES, JSON | st.dictionaries(FIELDS, JSON)))
def test_no_message_of_a_runtime_breaks_the_reader(message: dict[str, Any]) -> None:
    with contextlib.suppress(RuntimeFailure):
        outputs(message)
