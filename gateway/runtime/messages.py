"""BidiRunSession JSON to and from the engine's vocabulary. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.bidi import get
from gateway.call.events import (
    InputType,
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimeOutput,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTranscript,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.errors import RuntimeFailure


@dataclass(frozen=True, slots=True)
class RuntimeGoAway:
    """The runtime asks for a new connection to the same session."""


Incoming = RuntimeOutput | RuntimeGoAway

_HANDED_TO: Final = frozenset({"transferToNga", "transferToDialogflow"})
"""Payloads that hand the caller to another agent: the session is over, and nothing else says so."""


def session_config(session: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The first message. `extra`: entryAgent, deployment, …

    Without the audio configurations in it, it is a text session: speech is ours.
    """
    return {"config": {**extra, "session": session}}


def realtime_input(item: ToRuntime) -> dict[str, Any]:
    """One engine input as a client message."""
    content: dict[str, Any]
    match item.type:
        case InputType.TEXT:
            content = {"text": item.text}
        case InputType.EVENT:
            content = {"event": {"event": item.text}}
        case InputType.DTMF:
            content = {"dtmf": item.text}
        case InputType.VARIABLES:
            content = {"variables": dict(item.data)}
        case InputType.TOOL_RESPONSES:
            content = {"toolResponses": {"toolResponses": [dict(r) for r in item.items]}}
        case InputType.AUDIO:
            content = {"audio": base64.b64encode(item.audio).decode()}
    if item.will_continue:
        content["willContinue"] = True
    return {"realtimeInput": content}


def outputs(message: Mapping[str, Any]) -> list[Incoming]:
    """A server message as engine events, in order; unknown messages give none."""
    found: list[Incoming] = []
    end = get(message, "endSession")
    output = get(message, "sessionOutput")
    interruption = get(message, "interruptionSignal")
    recognition = get(message, "recognitionResult")
    if isinstance(output, Mapping):
        found.extend(_session_output(output))
    if isinstance(interruption, Mapping):
        found.append(RuntimeInterruption(bool(get(interruption, "bargeIn", False))))
    if isinstance(recognition, Mapping):
        transcript = get(recognition, "transcript")
        # A null is a field at its default: no words, and none of the caller's is "None".
        found.append(RuntimeTranscript(transcript if isinstance(transcript, str) else ""))
    if isinstance(end, Mapping):
        found.append(RuntimeEndSession(_mapping(get(end, "metadata"))))
    if get(message, "goAway") is not None:
        found.append(RuntimeGoAway())
    return found


def _session_output(output: Mapping[str, Any]) -> list[RuntimeOutput]:
    turn = _turn(get(output, "turnIndex", 0))
    found: list[RuntimeOutput] = []
    text = get(output, "text")
    payload = get(output, "payload")
    audio = get(output, "audio")
    tool_calls = get(output, "toolCalls")
    end = get(output, "endSession")
    if isinstance(text, str) and text:
        found.append(RuntimeText(text, turn))
    if isinstance(payload, Mapping):
        found.append(RuntimePayload(dict(payload), turn))
    if isinstance(audio, str) and audio:
        found.append(RuntimeAudio(_bytes(audio), turn))
    if isinstance(tool_calls, Mapping):
        calls = get(tool_calls, "toolCalls")
        listed = calls if isinstance(calls, list) else []
        found.append(RuntimeToolCalls([c for c in listed if isinstance(c, Mapping)], turn))
    if get(output, "turnCompleted", False) is True:
        found.append(RuntimeTurnCompleted(turn))
    if isinstance(end, Mapping):
        found.append(RuntimeEndSession(_mapping(get(end, "metadata"))))
    elif isinstance(payload, Mapping) and (to := _HANDED_TO & payload.keys()):
        found.append(RuntimeEndSession({"reason": min(to), "session_escalated": True}))
    return found


def _turn(value: object) -> int:
    """A turn index; numbers may come as `4`, `4.0` or `"4"`. 0 where it is none."""
    try:
        turn = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0
    return int(turn) if 0 < turn < 1 << 31 and turn == int(turn) else 0


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _bytes(text: str) -> bytes:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_" if "-" in text or "_" in text else None)
    except (binascii.Error, ValueError):
        raise RuntimeFailure(
            "runtime.audio",
            "the runtime sent audio that is not base64",
            where="sessionOutput.audio",
        ) from None
