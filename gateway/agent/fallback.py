"""`languageSettings.fallbackAction`: what follows where the language is none of the app's.

The language is the one that the session's language variable names: set by the platform, a client,
or app code that has noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.agent.languages import root

if TYPE_CHECKING:
    from gateway.agent.conversation import Conversation

ENDINGS: dict[str, dict[str, Any]] = {
    "escalate": {"reason": "unsupported language", "session_escalated": True},
    "exit": {"reason": "unsupported language"},
}
"""Metadata of the session's end, for the actions that end it; the others are names of tools."""


def due_action(conversation: Conversation) -> str:
    """What to do now, once for each language; empty: nothing."""
    settings = conversation.engine.app.definition.language_settings
    language = conversation.language
    known = (settings.default_language_code, *settings.supported_language_codes)
    if not settings.fallback_action or root(language) in {root(code) for code in known}:
        return ""
    if conversation.fell_back_for == language:
        return ""
    conversation.fell_back_for = language
    return settings.fallback_action.rsplit("/", 1)[-1]
