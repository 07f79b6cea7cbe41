"""The life of a call as a table: where it stands and what may happen to it."""

from __future__ import annotations

from enum import Enum, auto


class Life(Enum):
    """Where a call stands."""

    IDLE = auto()
    """Nothing has started."""
    OPENING = auto()
    """The platform has started the call; the runtime has not answered yet."""
    TALKING = auto()
    DRAINING = auto()
    """The agent ended the session; what is queued is still heard."""
    HANDING = auto()
    """The platform's REST interface is asked to hand the caller on."""
    FAREWELL = auto()
    """The gateway itself speaks a last message."""
    LEAVING = auto()
    """The caller has gone; the runtime may finish its work."""
    ENDED = auto()


class LifeEvent(Enum):
    """What may happen to a call."""

    STARTED = auto()
    OPENED = auto()
    """The runtime takes input."""
    LOST = auto()
    """The runtime failed, fell silent or went away."""
    END_SESSION = auto()
    """The agent ended the session."""
    PARTED = auto()
    """The caller hung up, or the transport was lost."""
    DISMISSED = auto()
    """The gateway wants the call to end politely: shutdown or limit."""
    DRAINED = auto()
    """What had to be heard was heard, or its time is over."""
    ASKED = auto()
    """The platform was asked to hand the caller on; it has not answered yet."""
    REFUSED = auto()
    """It cannot, or will not."""
    CUT_OFF = auto()
    """End now."""


_S, _E = Life, LifeEvent

TRANSITIONS: dict[tuple[Life, LifeEvent], Life] = {
    (_S.IDLE, _E.STARTED): _S.OPENING,
    (_S.IDLE, _E.OPENED): _S.IDLE,
    (_S.IDLE, _E.LOST): _S.IDLE,
    (_S.IDLE, _E.END_SESSION): _S.IDLE,
    (_S.IDLE, _E.PARTED): _S.ENDED,
    (_S.IDLE, _E.DISMISSED): _S.ENDED,
    (_S.IDLE, _E.DRAINED): _S.IDLE,
    (_S.OPENING, _E.STARTED): _S.OPENING,
    (_S.OPENING, _E.OPENED): _S.TALKING,
    (_S.OPENING, _E.LOST): _S.FAREWELL,
    (_S.OPENING, _E.END_SESSION): _S.DRAINING,
    # With no runtime there is nobody to tell of the hang-up.
    (_S.OPENING, _E.PARTED): _S.ENDED,
    (_S.OPENING, _E.DISMISSED): _S.FAREWELL,
    (_S.OPENING, _E.DRAINED): _S.OPENING,
    (_S.TALKING, _E.STARTED): _S.TALKING,
    (_S.TALKING, _E.OPENED): _S.TALKING,
    (_S.TALKING, _E.LOST): _S.FAREWELL,
    (_S.TALKING, _E.END_SESSION): _S.DRAINING,
    (_S.TALKING, _E.PARTED): _S.LEAVING,
    (_S.TALKING, _E.DISMISSED): _S.FAREWELL,
    (_S.TALKING, _E.DRAINED): _S.TALKING,
    (_S.DRAINING, _E.STARTED): _S.DRAINING,
    (_S.DRAINING, _E.OPENED): _S.DRAINING,
    # A session that has ended may close its link; the goodbye is heard all the same.
    (_S.DRAINING, _E.LOST): _S.DRAINING,
    (_S.DRAINING, _E.END_SESSION): _S.DRAINING,
    (_S.DRAINING, _E.PARTED): _S.ENDED,
    (_S.DRAINING, _E.DISMISSED): _S.DRAINING,
    (_S.DRAINING, _E.DRAINED): _S.ENDED,
    (_S.HANDING, _E.STARTED): _S.HANDING,
    (_S.HANDING, _E.OPENED): _S.HANDING,
    (_S.HANDING, _E.LOST): _S.HANDING,
    (_S.HANDING, _E.END_SESSION): _S.HANDING,
    # The platform takes the caller off our socket before it answers: that is no hang-up yet.
    (_S.HANDING, _E.PARTED): _S.HANDING,
    (_S.HANDING, _E.DISMISSED): _S.HANDING,
    (_S.HANDING, _E.DRAINED): _S.ENDED,
    (_S.FAREWELL, _E.STARTED): _S.FAREWELL,
    (_S.FAREWELL, _E.OPENED): _S.FAREWELL,
    (_S.FAREWELL, _E.LOST): _S.FAREWELL,
    (_S.FAREWELL, _E.END_SESSION): _S.FAREWELL,
    (_S.FAREWELL, _E.PARTED): _S.ENDED,
    (_S.FAREWELL, _E.DISMISSED): _S.FAREWELL,
    (_S.FAREWELL, _E.DRAINED): _S.ENDED,
    (_S.LEAVING, _E.STARTED): _S.LEAVING,
    (_S.LEAVING, _E.OPENED): _S.LEAVING,
    (_S.LEAVING, _E.LOST): _S.ENDED,
    (_S.LEAVING, _E.END_SESSION): _S.ENDED,
    (_S.LEAVING, _E.PARTED): _S.LEAVING,
    (_S.LEAVING, _E.DISMISSED): _S.LEAVING,
    (_S.LEAVING, _E.DRAINED): _S.ENDED,
    **{(state, _E.ASKED): state for state in Life},
    (_S.DRAINING, _E.ASKED): _S.HANDING,
    **{(state, _E.REFUSED): state for state in Life},
    (_S.HANDING, _E.REFUSED): _S.FAREWELL,
    **{(_S.ENDED, event): _S.ENDED for event in LifeEvent},
    **{(state, _E.CUT_OFF): _S.ENDED for state in Life},
}


def after(state: Life, event: LifeEvent) -> Life:
    """Where a call stands after `event`."""
    return TRANSITIONS[state, event]
