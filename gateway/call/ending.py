"""What the agent wants to happen after the call: hang up, or hand the caller on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ESCALATION_MESSAGE = "ESCALATION_MESSAGE"
PHONE_TRANSFER = "PHONE_GATEWAY_TRANSFER"
AGENT_HANDOFF = "LIVE_AGENT_HANDOFF"


@dataclass(frozen=True, slots=True)
class Wish:
    """How `endSession.metadata` wants the call to end."""

    transfer: bool
    escalated: bool
    target: str = ""
    """Number to dial; empty where the platform knows whom to hand over to."""
    message: str = ""
    """What the caller hears before the transfer."""


def read_wish(metadata: Mapping[str, Any]) -> Wish:
    """Read the end-of-session metadata. Never raises; unknown shapes mean a plain hang-up."""
    escalated = metadata.get("session_escalated", metadata.get("sessionEscalated")) is True
    params = metadata.get("params")
    if not isinstance(params, Mapping):
        params = {}
    target = ""
    phone = params.get(PHONE_TRANSFER)
    if isinstance(phone, Mapping):
        number = phone.get("phoneNumber", phone.get("phone_number"))
        target = number.strip() if isinstance(number, str) else ""
    handoff = params.get(AGENT_HANDOFF) not in (None, False)
    message = params.get(ESCALATION_MESSAGE)
    return Wish(
        transfer=bool(target) or handoff or escalated,
        escalated=escalated,
        target=target,
        message=message.strip() if isinstance(message, str) else "",
    )
