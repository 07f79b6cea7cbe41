"""What the agent wants to happen after the call: hang up, or hand the caller on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.bidi import AGENT_HANDOFF, ESCALATION_MESSAGE, PHONE_TRANSFER
from gateway.call.desk import Desk
from gateway.channels.base import EndReason, Hangup, Transfer
from gateway.channels.capabilities import TransferBy


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


def grant(desk: Desk, metadata: Mapping[str, Any]) -> EndReason | None:
    """Tell the platform to hang up or to hand the caller on; why the call ends by it.

    None: the platform's REST interface is asked first, and its answer decides.
    """
    wish = read_wish(metadata)
    reason = EndReason.COMPLETED
    if wish.transfer:
        by = desk.capabilities.transfer
        target = "" if by is TransferBy.NONE else wish.target
        desk.record("transfer", {"target": target, "metadata": dict(metadata)})
        if by is not TransferBy.NONE:
            desk.command(Transfer(target, metadata))
            return None if by is TransferBy.REST else EndReason.TRANSFERRED
        if wish.escalated:
            reason = EndReason.TRANSFERRED
    desk.command(Hangup(reason, metadata))
    return reason
