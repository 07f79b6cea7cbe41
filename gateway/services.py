"""What every call of a process shares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.assets import AudioAssets
from gateway.call.profile import CallProfile
from gateway.channels import base
from gateway.channels.base import EndReason
from gateway.notices import CallNotices
from gateway.platforms.known_calls import KnownCalls
from gateway.platforms.terms import Accounts, Terms
from gateway.records.recorder import CallRecorder
from gateway.runtime.audio import AudioTerms
from gateway.runtime.client import RuntimeClient
from gateway.speech.base import SpeechServices
from gateway.ticker import Ticker


class Observer(Protocol):
    """Who watches calls: logs, metrics, timelines, the simulator."""

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of a call's timeline; `t` in seconds since the call started."""
        ...

    def frame_late(self, late_s: float) -> None:
        """A tick ran this much after its due time."""
        ...

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The call is over and holds nothing any more."""
        ...


class CallRecords(Protocol):
    """Keeps records of calls."""

    def begin(self, started: base.Started, begun: float, now: float) -> CallRecorder | None:
        """The recorder of a call whose time 0 is `begun`; None where nothing is to be kept."""
        ...


OpenRuntimeClient = Callable[[str, Mapping[str, Any]], Awaitable[RuntimeClient]]
"""Makes an opened client from call id and session configuration. Raises RuntimeFailure."""


@dataclass(frozen=True, slots=True)
class CallServices:
    """What every call of a process shares."""

    profile: CallProfile
    speech: SpeechServices
    assets: AudioAssets
    open_runtime: OpenRuntimeClient
    ticker: Ticker
    observer: Observer
    send_buffer_bytes: int = 1 << 20
    shutdown_message: str = "This service is closing now. Please call again later. Goodbye."
    runtime_audio: AudioTerms = field(default_factory=AudioTerms)
    """For a runtime that listens and speaks itself."""
    records: CallRecords | None = None
    notices: CallNotices | None = None
    terms: Mapping[str, Terms] = field(default_factory=dict)
    """On what terms the calls of each dialect are taken; none: the common ones."""
    accounts: Accounts = field(default_factory=Accounts)
    known: KnownCalls = field(default_factory=KnownCalls)
    resumable: dict[str, Any] = field(default_factory=dict)
    """Calls whose platform may come back on another socket, by call id."""
