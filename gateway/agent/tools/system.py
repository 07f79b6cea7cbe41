"""The three reserved tools: end_session, transfer_to_agent, customize_response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.agent.app.models import CUSTOMIZE_RESPONSE, END_SESSION, TRANSFER_TO_AGENT, App
from gateway.agent.platform import FunctionDeclaration, Part
from gateway.agent.turn import clean_json

DTMF_TIMEOUTS_S = {"short": 1.0, "mid": 3.0, "long": 5.0}
"""Seconds of the named modes; the platform publishes none."""

DECLARATIONS = {
    END_SESSION: FunctionDeclaration(
        name=END_SESSION,
        description="End the session, or hand the caller over to a human agent.",
        parameters={
            "type": "OBJECT",
            "properties": {
                "reason": {"type": "STRING"},
                "session_escalated": {"type": "BOOLEAN"},
                "params": {"type": "OBJECT"},
            },
            "required": ["reason"],
        },
    ),
    TRANSFER_TO_AGENT: FunctionDeclaration(
        name=TRANSFER_TO_AGENT,
        description="Let another agent go on with the conversation.",
        parameters={
            "type": "OBJECT",
            "properties": {"agent_name": {"type": "STRING"}},
            "required": ["agent_name"],
        },
    ),
    CUSTOMIZE_RESPONSE: FunctionDeclaration(
        name=CUSTOMIZE_RESPONSE,
        description="Speak with special rules for interruption and keypad input.",
        parameters={
            "type": "OBJECT",
            "properties": {
                "content": {"type": "STRING"},
                "disable_barge_in": {"type": "BOOLEAN"},
                "enable_dtmf": {"type": "BOOLEAN"},
                "dtmf_finish_digit": {"type": "STRING"},
                "dtmf_endpointing_timeout_modes": {
                    "type": "STRING",
                    "enum": list(DTMF_TIMEOUTS_S),
                },
            },
            "required": ["content"],
        },
    ),
}


def transfer_declaration(about: Mapping[str, str]) -> FunctionDeclaration:
    """`transfer_to_agent` for an agent that may hand over to these: name → description."""
    lines = [f"{name}: {text}" if text else name for name, text in about.items()]
    return FunctionDeclaration(
        name=TRANSFER_TO_AGENT,
        description="Let another agent go on with the conversation.\n" + "\n".join(lines),
        parameters={
            "type": "OBJECT",
            "properties": {"agent_name": {"type": "STRING", "enum": list(about)}},
            "required": ["agent_name"],
        },
    )


def end_metadata(args: Mapping[str, Any]) -> dict[str, Any]:
    """`endSession.metadata` of a call of end_session."""
    metadata: dict[str, Any] = {"reason": str(args.get("reason") or "")}
    if args.get("session_escalated"):
        metadata["session_escalated"] = True
    params = clean_json(args.get("params"))
    if isinstance(params, dict) and params:
        metadata["params"] = params
    return metadata


def transfer_target(app: App, args: Mapping[str, Any]) -> str | None:
    """The display name of the agent that a call of transfer_to_agent means; None: unknown."""
    name = args.get("agent_name") or args.get("agent")
    if not isinstance(name, str):
        return None
    if name in app.agents:
        return name
    folded = {known.casefold(): known for known in app.agents}
    return folded.get(name.casefold())


def customized_part(args: Mapping[str, Any]) -> Part:
    """The response that a call of customize_response by the model becomes."""
    mode = str(args.get("dtmf_endpointing_timeout_modes") or "mid").lower()
    return Part.from_customized_response(
        content=str(args.get("content") or ""),
        disable_barge_in=bool(args.get("disable_barge_in")),
        enable_dtmf=bool(args.get("enable_dtmf")),
        dtmf_finish_digit=str(args.get("dtmf_finish_digit") or ""),
        dtmf_endpointing_timeout=DTMF_TIMEOUTS_S.get(mode, DTMF_TIMEOUTS_S["mid"]),
    )
