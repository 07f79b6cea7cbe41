"""The classes of app code: keywords, factories and their exact results."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.agent import platform
from gateway.agent.platform import (
    Blob,
    CallbackContext,
    Content,
    Event,
    FunctionCall,
    FunctionResponse,
    GenerateContentConfig,
    LlmRequest,
    LlmResponse,
    Part,
    ToolContext,
)


def _json(part: Part) -> tuple[str | None, Any]:
    assert part.inline_data is not None
    assert part.inline_data.data is not None
    return part.inline_data.mime_type, json.loads(base64.b64decode(part.inline_data.data))


def test_every_class_takes_keywords_in_both_spellings() -> None:
    call = FunctionCall(name="a", args={"b": 1})
    assert Part(function_call=call) == Part.model_validate(
        {"functionCall": {"name": "a", "args": {"b": 1}}}
    )
    assert Content(parts=[Part(text="x")]).role is None
    response = LlmResponse(content=Content(parts=[Part(text="x")], role="model"), partial=True)
    assert response.partial
    assert LlmRequest(contents=[]).config is None
    assert FunctionResponse(id="1", name="a", response={}, will_continue=True).will_continue
    assert Event(author="user").is_user()
    assert ToolContext(function_call_id="1", state={"a": 1}).variables == {"a": 1}
    for name, cls in platform.INJECTED.items():
        assert cls.__name__ == name


def test_part_factories_give_what_the_platform_gives() -> None:
    assert Part.from_text("a").text == "a"
    assert Part.from_function_response("t", {"x": 1}).has_function_response("t")
    assert _json(Part.from_json(data='{"a": 1}')) == ("application/json", {"a": 1})
    assert _json(Part.from_audio("gs://b/o", cancellable=True)) == (
        "application/json+audio",
        {"audioUri": "gs://b/o", "cancellable": True, "interruptable": True},
    )
    assert _json(Part.from_customized_response(content="c", enable_dtmf=True)) == (
        "application/json+agentResponse",
        {
            "content": "c",
            "disableBargeIn": False,
            "enableDtmf": True,
            "dtmfFinishDigit": "#",
            "dtmfEndpointingTimeout": 3,
        },
    )
    transfer = Part.from_agent_transfer(agent="Billing").function_call
    assert transfer == FunctionCall(name="transfer_to_agent", args={"agent_name": "Billing"})
    end = Part.from_end_session(reason="r", escalated=True).function_call
    assert end == FunctionCall(name="end_session", args={"reason": "r", "session_escalated": True})
    inline = Part.from_inline_data(b"\0", "image/png").inline_data
    assert inline is not None
    assert (inline.raw_data, inline.mime_type) == (b"\0", "image/png")


def test_only_exact_names_match() -> None:
    part = Part.from_function_call("tool", {})
    assert part.has_function_call("tool")
    assert not part.has_function_call("too")
    assert not part.has_function_response("tool")


def test_what_a_part_says() -> None:
    assert Part(text="a").text_or_transcript() == "a"
    audio = '{"audioUri": "a.wav", "transcript": "said"}'
    assert Part.from_json(audio).text_or_transcript() == "said"
    assert Part.from_json("[1]").text_or_transcript() is None
    assert Part.from_json("{").text_or_transcript() is None
    assert Part.from_customized_response(content="c").text_or_transcript() == "c"
    assert Part.from_function_call("t").text_or_transcript() is None


def test_raw_data_encodes() -> None:
    blob = Blob(mime_type="audio/wav")
    blob.raw_data = b"abc"  # type: ignore[misc]
    assert blob.data == base64.b64encode(b"abc")
    assert blob.raw_data == b"abc"


def test_tools_can_be_hidden() -> None:
    config = GenerateContentConfig()
    config.hide_tool("a")
    config.hide_tool("b")
    assert config.excluded_tools == ["a", "b"]


def _event(author: str, *texts: str) -> Event:
    return Event(author=author, content=Content(parts=[Part(text=t) for t in texts]))


def test_the_last_blocks_are_unbroken_runs_in_order() -> None:
    events = [
        _event("user", "0"),
        _event("Main", "1"),
        _event("user", "2", "3"),
        _event("user", "4"),
        _event("Main", "5"),
        _event("Other", "6"),
    ]
    context = CallbackContext(events=events)
    assert [p.text for p in context.get_last_user_input()] == ["2", "3", "4"]
    assert [p.text for p in context.get_last_agent_output()] == ["5", "6"]
    assert CallbackContext().get_last_user_input() == []
    assert events[1].is_agent()
    assert events[1].is_agent("Main")
    assert not events[1].is_agent("Other")
    assert not events[0].is_agent()


def test_variables_are_one_live_dictionary() -> None:
    state = {"a": 1}
    context = CallbackContext(state=state)
    context.set_variable("b", 2)
    assert state == {"a": 1, "b": 2}
    assert context.get_variable("c", 3) == 3
    context.remove_variable("a")
    with pytest.raises(KeyError):
        context.remove_variable("a")
