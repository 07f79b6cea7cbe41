"""A session variable names the language; the runtime says when it changes, before it speaks on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config import Settings
from tests.agent.talk import talk

FILES = {
    "app.yaml": """
displayName: X
rootAgent: Main
languageSettings: {defaultLanguageCode: en-US}
variableDeclarations:
- {name: language, schema: {type: STRING, default: en-US}}
""",
    "agents/Main/Main.yaml": "displayName: Main\n",
    "scripted_model.yaml": 'rules:\n- when: {user: ".*"}\n  do: [{say: Well.}]\n',
}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


WELL = {"text": "Well."}


def changed(language: str) -> dict[str, Any]:
    return {"payload": {"sessionLanguage": language}}


async def test_a_change_is_told_once_and_before_the_next_words(app: Path) -> None:
    async with talk(app) as client:
        assert await client.say("hello") == [WELL]
        await client.send(variables={"language": "de-DE"})
        assert await client.say("hello") == [changed("de-DE"), WELL]
        assert await client.say("hello") == [WELL]
        await client.send(variables={"language": "en-US"})
        assert await client.say("hello") == [changed("en-US"), WELL]


@pytest.mark.parametrize("value", ["German", "", 7, None, "de DE"])
async def test_what_is_no_language_code_changes_nothing(app: Path, value: object) -> None:
    async with talk(app) as client:
        await client.send(variables={"language": value})
        assert await client.say("hello") == [WELL]


async def test_the_operator_names_the_variable(app: Path) -> None:
    for name, told in (("spoken", []), ("language", [changed("de-DE")])):
        settings = Settings.model_validate({"call": {"language_variable": name}})
        async with talk(app, settings) as client:
            await client.send(variables={"language": "de-DE"})
            assert await client.say("hello") == [*told, WELL]
