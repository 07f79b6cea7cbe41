"""What a case is: a problem with the smallest app that has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.agent.app.check import Code, Severity
from tests.agent.app.check.app import GOOD

APP, MAIN, TEXT, CALLBACK = (
    "app.yaml",
    "agents/Main/Main.yaml",
    "agents/Main/instruction.txt",
    ("agents/Main/cb.py"),
)
TOOL, TOOL_CODE = "tools/look_up/look_up.yaml", "tools/look_up/code.py"
ERROR, WARNING = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True)
class Case:
    """`place` is the problem's `file:line`."""

    code: Code
    place: str
    files: dict[str, str | bytes | None]
    severity: Severity = ERROR
    says: str = ""
    alone: bool = field(default=True)
    """False where the same fault is other problems too."""


def app(text: str) -> dict[str, str | bytes | None]:
    return {APP: GOOD[APP] + text}


def main(text: str) -> dict[str, str | bytes | None]:
    return {MAIN: GOOD[MAIN] + text}


def callback(text: str) -> dict[str, str | bytes | None]:
    return {CALLBACK: GOOD[CALLBACK] + text}


def other(text: str = "", name: str = "B") -> str:
    return f"displayName: {name}\n{text}"
