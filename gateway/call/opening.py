"""What a session with the runtime begins with."""

from __future__ import annotations

from gateway.call.desk import Desk
from gateway.call.events import InputType, OpenRuntime
from gateway.channels.base import Started


def open_runtime(desk: Desk, event: Started) -> bool:
    """Ask for the session: variables, then event or words. False where no answer is owed then."""
    profile, begins = desk.profile, desk.capabilities.kickoff
    variables = profile.declared(event.custom)
    words = profile.first_words if begins else ""
    kickoff = profile.kickoff if begins and not words else ""
    desk.out.append(OpenRuntime(variables, kickoff or None, words))
    for type_, fields in (
        (InputType.VARIABLES, {"variables": sorted(variables)} if variables else None),
        (InputType.EVENT, {"event": kickoff} if kickoff else None),
        (InputType.TEXT, {"text": words} if words else None),
    ):
        if fields is not None:
            desk.record("runtime_input", {"type": type_.value, **fields})
    if kickoff or words:
        desk.turn.asked(desk.now)
    return bool(kickoff or words)
