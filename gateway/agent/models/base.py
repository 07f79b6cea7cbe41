"""What answers for an agent: the interface of a language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from gateway.agent.platform import LlmRequest, Part


class Purpose(Enum):
    """What an answer is for."""

    ANSWER = auto()
    """The agent's next step."""
    GUARDRAIL = auto()
    """A verdict on a text: the words OK or TRIGGER."""
    INSTEAD = auto()
    """Words in place of what a guardrail stopped."""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """One question to the model. `memory` is the model's own, kept for the session."""

    request: LlmRequest
    agent: str
    variables: Mapping[str, Any]
    memory: dict[str, Any]
    purpose: Purpose = Purpose.ANSWER
    about: str = ""
    """GUARDRAIL: the guardrail's name."""
    text: str = ""
    """GUARDRAIL: the text to be judged."""
    safety: tuple[Mapping[str, Any], ...] = ()
    """`safetySettings` (category, threshold), for models that filter by themselves."""
    temperature: float | None = None
    """None: the model's own."""


class Fragment(Part):
    """A piece of text that the next one goes on with: together they are one part."""


def joined(parts: Iterable[Part]) -> list[Part]:
    """The parts with each run of fragments made one part."""
    result: list[Part] = []
    goes_on = False
    for part in parts:
        fragment = isinstance(part, Fragment)
        if fragment and goes_on:
            last = result[-1]
            last.text = (last.text or "") + (part.text or "")
            last.kept = part.kept or last.kept
        else:
            result.append(Part(text=part.text, kept=part.kept) if fragment else part)
        goes_on = fragment
    return result


class Model(Protocol):
    """A language model. Safe for many sessions at once."""

    name: str

    def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """The parts of the response, as they come. Raises RuntimeFailure where it cannot."""
        ...

    async def aclose(self) -> None:
        """Give connections back; the last call."""
        ...
