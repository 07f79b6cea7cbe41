"""A small app without problems, and what a check says once some of its files are different."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gateway.agent.app.check import Problem, Report, check_app

GOOD = {
    "app.yaml": """\
displayName: X
rootAgent: Main
variableDeclarations:
  - name: known
    schema: {type: STRING, default: ""}
""",
    "agents/Main/Main.yaml": """\
displayName: Main
instruction: agents/Main/instruction.txt
tools: [look_up, end_session]
beforeModelCallbacks:
  - pythonCode: agents/Main/cb.py
""",
    "agents/Main/instruction.txt": "Use {@TOOL: look_up}\nfor {known}.\n",
    "agents/Main/cb.py": "def before_model_callback(callback_context, llm_request):\n    pass\n",
    "tools/look_up/look_up.yaml": """\
displayName: look_up
pythonFunction:
  name: look_up
  pythonCode: tools/look_up/code.py
""",
    "tools/look_up/code.py": "def look_up(name: str) -> dict:\n    return {}\n",
}


def report(folder: Path, files: Mapping[str, str | bytes | None]) -> Report:
    """Check the app above with `files` in place of its own; None takes one away."""
    for name, text in {**GOOD, **files}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
    return check_app(folder)


def problems(folder: Path, files: Mapping[str, str | bytes | None]) -> list[Problem]:
    """The problems of that app; each says where it is and what to do."""
    found = list(report(folder, files).problems)
    for problem in found:
        assert problem.file
        assert problem.hint
    return found


def said(folder: Path, files: Mapping[str, str | bytes | None]) -> list[tuple[str, str]]:
    """Code and place of each problem."""
    return [(str(problem.code), problem.place) for problem in problems(folder, files)]
