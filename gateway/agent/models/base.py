"""What answers for an agent: the interface of a language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.agent.platform import LlmRequest, Part


@dataclass(frozen=True, slots=True)
class ModelStep:
    """One question to the model. `memory` is the model's own, kept for the session."""

    request: LlmRequest
    agent: str
    variables: Mapping[str, Any]
    memory: dict[str, Any]


class Model(Protocol):
    """A language model. Safe for many sessions at once."""

    name: str

    def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """The parts of the response, as they come. Raises RuntimeFailure where it cannot."""
        ...
