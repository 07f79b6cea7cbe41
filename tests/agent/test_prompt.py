"""What the model is told: instructions, examples, languages, the date, what was said before."""

from __future__ import annotations

import datetime
import json
import time
import zoneinfo
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.historical import read_history
from gateway.agent.platform import LlmRequest
from gateway.errors import ProtocolError
from tests.agent.made import make_app, python_tool
from tests.agent.talk import Talk, talk, texts

SPY = """
import json

def before_model_callback(callback_context, llm_request):
    words = callback_context.get_last_user_input()[-1].text or ""
    if words == "prompt":
        said = llm_request.config.system_instruction.parts[0].text
    elif words == "request":
        said = llm_request.model_dump_json()
    elif words == "events":
        events = callback_context.events
        said = json.dumps([[e.author, [p.text for p in e.parts()]] for e in events])
    elif words == "times":
        said = json.dumps([e.timestamp for e in callback_context.events])
    else:
        return None
    return LlmResponse.from_parts([Part.from_text(said)])
"""


def _app(folder: Path, **parts: Any) -> Path:
    agents = parts.pop("agents", {"Main": {}})
    root = next(iter(agents))
    agents[root]["beforeModelCallbacks"] = [{"pythonCode": "spy.py"}]
    files = {"spy.py": SPY, **parts.pop("files", {})}
    return make_app(folder, agents=agents, files=files, **parts)


async def _said(client: Talk, words: str) -> str:
    (text,) = texts(await client.say(words))
    return text


EXAMPLE = {
    "displayName": "paying",
    "entryAgent": "Main",
    "messages": [
        {"role": "user", "chunks": [{"text": "I want to pay {amount}."}]},
        {
            "role": "Main",
            "chunks": [
                {"toolCall": {"tool": "pay", "args": {"sum": 3}}},
                {"text": "Paid."},
                {"agentTransfer": {"targetAgent": "Other"}},
            ],
        },
    ],
}


async def test_examples_of_the_agent_are_in_its_prompt(tmp_path: Path) -> None:
    other = {**EXAMPLE, "displayName": "elsewhere", "entryAgent": "Other"}
    app = _app(
        tmp_path,
        agents={"Main": {"instruction": "Be kind to {{who}}."}, "Other": {}},
        app={"variableDeclarations": [{"name": "who", "schema": {"default": "Ann"}}]},
        files={
            "examples/paying/paying.yaml": EXAMPLE,
            "examples/elsewhere/elsewhere.yaml": other,
            "examples/old/old.yaml": {**EXAMPLE, "displayName": "old", "invalid": True},
        },
    )
    async with talk(app) as client:
        assert await _said(client, "prompt") == (
            "Be kind to Ann.\n\n"
            "<examples>\n"
            '<example name="paying">\n'
            "user: I want to pay {amount}.\n"
            'Main: [calls pay with {"sum": 3}]\n'
            "Main: Paid.\n"
            "Main: [hands over to Other]\n"
            "</example>\n"
            "</examples>"
        )


async def test_several_languages_are_told(tmp_path: Path) -> None:
    languages = {
        "defaultLanguageCode": "de-DE",
        "supportedLanguageCodes": ["fr-FR"],
        "enableMultilingualSupport": True,
    }
    async with talk(_app(tmp_path, app={"languageSettings": languages})) as client:
        prompt = await _said(client, "prompt")
        assert "de-DE, fr-FR" in prompt
        assert "any other case answer in de-DE" in prompt


@pytest.mark.parametrize("given", [None, "Pacific/Kiritimati"])
async def test_today_is_known_in_the_time_zone_of_the_session(
    tmp_path: Path, given: str | None
) -> None:
    app = _app(
        tmp_path,
        app={"timeZoneSettings": {"timeZone": "Pacific/Pago_Pago"}},
        agents={"Main": {"instruction": "Today is {{current_date}}."}},
    )
    config = {"timeZone": given} if given else {}
    async with talk(app, **config) as client:
        zone = zoneinfo.ZoneInfo(given or "Pacific/Pago_Pago")
        before = datetime.datetime.now(zone)
        prompt = await _said(client, "prompt")
        after = datetime.datetime.now(zone)
        assert prompt in {f"Today is {t:%A}, {t.day} {t:%B} {t.year}." for t in (before, after)}


async def test_a_time_zone_that_does_not_exist_closes_with_its_reason(tmp_path: Path) -> None:
    async with talk(_app(tmp_path), timeZone="Moon/Crater") as client:
        code, reason = await client.closed()
        assert (code, "time zone" in reason) == (1007, True)


