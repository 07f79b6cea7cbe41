"""A remote model behind the running product: runtime process, speech, a caller on a real socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.config import Settings
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call
from tests.agent.made import make_app
from tests.agent.models.chat import DONE, ended, said
from tests.agent.models.service import WAIT_S, service

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

KEY = "key-of-the-operator"
SCENARIO = """
caller:
  - wait: {heard: "the first sentence is here", timeout: 30s}
  - hangup: true
expect:
  - heard: "the first sentence is here"
  - not_heard: second
  - ended: remote_hangup
"""
CODE = """
import os


def before_model_callback(callback_context, llm_request):
    found = [name for name, value in os.environ.items() if "key-of-the" in value]
    with open("/proc/self/environ", encoding="utf-8", errors="replace") as file:
        found += ["environ"] * ("key-of-the" in file.read())
    callback_context.set_variable("found", ", ".join(found) or "nothing")
"""


async def test_the_caller_hears_the_first_sentence_before_the_model_has_sent_the_second(
    tmp_path: Path,
) -> None:
    app = make_app(
        tmp_path / "app",
        app={"variableDeclarations": [{"name": "found", "schema": {"type": "STRING"}}]},
        agents={
            "Main": {
                "instruction": "main.txt",
                "beforeModelCallbacks": [{"pythonCode": "look.py"}],
            }
        },
        files={"main.txt": "Found: {{found}}.", "look.py": CODE},
    )
    async with service() as server:
        never = asyncio.Event()
        server.answer(said("The first"), said(" sentence is here."), never, said(" The second."))
        server.answer(said("Goodbye."), ended(), DONE)
        settings = Settings.model_validate(
            {
                "app": str(app),
                "server": {"port": 0},
                "speech": {"tts": "nanotts", "stt": "none", "vad": "energy", "turn": "silence"},
                "model": {
                    "provider": "openai",
                    "url": f"{server.url}/v1",
                    "name": "qwen",
                    "api_key": KEY,
                },
            }
        )
        async with running(settings) as gateway:
            scenario = parse_scenario(SCENARIO, Path("here.yaml"))
            result = await call(Access(gateway.url), scenario, "twilio", settings)
            async with asyncio.timeout(WAIT_S):
                await server.gone.wait()
        assert [str(verdict) for verdict in result.verdicts if not verdict.ok] == []
        first = server.requests[0]
        assert first.headers["authorization"] == f"Bearer {KEY}"
        assert first.body["messages"][0] == {"role": "system", "content": "Found: nothing."}
