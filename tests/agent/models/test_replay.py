"""The replay model: what a golden expects of the agent is what the agent does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.agent.app import read_app
from gateway.agent.models.choose import choose_model, provider_of
from gateway.agent.models.replay import GREETING, UNKNOWN
from gateway.config import Settings
from gateway.errors import AppError
from tests.agent.made import made_app, make_app, python_tool
from tests.agent.talk import Talk, talk, texts

START = {"event": {"event": "session start"}}
FIND = """
def find(number: str) -> dict:
    \"\"\"Finds a parcel.\"\"\"
    set_variable("found", number)
    return {"day": "Monday"}
"""


def says(text: str) -> dict[str, Any]:
    return {"expectation": {"agentResponse": {"chunks": [{"text": text}]}}}


def user(text: str) -> dict[str, Any]:
    return {"userInput": {"text": text}}


def golden(*turns: list[dict[str, Any]]) -> dict[str, Any]:
    return {"golden": {"turns": [{"steps": list(steps)} for steps in turns]}}


def calls(tool: str, **args: Any) -> dict[str, Any]:
    return {"expectation": {"toolCall": {"tool": tool, "args": args}}}


PARCEL = golden(
    [{"userInput": START}, says("Parcel line.")],
    [
        user("Where is parcel 4711?"),
        says("One moment."),
        calls("find", number="4711"),
        {"expectation": {"mockToolResponse": {"tool": "find", "response": {"day": "Friday"}}}},
        says("It comes on Monday."),
    ],
    [user("Yes please"), says("It is noted.")],
    [
        user("<context>no user activity detected for 8 seconds.</context>"),
        says("Are you there?"),
    ],
    [{"userInput": {"dtmf": "12"}}, says("Twelve.")],
    [user("Goodbye"), says("Bye."), calls("end_session", reason="done")],
)
PERSON = golden(
    [
        user("I want a person"),
        {"expectation": {"agentTransfer": {"targetAgent": "Care_Team"}}},
        says("Care here."),
    ],
    [user("Yes please"), says("Care notes it.")],
    [
        user("Back to the parcel"),
        {"expectation": {"agentTransfer": {"targetAgent": "Main"}}},
        calls("find", number="1"),
        calls("find", number="2"),
        says("Both are found."),
    ],
    [
        user("A card"),
        {"expectation": {"agentResponse": {"chunks": [{"payload": {"card": 1}}]}}},
    ],
)


def make(folder: Path, **evaluations: Any) -> Path:
    goldens = evaluations or {"Parcel": PARCEL, "Person": PERSON}
    app = make_app(
        folder,
        app={"variableDeclarations": [{"name": "found", "schema": {"type": "STRING"}}]},
        agents={
            "Main": {"tools": ["find", "end_session"], "childAgents": ["Care Team"]},
            "Care Team": {},
        },
        files={
            **python_tool("find", FIND),
            **{f"evaluations/{name}/{name}.yaml": body for name, body in goldens.items()},
        },
    )
    (app / "scripted_model.yaml").unlink()
    return app


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return make(tmp_path)


async def said(session: Talk, text: str) -> list[str]:
    return texts(await session.say(text))


async def test_a_golden_is_followed_turn_by_turn(app: Path) -> None:
    async with talk(app) as session:
        assert texts(await session.event("session start")) == ["Parcel line."]
        assert await said(session, "where is parcel 4711") == ["One moment.", "It comes on Monday."]
        assert await said(session, "Goodbye!") == ["Bye."]
        assert (await session.receive())["endSession"]["metadata"] == {"reason": "done"}


async def test_the_tools_are_the_apps_own(app: Path) -> None:
    settings = Settings.model_validate({"runtime": {"diagnostics": True}})
    async with talk(app, settings) as session:
        await session.send(text="Where is parcel 4711?")
        while "diagnosticInfo" not in (output := (await session.receive())["sessionOutput"]):
            pass
    chunks = [c for message in output["diagnosticInfo"]["messages"] for c in message["chunks"]]
    [answer] = [chunk["toolResponse"] for chunk in chunks if "toolResponse" in chunk]
    assert answer["response"] == {"result": {"day": "Monday"}}
    assert {"updatedVariables": {"found": "4711"}} in chunks


async def test_what_fits_best_is_answered_and_the_golden_at_hand_is_preferred(app: Path) -> None:
    async with talk(app) as session:
        assert await said(session, "I want to speak to a person") == ["Care here."]
        assert await said(session, "Yes, please.") == ["Care notes it."]
        assert (await said(session, "Where's parcel 4711?"))[-1] == "It comes on Monday."
        assert await said(session, "Yes, please.") == ["It is noted."]


async def test_what_follows_a_hand_over_is_the_other_agents(app: Path) -> None:
    settings = Settings.model_validate({"runtime": {"diagnostics": True}})
    async with talk(app, settings) as session:
        await session.say("I want a person")
        await session.send(text="Back to the parcel")
        while "diagnosticInfo" not in (output := (await session.receive())["sessionOutput"]):
            pass
    done = [
        (message["role"], chunk["toolCall"]["args"])
        for message in output["diagnosticInfo"]["messages"]
        for chunk in message["chunks"]
        if "toolCall" in chunk
    ]
    assert done == [
        ("Care Team", {"agent_name": "Main"}),
        ("Main", {"number": "1"}),
        ("Main", {"number": "2"}),
    ]


async def test_payloads_are_sent_as_they_are(app: Path) -> None:
    async with talk(app) as session:
        assert await session.say("a card") == [{"payload": {"card": 1}}]


async def test_keys_and_silences_are_matched_as_such(app: Path) -> None:
    async with talk(app) as session:
        await session.send(dtmf="12")
        assert texts(await session.turn()) == ["Twelve."]
        silence = "<context>no user activity detected for 20 seconds.</context>"
        assert await said(session, silence) == ["Are you there?"]
        await session.send(dtmf="13")
        assert texts(await session.turn()) == [UNKNOWN]


async def test_what_no_golden_knows_is_said_so(tmp_path: Path) -> None:
    async with talk(make(tmp_path, Person=PERSON)) as session:
        assert texts(await session.event("session start")) == [GREETING]
        assert await said(session, "What is the meaning of life?") == [UNKNOWN]
        assert (
            await said(session, "<context>no user activity detected for 8 seconds.</context>") == []
        )


def test_an_app_with_goldens_and_no_model_replays_them(app: Path) -> None:
    assert provider_of(read_app(app), Settings()) == "replay"
    assert choose_model(read_app(app), Settings()).name == "replay"


def test_without_goldens_replay_is_refused(tmp_path: Path) -> None:
    settings = Settings.model_validate({"model": {"provider": "replay"}})
    with pytest.raises(AppError) as caught:
        choose_model(made_app(tmp_path), settings)
    assert caught.value.code == "model.replay"
    assert caught.value.hint