async def test_events_bear_the_unix_time(tmp_path: Path) -> None:
    before_s = int(time.time())
    async with talk(_app(tmp_path)) as client:
        times_s = json.loads(await _said(client, "times"))
    assert times_s
    assert all(before_s <= one <= time.time() for one in times_s)


async def test_the_model_learns_of_tools_by_hints_and_docstrings(tmp_path: Path) -> None:
    code = '''
from typing import Literal, Optional

def pay(sum: float, to: str, items: list[str], kind: Literal["now", "later"] = "now",
        note: Optional[str] = "") -> dict:
    """Pays somebody.

    Args:
        sum: How much, in euros,
            before tax.
        to (str): Who gets it.

    Returns:
        The receipt.
    """
'''
    app = _app(
        tmp_path,
        agents={
            "Main": {"tools": ["pay", "end_session"], "childAgents": ["Other"]},
            "Other": {"description": "Knows more."},
        },
        files=python_tool("pay", code),
    )
    async with talk(app) as client:
        request = LlmRequest.model_validate_json(await _said(client, "request"))
    assert request.config is not None
    (tools,) = request.config.tools or ()
    declared = {one.name: one for one in tools.function_declarations}
    assert list(declared) == ["pay", "end_session", "transfer_to_agent"]
    assert declared["pay"].description == "Pays somebody."
    assert declared["pay"].parameters == {
        "type": "OBJECT",
        "properties": {
            "sum": {"type": "NUMBER", "description": "How much, in euros, before tax."},
            "to": {"type": "STRING", "description": "Who gets it."},
            "items": {"type": "ARRAY", "items": {"type": "STRING"}},
            "kind": {"type": "STRING", "enum": ["now", "later"]},
            "note": {"type": "STRING", "nullable": True},
        },
        "required": ["sum", "to", "items"],
    }
    assert "Other: Knows more." in str(declared["transfer_to_agent"].description)


# ---- what was said before


HISTORY = [
    {"role": "user", "chunks": [{"text": "I want to pay"}]},
    {
        "role": "Main",
        "chunks": [
            {"toolCall": {"id": "c-1", "tool": "projects/p/apps/a/tools/pay", "args": {"sum": 3}}},
            {"toolResponse": {"id": "c-1", "tool": "pay", "response": {"output": {"ok": True}}}},
            {"transcript": "It is paid."},
            {"payload": {"card": 1}},
            {"updatedVariables": {"who": "Bob", "undeclared": 1}},
        ],
    },
    {"role": "Main", "chunks": [{"agentTransfer": {"targetAgent": "agents/Other"}}]},
    {"role": "Other", "chunks": [{"text": "Other here."}]},
]


async def test_a_session_goes_on_from_what_was_said_before(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        agents={"Main": {}, "Other": {"beforeModelCallbacks": [{"pythonCode": "spy.py"}]}},
        script={"default": [{"say": "{who}"}]},
        app={"variableDeclarations": [{"name": "who", "schema": {"type": "STRING"}}]},
    )
    async with talk(app, historicalContexts=HISTORY) as client:
        assert await _said(client, "events") == (
            '[["user", ["I want to pay"]], ["Main", [null]], ["Main", [null]],'
            ' ["Main", ["It is paid.", null]], ["Other", ["Other here."]], ["user", ["events"]]]'
        )
        request = LlmRequest.model_validate_json(await _said(client, "request"))
        assert await _said(client, "hello") == "Bob"
    call, answer = request.contents[1].parts[0], request.contents[2].parts[0]
    assert call.function_call is not None
    assert (call.function_call.name, call.function_call.args) == ("pay", {"sum": 3})
    assert answer.function_response is not None
    assert answer.function_response.id == "c-1"
    assert answer.function_response.response == {"result": {"ok": True}}
    # The payload stays with the client; its neighbour does not.
    assert [part.text for part in request.contents[3].parts] == ["It is paid."]


@pytest.mark.parametrize(
    "messages",
    [
        {},
        [1],
        [{"chunks": 1}],
        [{"chunks": [{"image": {"data": "?", "mimeType": "image/png"}}]}],
        [{"chunks": []}] * 1001,
    ],
)
def test_a_history_of_a_wrong_shape_is_refused(messages: Any) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_history(messages)
    assert caught.value.where == "config.historicalContexts"
