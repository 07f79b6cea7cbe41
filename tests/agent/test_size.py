"""What app code gives away has bounds: the model learns of it, the caller hears the fallback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.calls import MAX_BATCH
from gateway.agent.conversation import MAX_AT_ONCE
from gateway.agent.size import MAX_CHARS, MAX_PARTS, TooLarge, check_size
from gateway.agent.turn import MAX_PAYLOAD_CHARS, MAX_TEXT_CHARS, clean_json
from gateway.config import CallSettings
from tests.agent.made import make_app, python_tool
from tests.agent.talk import talk, texts

FALLBACK = CallSettings().fallback_message
AGAIN = """
  - when: {user: again}
    do: [{say: Still here.}]
"""
BIG_TOOL = f"""
rules:
  - when: {{tool: big, result: runtime.too_large}}
    do: [{{say: Too much.}}]
  - when: {{tool: big}}
    do: [{{say: Got it.}}]
{AGAIN}
  - when: {{user: .}}
    do: [{{call: {{tool: big, args: {{}}}}}}]
"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(key) + _characters(item) for key, item in value.items())
    return sum(map(_characters, value)) if isinstance(value, list) else 0


@given(JSON)
def test_what_has_more_text_than_allowed_never_passes(value: Any) -> None:
    with pytest.raises(TooLarge):
        check_size(value, "it", _characters(value) - 1)


@given(JSON)
def test_a_small_value_passes(value: Any) -> None:
    check_size(value, "it")


def test_a_small_value_that_would_be_written_out_many_times_does_not_pass() -> None:
    value: list[Any] = ["word"]
    for _ in range(40):
        value = [value, value]
    with pytest.raises(TooLarge):
        clean_json(value)


def test_what_holds_itself_is_written_once() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    assert clean_json(value) == "{'self': {...}}"


def test_an_object_whose_text_is_too_long_does_not_pass() -> None:
    class Wordy:
        def __str__(self) -> str:
            return "x" * (MAX_CHARS + 1)

    with pytest.raises(TooLarge):
        clean_json(Wordy())


@pytest.mark.parametrize(("chars", "answer"), [(1000, "Got it."), (MAX_CHARS, "Too much.")])
async def test_an_answer_that_is_too_large_is_an_error_to_the_model(
    tmp_path: Path, chars: int, answer: str
) -> None:
    code = f"def big():\n    return {{'value': 'x' * {chars}}}\n"
    app = make_app(
        tmp_path,
        script=BIG_TOOL,
        agents={"Main": {"tools": ["big"]}},
        files=python_tool("big", code),
    )
    async with talk(app) as client:
        assert texts(await client.say("go")) == [answer]
        assert texts(await client.say("again")) == ["Still here."]


CALLBACK = """
def before_model_callback(callback_context, llm_request):
    text = " ".join(part.text or "" for part in callback_context.get_last_user_input())
    if text == "text":
        return LlmResponse.from_parts([Part.from_text("word " * TEXT)])
    if text == "parts":
        return LlmResponse.from_parts([Part.from_text("word ")] * PARTS)
    if text == "arguments":
        big = Part.from_function_call("phone", {"colour": "x" * PAYLOAD})
        return LlmResponse.from_parts([big])
    if text == "payload":
        return LlmResponse.from_parts([Part.from_json('{"a": "' + "x" * PAYLOAD + '"}')])
    if text == "calls" and not callback_context.state.get("asked"):
        callback_context.state["asked"] = True
        call = Part.from_function_call
        return LlmResponse.from_parts([call("count", {"number": n}) for n in range(CALLS)])
"""
CALLBACK = (
    CALLBACK.replace("TEXT", str(MAX_TEXT_CHARS))
    .replace("PAYLOAD", str(MAX_PAYLOAD_CHARS))
    .replace("PARTS", str(MAX_PARTS + 1))
)
COUNT = """
import threading, time
here, most, lock = set(), [0], threading.Lock()
def count(number: int):
    with lock:
        here.add(number)
        most[0] = max(most[0], len(here))
    time.sleep(0.01)
    with lock:
        here.discard(number)
    context.state["most"] = most[0]
    context.state["done"] = context.state.get("done", 0) + 1
    return number
"""


def _bold_app(folder: Path, calls: int = 0) -> Path:
    agent = {
        "instruction": "{{most}}",
        "tools": ["count", "phone"],
        "beforeModelCallbacks": [{"pythonCode": "callback.py"}],
    }
    script = f"rules:{AGAIN}default: [{{say: '{{most}} {{done}}'}}]"
    callback = CALLBACK.replace("CALLS", str(calls))
    client = {"displayName": "phone", "clientFunction": {"name": "phone"}}
    files = {
        "callback.py": callback,
        "tools/phone/phone.yaml": client,
        **python_tool("count", COUNT),
    }
    return make_app(folder, script=script, agents={"Main": agent}, files=files)


@pytest.mark.parametrize("what", ["text", "payload", "parts", "arguments"])
async def test_for_what_is_too_large_the_caller_hears_the_fallback_and_the_session_goes_on(
    tmp_path: Path, what: str
) -> None:
    async with talk(_bold_app(tmp_path)) as client:
        assert texts(await client.say(what)) == [FALLBACK]
        assert texts(await client.say("again")) == ["Still here."]


async def test_many_calls_of_one_response_take_turns_and_all_too_many_are_refused(
    tmp_path: Path,
) -> None:
    async with talk(_bold_app(tmp_path, calls=MAX_BATCH + 10)) as client:
        (said,) = texts(await client.say("calls"))
    most, done = map(int, said.split())
    assert 1 < most <= MAX_AT_ONCE
    assert done == MAX_BATCH
