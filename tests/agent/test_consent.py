"""Sensitive tools: the question, the answer by voice or key, what the model learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway import bidi
from gateway.agent.consent import Answer, question, read_answer
from gateway.agent.platform import Part
from gateway.config import Settings
from tests.agent.made import make_app, python_tool
from tests.agent.talk import Talk, talk, texts


@pytest.mark.parametrize(
    ("words", "language", "answer"),
    [
        ("yes", "en-US", Answer.YES),
        ("Yeah, go ahead please.", "en-US", Answer.YES),
        ("of course", "en-GB", Answer.YES),
        ("No thanks.", "en-US", Answer.NO),
        ("Don’t do that", "en-US", Answer.NO),
        ("of course not", "en-US", Answer.UNCLEAR),
        ("yes, no, I am not sure", "en-US", Answer.UNCLEAR),
        ("yesterday I said nothing", "en-US", Answer.UNCLEAR),
        ("what is the weather", "en-US", Answer.UNCLEAR),
        ("", "en-US", Answer.UNCLEAR),
        ("ja gerne", "de-DE", Answer.YES),
        ("nein danke", "de-DE", Answer.NO),
        ("auf keinen Fall", "de-DE", Answer.UNCLEAR),
        ("oui", "fr-FR", Answer.YES),
        ("não", "pt-BR", Answer.NO),
        ("sí, claro", "es-ES", Answer.YES),
        ("yes", "xx", Answer.YES),
    ],
)
def test_what_the_caller_meant(words: str, language: str, answer: Answer) -> None:
    assert read_answer([Part(text=words)], language) is answer


@pytest.mark.parametrize(
    ("keys", "answer"),
    [("1", Answer.YES), ("2", Answer.NO), ("1#", Answer.YES), ("7", Answer.UNCLEAR)],
)
def test_a_key_is_an_answer(keys: str, answer: Answer) -> None:
    assert read_answer([Part(text=bidi.dtmf_text(keys))], "en-US") is answer


def test_platform_texts_are_not_the_callers_words() -> None:
    parts = [
        Part(text=bidi.interrupted_text("please say yes or no")),
        Part(text="no"),
    ]
    assert read_answer(parts, "en-US") is Answer.NO


def test_the_question_is_the_operators_own_where_there_is_one() -> None:
    questions = {"en": "Sure about {tool}?", "pay:de": "Wirklich zahlen?", "cancel": "Cancel it?"}
    assert question(questions, "send_mail", "en-US") == "Sure about send mail?"
    assert question(questions, "pay", "de-DE") == "Wirklich zahlen?"
    assert question(questions, "cancel", "en-US") == "Cancel it?"
    assert question({}, "pay", "de-AT").startswith("Soll ich das ausführen: pay?")
    assert question({}, "pay", "xx-XX", "en-US").startswith("Shall I go on with this: pay?")


# ---- in a conversation

CODE = """
def cancel_order(order: str):
    set_variable("runs", get_variable("runs", 0) + 1)
    return {"cancelled": order, "runs": get_variable("runs")}
"""
SCRIPT = """
rules:
  - when: {user: cancel}
    do:
      - say: Very well.
      - call: {tool: cancel_order, args: {order: A7}}
      - say: Never said.
  - when: {tool: cancel_order, result: CANCELLED_BY_USER}
    do: [{say: Then not.}]
  - when: {tool: cancel_order, result: error}
    do: [{say: "{result.error}"}]
  - when: {tool: cancel_order}
    do: [{say: "Done {result.runs}: {result.cancelled}."}]
