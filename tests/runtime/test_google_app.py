"""An app's export beside Google's service, which answers: what of it counts, and in which mode."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ConfigError
from gateway.server.compose import running
from tests.agent.made import make_app
from tests.runtime.ces_service import APP, CesService, ces_service, sound
from tests.runtime.test_google_calls import MORE, WORD, part, phone

TICK = "<context>no user activity detected for 1 seconds.</context>"
QUIET_CALLER = """
variables: {customer_id: "4711", stranger: "x"}
caller:
  - wait: {heard: "welcome", timeout: 20s}
  - silence: 2s
  - hangup: true
expect:
  - ended: remote_hangup
"""


def export(folder: Path, **app: Any) -> Path:
    described = {
        "name": APP,
        "languageSettings": {"defaultLanguageCode": "de-DE"},
        "variableDeclarations": [{"name": "customer_id", "schema": {"type": "STRING"}}],
        "audioProcessingConfig": {"inactivityTimeout": "1s"},
        **app,
    }
    return make_app(folder / "export", app=described)


def beside(app: Path) -> dict[str, Any]:
    return {**MORE, "app": str(app)}


async def answered(folder: Path, modality: str) -> list[dict[str, Any]]:
    """What a call by an export's side gives the service, without its audio."""

    async def play(service: CesService) -> list[dict[str, Any]]:
        connection = await service.next()
        await connection.until(lambda: bool(connection.given("event")))
        await connection.say(1, text="Welcome.")
        if modality == "audio":
            await connection.say(1, audio=sound(WORD))
        await connection.say(1, turnCompleted=True)
        if modality == "text":
            await connection.until(lambda: bool(connection.given("text")))
            await connection.say(2, turnCompleted=True)
        await part(connection)
        return [item for item in connection.inputs if "audio" not in item]

    async with (
        ces_service(folder, more=beside(export(folder)), runtime={"modality": modality}) as service,
        running(service.settings) as front,
    ):
        played = asyncio.create_task(play(service))
        await phone(service, front, QUIET_CALLER)
        return await played


async def test_where_the_gateway_speaks_the_exports_silence_counts(tmp_path: Path) -> None:
    given = await answered(tmp_path, "text")
    assert {"text": TICK} in given


async def test_where_the_service_speaks_its_own_silence_counts(tmp_path: Path) -> None:
    given = await answered(tmp_path, "audio")
    assert not [item for item in given if "text" in item]
    # Only what the export declares goes up.
    assert given[0] == {"variables": {"customer_id": "4711"}}


async def test_the_export_of_another_app_is_refused_at_the_start(tmp_path: Path) -> None:
    app = export(tmp_path, name="projects/ours/locations/eu/apps/other")
    async with ces_service(tmp_path, more=beside(app)) as service:
        with pytest.raises(ConfigError) as caught:
            async with running(service.settings):
                pass
    assert caught.value.message.startswith("runtime.google.app: the local app is ")
    assert "--app" in str(caught.value.hint)
