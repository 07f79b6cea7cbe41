"""What an OpenAI-compatible server streams, and the settings that lead to it."""

from __future__ import annotations

from typing import Any

from tests.agent.models.service import Service

KEY = "key-of-the-operator"
DONE = "data: [DONE]\n\n"


def said(text: str) -> dict[str, Any]:
    return chunk({"content": text})


def asked(arguments: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A delta of a call."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return chunk({"tool_calls": [{"type": "function", "function": function, **more}]})


def ended(reason: str = "stop") -> dict[str, Any]:
    return chunk({}, reason)


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }


def chat_settings(server: Service, **more: Any) -> dict[str, Any]:
    return {
        "provider": "openai",
        "url": f"{server.url}/v1",
        "name": "qwen",
        "api_key": KEY,
        **more,
    }
