"""`proactiveExecutionEnabled`: an after-model callback that also sees what is said in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agent.made import make_app, python_tool
from tests.agent.talk import talk, texts

SCRIPT = """
rules:
  - when: {tool: note}
    do: [{say: "Done."}]
  - do: [{say: "One."}, {say: "Two."}, {call: note}]
"""
NOTE = python_tool("note", "def note():\n    return {}\n")


def _app(folder: Path, *codes: tuple[str, bool]) -> Path:
    entries: list[dict[str, Any]] = []
    files: dict[str, Any] = dict(NOTE)
    for number, (body, proactive) in enumerate(codes):
        path = f"agents/Main/{number}.py"
        files[path] = f"def after_model_callback(callback_context, llm_response):\n{body}\n"
        entries.append({"pythonCode": path, "proactiveExecutionEnabled": proactive})
    agents = {"Main": {"tools": ["note"], "afterModelCallbacks": entries}}
    return make_app(folder, script=SCRIPT, agents=agents, files=files)


SEEN = """
    words = [part.text or "call" for part in llm_response.content.parts]
    seen = callback_context.state.setdefault("seen", [])
    seen.append([bool(llm_response.partial), *words])
    if words == ["Done."]:
        return LlmResponse.from_parts([Part.from_text(json.dumps(seen))])
"""
LOUDER = """
    if llm_response.partial:
        said = llm_response.content.parts[0].text
        return LlmResponse.from_parts([Part.from_text(said.upper())])
"""


async def test_it_sees_each_part_as_it_comes_and_then_the_whole(tmp_path: Path) -> None:
    whole = [False, "One.", "Two.", "call"]
    in_between = [[True, "One."], [True, "Two."]]
    for proactive, seen in (
        (True, [*in_between, whole, [True, "Done."]]),
        (False, [whole, [False, "Done."]]),
    ):
        async with talk(_app(tmp_path, (SEEN, proactive))) as client:
            said = texts(await client.say("go"))
        assert said[:2] == ["One.", "Two."]
        assert json.loads(said[2]) == seen


async def test_what_it_returns_stands_for_that_part(tmp_path: Path) -> None:
    async with talk(_app(tmp_path, (LOUDER, True))) as client:
        assert texts(await client.say("go")) == ["ONE.", "TWO.", "DONE."]


async def test_callbacks_without_it_run_on_the_whole_only_and_cannot_unsay(tmp_path: Path) -> None:
    late = """
    assert not llm_response.partial
    return LlmResponse.from_parts([Part.from_text("Never."), *llm_response.content.parts[1:]])
"""
    async with talk(_app(tmp_path, (LOUDER, True), (late, False))) as client:
        assert texts(await client.say("go")) == ["ONE.", "TWO.", "DONE."]
