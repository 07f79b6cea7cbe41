"""What a dialect can do, as one record. The engine and the session ask it, never a name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Marks(StrEnum):
    """How a platform tells that audio was played."""

    NATIVE = "native"
    """It echoes each `SendMark` as `MarkReached`."""
    IDLE = "idle"
    """It only tells (`PlaybackIdle`) when everything that it had was played."""
    EMULATED = "emulated"
    """It tells nothing: positions follow the clock."""


class MarksOnClear(StrEnum):
    """What becomes of marks that a clear overtook."""

    ECHOED = "echoed"
    """They come back at once, as if played (the engine knows them by their generation)."""
    LOST = "lost"
    """They never come back."""
    CLEARED_STATUS = "cleared_status"
    """They come back with a word that says so; the codec drops them."""


class ClearBy(StrEnum):
    """How audio that was sent but not heard can be taken back."""

    NATIVE = "native"
    LOCAL_ONLY = "local_only"
    """Not at all: only what was not sent yet can be dropped, so the lead should be short."""


class DtmfOut(StrEnum):
    """How keys are pressed towards the far end."""

    NATIVE = "native"
    """The codec has words for `SendDtmf`."""
    REST = "rest"
    INBAND = "inband"
    """The engine plays the tones in the agent's audio."""
    NONE = "none"


class EndOut(StrEnum):
    """How the gateway ends a call."""

    MESSAGE = "message"
    """The codec has words for `Hangup`; a `Close` of its own may follow them."""
    REST = "rest"
    """By the platform's REST interface; without credentials the socket is closed."""
    CLOSE = "close"


class TransferBy(StrEnum):
    """How a call is handed on."""

    MESSAGE = "message"
    """The codec has words for `Transfer`."""
    REST = "rest"
    OUTPUTS = "outputs"
    """The call ends and its `outputs` tell the platform where to go on."""
    NONE = "none"
    """The call ends; outputs travel where the dialect has a place for them."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a dialect can do. A codec may refine its record until it has returned `Started`."""

    dialect: str

    # ---- playout
    marks: Marks = Marks.EMULATED
    marks_on_clear: MarksOnClear = MarksOnClear.ECHOED
    clear: ClearBy = ClearBy.LOCAL_ONLY
    max_lead_ms: int = 200
    """How far ahead of its playing audio may be sent."""
    min_lead_ms: int = 0
    """How far ahead it is sent at least, for platforms that would run dry otherwise."""
    continuous: bool = False
    """True where silence must be sent too; false where gaps are fine."""

    # ---- messages of audio out. The engine gives whole 20 ms frames of `Started.out_format`.
    min_message_ms: int = 20
    """Audio is gathered to messages of this length; only the end of a stretch may be shorter."""
    frame_exact: bool = False
    """True: a message holds exactly `min_message_ms`; a short end is padded with silence."""
    frame_multiple_bytes: int = 1
    """Bytes of audio in a message are a multiple of this; a short end is padded with silence."""
    max_out_bytes: int = 32000
    """Most bytes of encoded audio in one message."""

    # ---- messages in
    max_message_bytes: int = 65536
    """Largest message that the peer may send."""
    binary_in: bool = False
    """Whether the peer may send binary messages; if not, one ends the call (1003)."""
    receive_idle_s: float | None = None
    """Silence on the socket after which the peer is taken for dead; None: it is pinged."""
    starts_within_s: float | None = None
    """If nothing has started the call by then, the session calls `Channel.overdue`."""

    # ---- the socket
    subprotocols: tuple[str, ...] = ()
    """Offered ones are answered in this order of preference; none offered, none answered."""
    ping_allowed: bool = True
    resume_s: float = 0.0
    """How long a lost call waits for its platform to come back on another socket (`Rejoin`)."""

    once: bool = True
    """Whether an id names one call. False where a client names a session to which it returns."""

    # ---- keys, end and transfer
    dtmf_in: bool = True
    dtmf_out: DtmfOut = DtmfOut.INBAND
    end_out: EndOut = EndOut.CLOSE
    transfer: TransferBy = TransferBy.NONE

    # ---- who leads
    kickoff: bool = True
    """True where the gateway greets (event `session start`); false where the client kicks off."""
    agent_messages: bool = False
    """True where texts, payloads and turn ends travel to the client (native dialect)."""

    def lead_ms(self, wanted_ms: int) -> int:
        """The lead that is nearest to the wanted one."""
        return min(max(wanted_ms, self.min_lead_ms), self.max_lead_ms)

    def without_rest(self) -> Capabilities:
        """The record of a call whose platform cannot be reached by REST (no credentials)."""
        return replace(
            self,
            dtmf_out=DtmfOut.INBAND if self.dtmf_out is DtmfOut.REST else self.dtmf_out,
            end_out=EndOut.CLOSE if self.end_out is EndOut.REST else self.end_out,
            transfer=TransferBy.NONE if self.transfer is TransferBy.REST else self.transfer,
        )