"""
SETTINGS = Settings.model_validate({"tools": {"consent": ["cancel_*"]}})


def _app(folder: Path, **more: Any) -> Path:
    return make_app(
        folder,
        script=SCRIPT,
        agents={"Main": {"tools": ["cancel_order"], **more.pop("agent", {})}},
        files=python_tool("cancel_order", CODE, **more),
    )


async def _asked(client: Talk, words: str = "cancel it") -> None:
    said, asked = await client.say(words)
    assert said == {"text": "Very well."}
    customized = asked["payload"]["customizedResponse"]
    assert customized["content"].startswith("Shall I go on with this: cancel order?")
    assert customized["enableDtmf"] is True
    assert customized["disableBargeIn"] is False


async def test_the_tool_runs_once_the_caller_has_said_yes(tmp_path: Path) -> None:
    async with talk(_app(tmp_path), SETTINGS) as client:
        await _asked(client)
        assert texts(await client.say("yes please")) == ["Done 1: A7."]


async def test_a_key_is_as_good_as_a_word(tmp_path: Path) -> None:
    async with talk(_app(tmp_path), SETTINGS) as client:
        await _asked(client)
        await client.send(dtmf="1")
        assert texts(await client.turn()) == ["Done 1: A7."]
        await _asked(client, "cancel it again")
        await client.send(dtmf="2")
        assert texts(await client.turn()) == ["Then not."]


async def test_the_model_learns_of_a_no(tmp_path: Path) -> None:
    async with talk(_app(tmp_path), SETTINGS) as client:
        await _asked(client)
        assert texts(await client.say("no")) == ["Then not."]
        await _asked(client, "cancel it after all")
        assert texts(await client.say("yes")) == ["Done 1: A7."]


async def test_an_unclear_answer_is_asked_about_again_and_then_counts_as_no(
    tmp_path: Path,
) -> None:
    async with talk(_app(tmp_path), SETTINGS) as client:
        await _asked(client)
        (again,) = await client.say("how is the weather")
        assert "customizedResponse" in again["payload"]
        silence = "<context>no user activity detected for 8 seconds.</context>"
        assert texts(await client.say(silence)) == ["Then not."]


@pytest.mark.parametrize("attempts", [1, 3])
async def test_the_question_is_asked_as_often_as_the_setting_says(
    tmp_path: Path, attempts: int
) -> None:
    tools = {"consent": ["cancel_*"], "consent_attempts": attempts}
    async with talk(_app(tmp_path), Settings.model_validate({"tools": tools})) as client:
        await _asked(client)
        for _ in range(attempts - 1):
            (again,) = await client.say("how is the weather")
            assert "customizedResponse" in again["payload"]
        assert texts(await client.say("how is the weather")) == ["Then not."]


async def test_a_callers_barge_in_into_the_question_is_an_answer(tmp_path: Path) -> None:
    async with talk(_app(tmp_path), SETTINGS) as client:
        await _asked(client)
        await client.send(text=bidi.interrupted_text("Shall I"), willContinue=True)
        await client.send(text="yes")
        assert texts(await client.turn()) == ["Done 1: A7."]


async def test_code_does_not_go_past_the_question(tmp_path: Path) -> None:
    script = {
        "rules": [
            {"when": {"tool": "wrapper"}, "do": [{"say": "{result.error}"}]},
            {"when": {"user": "."}, "do": [{"call": "wrapper"}]},
        ]
    }
    app = make_app(
        tmp_path,
        script=script,
        agents={"Main": {"tools": ["wrapper", "cancel_order"]}},
        files={
            **python_tool("cancel_order", CODE),
            **python_tool(
                "wrapper", "def wrapper():\n    return tools.cancel_order({'order': 'x'}).json()\n"
            ),
        },
    )
    async with talk(app, SETTINGS) as client:
        assert texts(await client.say("go")) == [
            "the tool 'cancel_order' needs the caller's consent: let the agent call it"
        ]


async def test_a_tool_that_is_not_listed_is_refused_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    async with talk(_app(tmp_path, agent={"tools": []}), SETTINGS) as client:
        assert texts(await client.say("cancel")) == [
            "Very well.",
            "Never said.",
            "the agent 'Main' does not list the tool 'cancel_order'",
        ]
