"""`errorHandlingSettings`: what the caller hears and what follows when a turn fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gateway import bidi
from gateway.agent.app.models import App
from gateway.agent.languages import by_language
from gateway.agent.platform import Part
from gateway.agent.turn import Turn
from gateway.errors import AppError

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation


class Strategy(StrEnum):
    """What the app wants."""

    NONE = "NONE"
    FALLBACK = "FALLBACK_RESPONSE"
    END = "END_SESSION"


@dataclass(frozen=True, slots=True)
class FailureHandling:
    """`messages` by language. `max_attempts`: failures in a row before the end; 0: no bound."""

    strategy: Strategy = Strategy.NONE
    messages: Mapping[str, str] = field(default_factory=dict)
    max_attempts: int = 0
    escalate: bool = False

    def ends(self, failures: int) -> bool:
        """Whether the session ends at the so-manieth failure in a row."""
        if self.strategy is Strategy.END:
            return True
        bounded = self.strategy is Strategy.FALLBACK and self.max_attempts > 0
        return bounded and failures > self.max_attempts

    def metadata(self) -> dict[str, Any]:
        """`endSession.metadata` of such an end."""
        metadata: dict[str, Any] = {"reason": "agent failure"}
        if self.escalate:
            metadata["session_escalated"] = True
        return metadata


def read_failure_handling(app: App) -> FailureHandling:
    """The app's settings. Raises AppError app.error_handling."""
    value = bidi.get(app.definition.model_extra or {}, "errorHandlingSettings")
    if not isinstance(value, Mapping):
        return FailureHandling()
    where = "app:errorHandlingSettings"
    name = str(bidi.get(value, "errorHandlingStrategy") or "NONE")
    try:
        strategy = Strategy.NONE if name.endswith("UNSPECIFIED") else Strategy(name)
    except ValueError:
        raise AppError(
            "app.error_handling",
            f"{name!r} is no strategy",
            where=f"{where}.errorHandlingStrategy",
            hint=", ".join(Strategy),
        ) from None
    fallback = bidi.get(value, "fallbackResponseConfig")
    fallback = fallback if isinstance(fallback, Mapping) else {}
    messages = bidi.get(fallback, "customFallbackMessages")
    attempts = bidi.get(fallback, "maxFallbackAttempts")
    end = bidi.get(value, "endSessionConfig")
    return FailureHandling(
        strategy=strategy,
        messages={
            str(code): str(text)
            for code, text in (messages.items() if isinstance(messages, Mapping) else ())
            if text
        },
        max_attempts=attempts if isinstance(attempts, int) and attempts > 0 else 0,
        escalate=isinstance(end, Mapping) and bidi.get(end, "escalateSession") is True,
    )


def fallback_text(conversation: Conversation) -> str:
    """The apology in the session's language; the operator's where the app has none."""
    engine = conversation.engine
    messages = engine.failures.messages
    return (
        by_language(messages, conversation.language, engine.app.language)
        or engine.settings.call.fallback_message
    )


async def apologise(conversation: Conversation, turn: Turn) -> None:
    """Never dead air: a turn that failed says so unless it has said a whole thing already.

    Raises TurnCancelled.
    """
    if turn.end_metadata is not None:
        return
    conversation.failures += 1
    if turn.broken_off or not turn.said_anything:
        part = Part(text=fallback_text(conversation))
        conversation.add_model([part])
        await turn.emit(part)
    handling = conversation.engine.failures
    if handling.ends(conversation.failures):
        turn.end_metadata = handling.metadata()
