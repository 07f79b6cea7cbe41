"""What the caller hears of a failed turn, and when the session ends over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.agent.failures import read_failure_handling
from gateway.config import Settings
from gateway.errors import AppError
from tests.agent.made import made_app, make_app
from tests.agent.talk import talk, texts

SCRIPT = {
    "rules": [
        {"when": {"user": "good"}, "do": [{"say": "Good."}]},
        {"when": {"user": "half"}, "do": [{"say": "I look."}, {"call": "end_session"}]},
    ],
    "default": [{"call": "end_session"}],
}
"""The agent does not list end_session: each such turn runs into its bound of steps."""
FALLBACK = {
    "errorHandlingStrategy": "FALLBACK_RESPONSE",
    "fallbackResponseConfig": {
        "customFallbackMessages": {"en": "Say again?", "de-DE": "Noch einmal, bitte."},
        "maxFallbackAttempts": 2,
    },
}
SETTINGS = Settings.model_validate({"runtime": {"max_steps": 2}})


def _app(folder: Path, handling: dict[str, Any] | None, **more: Any) -> Path:
    settings = {"errorHandlingSettings": handling} if handling else {}
    return make_app(folder, script=SCRIPT, app={**settings, **more})


async def test_without_settings_the_operators_message_is_said(tmp_path: Path) -> None:
    async with talk(_app(tmp_path, None), SETTINGS) as client:
        for _ in range(3):
            assert texts(await client.say("fail")) == [SETTINGS.call.fallback_message]


async def test_the_apps_message_is_said_so_often_and_then_the_session_ends(
    tmp_path: Path,
) -> None:
    async with talk(_app(tmp_path, FALLBACK), SETTINGS) as client:
        assert texts(await client.say("fail")) == ["Say again?"]
        assert texts(await client.say("fail")) == ["Say again?"]
        # A turn that works starts the count anew.
        assert texts(await client.say("good")) == ["Good."]
        for _ in range(3):
            assert texts(await client.say("fail")) == ["Say again?"]
        assert await client.receive() == {"endSession": {"metadata": {"reason": "agent failure"}}}


async def test_the_message_is_in_the_language_of_the_conversation(tmp_path: Path) -> None:
    languages = {
        "languageSettings": {"defaultLanguageCode": "de-AT"},
        "variableDeclarations": [{"name": "language", "schema": {"type": "STRING"}}],
    }
    async with talk(_app(tmp_path, FALLBACK, **languages), SETTINGS) as client:
        assert texts(await client.say("fail")) == ["Noch einmal, bitte."]
        await client.send(variables={"language": "en-GB"})
        outputs = await client.say("fail")
        assert texts(outputs) == ["Say again?"]


@pytest.mark.parametrize("escalate", [True, False])
async def test_a_failure_can_end_the_session_at_once(tmp_path: Path, escalate: bool) -> None:
    handling = {
        "errorHandlingStrategy": "END_SESSION",
        "endSessionConfig": {"escalateSession": escalate},
    }
    async with talk(_app(tmp_path, handling), SETTINGS) as client:
        said = texts(await client.say("half"))
        assert said == ["I look.", SETTINGS.call.fallback_message]
        metadata = (await client.receive())["endSession"]["metadata"]
        assert metadata.get("session_escalated", False) is escalate


def test_an_unknown_strategy_is_told(tmp_path: Path) -> None:
    app = made_app(tmp_path, app={"errorHandlingSettings": {"errorHandlingStrategy": "SHRUG"}})
    with pytest.raises(AppError) as caught:
        read_failure_handling(app)
    assert caught.value.code == "app.error_handling"
