"""`$context.…`: what OpenAPI and MCP tools may take from the session, past the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.agent.variables import text_of
from gateway.errors import AppError

PREFIX = "$context."
PLAIN = ("project_id", "project_number", "location", "app_id", "session_id", "turn_index")
"""Names of values that are no variables."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The built-in values of one session at one moment; `variables` are the live ones."""

    project_id: str = ""
    project_number: int = 0
    location: str = ""
    app_id: str = ""
    session_id: str = ""
    turn_index: int = 0
    variables: Mapping[str, Any] = field(default_factory=dict)

    def value(self, reference: str) -> Any:
        """What `$context.…` stands for; None for a variable that is not set.

        Raises AppError app.context for a name that does not exist.
        """
        path = reference.removeprefix(PREFIX)
        if path in PLAIN:
            return getattr(self, path)
        if path == "variables":
            return dict(self.variables)
        if path.startswith("variables."):
            return self.variables.get(path.removeprefix("variables."))
        raise AppError(
            "app.context",
            f"there is no session value {reference!r}",
            where=reference,
            hint="Known: " + ", ".join(PREFIX + n for n in (*PLAIN, "variables.NAME")) + ".",
        )

    def text(self, value: str) -> str:
        """A header or token as given, or the value that its `$context.…` stands for."""
        return text_of(self.value(value)) if value.startswith(PREFIX) else value
