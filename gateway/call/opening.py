"""What a call begins with: its playout, and its session with the runtime."""

from __future__ import annotations

from gateway.audio.formats import AudioFormat
from gateway.call.desk import Desk
from gateway.call.events import InputType, OpenRuntime
from gateway.call.playout import Playout
from gateway.channels.base import Started
from gateway.channels.capabilities import ClearBy, Marks


def playout_of(desk: Desk, out_format: AudioFormat) -> Playout:
    """The playout of a line with this output format, as its dialect can do it."""
    able, profile = desk.capabilities, desk.profile
    return Playout(
        out_format,
        origin=desk.now,
        lead_s=able.lead_ms(profile.lead_ms) / 1000,
        native_marks=able.marks is Marks.NATIVE,
        native_clear=able.clear is ClearBy.NATIVE,
        mark_grace_s=profile.mark_grace_s,
        continuous=able.continuous,
        fade_ms=profile.fade_ms,
        idle_marks=able.marks is Marks.IDLE,
        message_s=able.min_message_ms / 1000,
    )


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
