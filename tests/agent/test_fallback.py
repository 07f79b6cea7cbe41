"""`languageSettings.fallbackAction`: what follows where the language is none of the app's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.agent.app import read_app
from gateway.agent.app.check import check_app
from tests.agent.made import make_app, python_tool
from tests.agent.talk import talk, texts

SCRIPT = """
rules:
  - when: {tool: translator}
    do: [{say: "Found {result.language}."}]
default: [{say: "Yes?"}]
"""


def _app(folder: Path, action: str) -> Path:
    code = "def translator():\n    return {'language': get_variable('language')}\n"
    return make_app(
        folder,
        script=SCRIPT,
        app={
            "languageSettings": {
                "defaultLanguageCode": "en-US",
                "supportedLanguageCodes": ["de-DE"],
                "fallbackAction": action,
            },
            "variableDeclarations": [
                {"name": "language", "schema": {"type": "STRING", "default": "en-US"}}
            ],
        },
        agents={"Main": {"tools": ["translator"]}},
        files=python_tool("translator", code),
    )


@pytest.mark.parametrize("language", ["en-US", "en-GB", "de", "de-AT", ""])
async def test_languages_of_the_app_and_their_regions_need_no_fallback(
    tmp_path: Path, language: str
) -> None:
    async with talk(_app(tmp_path, "escalate")) as client:
        await client.send(variables={"language": language})
        assert texts(await client.say("hello")) == ["Yes?"]


@pytest.mark.parametrize(
    ("action", "metadata"),
    [
        ("escalate", {"reason": "unsupported language", "session_escalated": True}),
        ("exit", {"reason": "unsupported language"}),
    ],
)
async def test_another_language_ends_the_session(
    tmp_path: Path, action: str, metadata: dict[str, Any]
) -> None:
    async with talk(_app(tmp_path, action)) as client:
        assert texts(await client.say("hello")) == ["Yes?"]
        await client.send(variables={"language": "fr-FR"})
        assert texts(await client.say("bonjour")) == []
        assert await client.receive() == {"endSession": {"metadata": metadata}}


@pytest.mark.parametrize("prefix", ["", "projects/p/locations/l/apps/a/tools/"])
async def test_another_language_calls_a_tool_once_and_the_agent_goes_on(
    tmp_path: Path, prefix: str
) -> None:
    async with talk(_app(tmp_path, f"{prefix}translator")) as client:
        await client.send(variables={"language": "fr-FR"})
        assert texts(await client.say("bonjour")) == ["Found fr-FR."]
        assert texts(await client.say("encore")) == ["Yes?"]
        await client.send(variables={"language": "it-IT"})
        assert texts(await client.say("ciao")) == ["Found it-IT."]


def test_an_action_that_does_not_exist_is_found_by_the_check(tmp_path: Path) -> None:
    for action, codes in (("escalate", []), ("translator", []), ("hang up", ["app.reference"])):
        app = _app(tmp_path / action, action)
        assert read_app(app).definition.language_settings.fallback_action == action
        found = [p for p in check_app(app).problems if p.code == "app.reference"]
        assert [problem.code for problem in found] == codes
