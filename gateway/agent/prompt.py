"""What the model is told before the conversation: instructions, languages, examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway import bidi
from gateway.agent.app.models import Agent, App

_LENGTHS = {
    "CONCISE": "Keep every answer short: one or two sentences, nothing that was not asked for.",
    "CHATTY": "Take your time: answer warmly and in full sentences, with a little more than asked.",
}
MAX_EXAMPLE_CHARS = 40_000
"""Examples beyond this are left out, the last ones first."""


def instructions(app: App, agent: Agent) -> str:
    """Global and agent instruction, variables not yet filled in."""
    texts = (app.global_instruction, agent.instruction, _languages(app), _length(app))
    return "\n\n".join(text for text in texts if text)


def _languages(app: App) -> str:
    settings = app.definition.language_settings
    if not settings.enable_multilingual_support:
        return ""
    default = settings.default_language_code
    codes = [default, *(c for c in settings.supported_language_codes if c != default)]
    return (
        "Answer in the language in which the user speaks, as long as it is one of these: "
        f"{', '.join(codes)}. In any other case answer in {default}."
    )


def _length(app: App) -> str:
    """The channel's persona: how much is said at a time."""
    persona = app.channel_profile.persona_property.persona.upper()
    return _LENGTHS.get(persona, "")


def examples(app: App, agent: Agent) -> str:
    """The app's examples for this agent; braces in them are their own and name no variables."""
    texts: list[str] = []
    size = 0
    for name, content in app.resources.get("examples", {}).items():
        entry = str(bidi.get(content, "entryAgent") or "").rsplit("/", 1)[-1]
        if content.get("invalid") is True or (entry and entry != agent.display_name):
            continue
        text = "\n".join(conversation_lines(content.get("messages") or ()))
        size += len(text)
        if size > MAX_EXAMPLE_CHARS:
            break
        if text:
            texts.append(f"<example name={json.dumps(name)}>\n{text}\n</example>")
    if not texts:
        return ""
    return "<examples>\n" + "\n".join(texts) + "\n</examples>"


def conversation_lines(messages: Iterable[Any]) -> Iterable[str]:
    """Messages of the wire as a model reads them: words, calls, answers and hand-overs."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = str(message.get("role") or "user")
        for chunk in message.get("chunks") or ():
            if isinstance(chunk, Mapping):
                words = _words(chunk)
                if words:
                    yield f"{role}: {words}"


def _words(chunk: Mapping[str, Any]) -> str:
    text = chunk.get("text") or chunk.get("transcript")
    if isinstance(text, str):
        return text
    call = bidi.get(chunk, "toolCall")
    if isinstance(call, Mapping):
        return f"[calls {tool_name(call)} with {_json(call.get('args') or {})}]"
    response = bidi.get(chunk, "toolResponse")
    if isinstance(response, Mapping):
        return f"[{tool_name(response)} answers {_json(response.get('response') or {})}]"
    transfer = bidi.get(chunk, "agentTransfer")
    if isinstance(transfer, Mapping):
        return f"[hands over to {agent_name(transfer)}]"
    payload = chunk.get("payload")
    said = payload.get("transcript") if isinstance(payload, Mapping) else None
    return said if isinstance(said, str) else ""


def tool_name(value: Mapping[str, Any]) -> str:
    """The tool that a toolCall or toolResponse of the wire is about, as the model calls it."""
    toolset = bidi.get(value, "toolsetTool")
    if isinstance(toolset, Mapping):
        name = str(toolset.get("toolset") or "").rsplit("/", 1)[-1]
        return f"{name}_{bidi.get(toolset, 'toolId') or ''}"
    name = bidi.get(value, "displayName") or value.get("tool") or ""
    return str(name).rsplit("/", 1)[-1]


def agent_name(transfer: Mapping[str, Any]) -> str:
    """The agent that an agentTransfer of the wire names."""
    name = bidi.get(transfer, "displayName") or bidi.get(transfer, "targetAgent") or ""
    return str(name).rsplit("/", 1)[-1]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
