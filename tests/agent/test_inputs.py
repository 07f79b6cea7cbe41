"""Messages of the client: what is taken, and that nothing else gets through."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent import inputs
from gateway.agent.inputs import SetVariables, ToolAnswers, UserInput, read_config, read_input
from gateway.errors import ProtocolError
from tests.agent.talk import SESSION


def _input(**body: Any) -> inputs.Input:
    return read_input({"realtimeInput": body})


def _texts(given_input: inputs.Input) -> list[str | None]:
    assert isinstance(given_input, UserInput)
    return [part.text for part in given_input.parts]


def test_both_spellings_are_read() -> None:
    for key, flag in (("realtimeInput", "willContinue"), ("realtime_input", "will_continue")):
        read = read_input({key: {"text": "a", flag: True}})
        assert read == UserInput(read.parts, complete=False)  # type: ignore[union-attr]


def test_events_and_digits_read_as_the_platform_writes_them() -> None:
    assert _texts(_input(event={"event": "session_start"})) == ["<event>session start</event>"]
    assert _texts(_input(event={"event": "order ready"})) == ["<event>order ready</event>"]
    assert _texts(_input(dtmf="12#")) == ["<context>user pressed 12# on keypad.</context>"]


def test_an_empty_text_is_no_part() -> None:
    assert _input(text="") == UserInput([])


def test_the_other_kinds() -> None:
    assert _input(variables={"a": 1}) == SetVariables({"a": 1})
    assert _input(toolResponses={"tool_responses": [{}]}) == ToolAnswers([{}])
    blob = _input(blob={"mimeType": "text/plain", "data": "aGk"})
    assert isinstance(blob, UserInput)
    assert blob.parts[0].inline_data is not None
    assert blob.parts[0].inline_data.raw_data == b"hi"
    hangup = _input(event={"event": "sys.remote-call-disconnected"})
    assert isinstance(hangup, UserInput)
    assert hangup.hangup


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"realtimeInput": None},
        {"config": {}, "realtimeInput": {"text": "a"}},
        {"realtimeInput": {}},
        {"realtimeInput": {"text": "a", "event": {"event": "b"}}},
        {"realtimeInput": {"text": 3}},
        {"realtimeInput": {"event": "session start"}},
        {"realtimeInput": {"event": {"name": "session start"}}},
        {"realtimeInput": {"dtmf": "12x"}},
        {"realtimeInput": {"dtmf": ""}},
        {"realtimeInput": {"dtmf": "1" * 257}},
        {"realtimeInput": {"audio": "AAAA"}},
        {"realtimeInput": {"variables": []}},
        {"realtimeInput": {"image": {"data": "?", "mimeType": "image/png"}}},
        {"realtimeInput": {"image": {"mimeType": "image/png"}}},
        {"realtimeInput": {"toolResponses": {"toolResponses": 1}}},
        {"realtimeInput": {"text": "a", "willContinue": "yes"}},
        {"realtimeInput": {"text": "a" * 100_001}},
    ],
)
def test_a_wrong_input_is_named(message: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_input(message)
    assert caught.value.code == "protocol.message"
    assert caught.value.where


def test_config_gives_the_session_its_names() -> None:
    config = read_config(
        {
            "config": {
                "session": SESSION,
                "entry_agent": "projects/p/locations/l/apps/a/agents/Billing",
                "historicalContexts": [
                    {"role": "user", "chunks": [{"text": "hi"}, {"payload": {}}]},
                    {"role": "Main", "chunks": [{"transcript": "hello"}]},
                    {"role": "user", "chunks": [{"payload": {}}]},
                ],
            }
        }
    )
    assert config.identity.session == "session-1"
    assert config.identity.app_name == "projects/p/locations/l/apps/a"
    assert config.entry_agent == "Billing"
    assert [past.role for past in config.history] == ["user", "Main", "user"]
    assert [past.parts[0].text for past in config.history] == ["hi", "hello", None]


_keys = st.text(max_size=3) | st.sampled_from(
    [
        "config",
        "session",
        "entryAgent",
        "historicalContexts",
        "chunks",
        "role",
        "realtimeInput",
        "realtime_input",
        "text",
        "dtmf",
        "event",
        "variables",
        "toolResponses",
        "blob",
        "data",
        "mimeType",
        "willContinue",
    ]
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_keys, _json, max_size=4))
def test_any_message_is_read_or_refused_as_a_fault_of_the_client(message: dict[str, Any]) -> None:
    for body in (message, {"config": {"session": SESSION, **message}}):
        with contextlib.suppress(ProtocolError):
            read_config(body)
    for body in (message, {"realtimeInput": message}):
        with contextlib.suppress(ProtocolError):
            read_input(body)
