"""What the server does with what calls tell: figures, timelines and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from gateway.channels.base import EndReason
from gateway.server.metrics import Metrics
from gateway.server.timelines import Timelines

log = structlog.get_logger()

_TOLD: Final = ("code", "message", "where", "hint")
"""Of an error: our own words. What others `said` of it may hold a caller's."""


class CallObservers:
    """Feeds metrics and timelines; logs starts, ends and errors without the caller's words."""

    def __init__(self, metrics: Metrics, timelines: Timelines) -> None:
        self.metrics = metrics
        self.timelines = timelines
        self.frame_late = metrics.frame_late

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of a call's timeline; before the call has an id only errors are counted."""
        if call_id:
            self.timelines.record(call_id, t, kind, fields)
        if kind == "barge_in":
            self.metrics.barge_in(str(fields.get("by", "")))
        elif kind == "error":
            self.metrics.error(str(fields.get("code", "")))
            told = {name: fields[name] for name in _TOLD if name in fields}
            log.warning("call.error", call_id=call_id, **told)
        elif kind == "call_started":
            log.info("call.started", call_id=call_id)

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The call is over and holds nothing any more."""
        self.metrics.ended(reason.value)
        if call_id:
            self.timelines.ended(call_id)
        log.info("call.ended", call_id=call_id, reason=reason.value)
