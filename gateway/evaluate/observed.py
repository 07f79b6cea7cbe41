"""What the agent did in a stretch of a conversation, read from the messages of the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import bidi
from gateway.agent.app.models import CUSTOMIZE_RESPONSE, TRANSFER_TO_AGENT
from gateway.agent.prompt import agent_name, tool_name
from gateway.agent.tools.facade import PENDING

USER = "user"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by the agent."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered."""

    name: str
    response: Any


@dataclass(slots=True)
class Observed:
    """Everything the agent did, in order within each list. Grows message by message."""

    texts: list[str] = field(default_factory=list)
    payloads: list[Mapping[str, Any]] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    answers: list[ToolAnswer] = field(default_factory=list)
    transfers: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    """Variables that changed, with their last values."""
    end: Mapping[str, Any] | None = None
    """Metadata of the session's end; None: it goes on."""
    turns: int = 0
    """Turns of the agent that are complete."""
    heard: list[str] = field(default_factory=list)
    """What the agent understood of the user."""

    @property
    def pending(self) -> int:
        """Asynchronous tools that were started and have not come to their end."""
        started = sum(1 for answer in self.answers if answer.response == PENDING["result"])
        return started - sum(1 for text in self.heard if text.startswith("<context>function ["))

    def take(self, message: Mapping[str, Any]) -> None:
        """Note one server message of the runtime."""
        end = bidi.get(message, "endSession")
        if isinstance(end, Mapping):
            self.end = _mapping(end.get("metadata"))
        output = _mapping(bidi.get(message, "sessionOutput"))
        if bidi.get(output, "turnCompleted") is True:
            self.turns += 1
        for entry in messages_of(message):
            role = str(entry.get("role") or USER)
            for chunk in entry.get("chunks") or ():
                self._chunk(role, chunk)

    def _chunk(self, role: str, chunk: Mapping[str, Any]) -> None:
        text, payload = chunk.get("text"), chunk.get("payload")
        call, answer = bidi.get(chunk, "toolCall"), bidi.get(chunk, "toolResponse")
        transfer = bidi.get(chunk, "agentTransfer")
        if isinstance(text, str):
            (self.heard if role == USER else self.texts).append(text)
        elif isinstance(payload, Mapping):
            self.payloads.append(payload)
            self._say(said_by(payload))
        elif isinstance(call, Mapping):
            self._call(ToolCall(tool_name(call), _mapping(call.get("args"))))
        elif isinstance(answer, Mapping):
            response = unwrapped(answer.get("response"))
            self.answers.append(ToolAnswer(tool_name(answer), response))
        elif isinstance(transfer, Mapping):
            self.transfers.append(agent_name(transfer))
        self.variables.update(_mapping(bidi.get(chunk, "updatedVariables")))

    def _call(self, call: ToolCall) -> None:
        # Handing over is a transfer, and special words are words, whatever asks for them.
        if call.name == CUSTOMIZE_RESPONSE:
            self._say(str(call.args.get("content") or ""))
        elif call.name != TRANSFER_TO_AGENT:
            self.calls.append(call)

    def _say(self, text: str) -> None:
        if text:
            self.texts.append(text)


def messages_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The Messages of a turn that a server message completes; none in others."""
    output = _mapping(bidi.get(message, "sessionOutput"))
    return list(_mapping(bidi.get(output, "diagnosticInfo")).get("messages") or ())


def said_by(payload: Mapping[str, Any]) -> str:
    """The words that the caller hears by a payload; empty where there are none."""
    customized = payload.get(bidi.CUSTOMIZED_RESPONSE)
    text = customized.get("content") if isinstance(customized, Mapping) else None
    text = text or payload.get("transcript")
    return text if isinstance(text, str) else ""


def unwrapped(response: Any) -> Any:
    """A tool's own result inside the wire's `{"output": …}` or the runtime's `{"result": …}`."""
    if isinstance(response, Mapping) and len(response) == 1:
        for key in ("output", "result", "response"):
            if key in response:
                return response[key]
    return response


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
