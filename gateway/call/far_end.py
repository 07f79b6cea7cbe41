"""What the platform tells of its own state: what it has played, whether it takes more, holds."""

from __future__ import annotations

from gateway.call.attending import Attending
from gateway.call.desk import Desk
from gateway.call.speaking import Speaking
from gateway.channels.base import (
    FlowControl,
    MarkReached,
    ParamsUpdated,
    Paused,
    PlaybackIdle,
    PlaybackStarted,
    Resumed,
)

FarEvent = (
    FlowControl | MarkReached | ParamsUpdated | Paused | PlaybackIdle | PlaybackStarted | Resumed
)


class FarEnd:
    """Keeps the playout's picture of the platform true."""

    def __init__(self, desk: Desk, speaking: Speaking, attending: Attending) -> None:
        self._desk = desk
        self._speaking = speaking
        self._attending = attending

    def handle(self, event: FarEvent) -> None:
        """Take in one of the platform's reports."""
        desk, playout = self._desk, self._desk.playout
        if isinstance(event, ParamsUpdated):
            self._update(event)
            return
        if isinstance(event, Paused | Resumed):
            desk.on_hold = isinstance(event, Paused)
        if playout is None:
            return
        match event:
            case MarkReached(name):
                playout.mark(name, desk.now)
            case PlaybackStarted():
                playout.began(desk.now)
            case PlaybackIdle():
                playout.ran_dry(desk.now)
            case FlowControl(can_send):
                playout.blocked = not can_send
            case Paused():
                playout.freeze(desk.now)
            case Resumed():
                playout.thaw(desk.now)
        self._speaking.advance()
        self._attending.reconsider()

    def _update(self, event: ParamsUpdated) -> None:
        desk = self._desk
        desk.language = event.language or desk.language
        variables = desk.profile.declared(event.custom)
        if variables and desk.conversing:
            desk.say_variables(variables)
