"""The records of a process: begins them, and sees to it that they arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from gateway.assets.runner import ThreadRunner
from gateway.audio.formats import AudioFormat
from gateway.channels.base import Started
from gateway.config import RecordSettings
from gateway.records.couriers import Courier
from gateway.records.dispatcher import Deliverer, Dispatcher
from gateway.records.plan import Plan, Target, plain, spool_folder
from gateway.records.recorder import CallRecorder
from gateway.records.scribe import Scribe
from gateway.records.spool import Spool
from gateway.records.writer import OpenCall, Writer

MEASURE_S: Final = 10.0
"""How often the room that the spool takes is measured."""

NameSession = Callable[[str, Mapping[str, Any]], str]
"""The session's resource name, from call id and session configuration."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CallMaker:
    """Makes the record of a call that begins."""

    settings: RecordSettings
    plan: Plan
    name_session: NameSession
    spool: Spool

    def open(self, started: Started, begun: float, started_at: float) -> OpenCall:
        """`begun`: the call's time 0 by the engine's clock; `started_at`: by the wall's."""
        plan = self.plan
        recorder = CallRecorder(
            audio=plan.audio and not (started.in_format is None and started.out_format is None),
            max_frames=self.settings.max_waiting_frames,
        )
        header = {
            "call_id": started.call_id,
            "session": started.session or self.name_session(started.call_id, started.config),
            "started_at": started_at,
            "in_format": _format(started.in_format),
            "out_format": _format(started.out_format),
            "words": plan.words,
            "deliveries": [delivery.to_json() for delivery in plan.deliveries],
        }
        scribe = Scribe(redact=plan.redact, keep_plain=plan.keeps_plain_words, words=plan.words)
        name = plain(started.call_id)[:100]
        return OpenCall(recorder, scribe, header, begun, lambda: self.spool.new_call(name))


def _format(given: AudioFormat | None) -> list[Any] | None:
    return None if given is None else [given.encoding.value, given.rate_hz]


class Records:
    """Keeps records of live calls. Two threads do the work; the media loop only hands over.

    Raises RecordError where the spool folder cannot be made.
    """

    def __init__(
        self,
        settings: RecordSettings,
        plan: Plan,
        name_session: NameSession,
        couriers: Mapping[Target, Courier],
    ) -> None:
        self._settings = settings
        self._spool = Spool(spool_folder(settings))
        self._maker = CallMaker(settings, plan, name_session, self._spool)
        self._deliverer = Deliverer(
            couriers, retry_s=settings.retry_s, retry_max_s=settings.retry_max_s
        )
        self._dispatcher = Dispatcher(self._deliverer, self._spool.adopt)
        self._writer = Writer(self._over, self._measure)
        self._wants = bool(plan.deliveries)
        self._full = False
        self._measured = -MEASURE_S
        self._started = self._refused = self._lost_frames = 0
        for warning in plan.warnings:
            log.warning("records.plan", message=warning)

    def start(self) -> None:
        """Take up work: what earlier processes left comes first."""
        self._writer.start()
        self._dispatcher.start()

    def begin(self, started: Started, begun: float, now: float) -> CallRecorder | None:
        """The recorder of a call whose time 0 is `begun`; None where nothing is to be kept."""
        if not self._wants:
            return None
        if self._full:
            self._refused += 1
            self._writer.wake()
            log.error("records.spool_full", call_id=started.call_id)
            return None
        call = self._maker.open(started, begun, time.time() - (now - begun))
        call.recorder.on_end = self._writer.wake
        self._started += 1
        self._writer.add(call)
        return call.recorder

    def _over(self, call: OpenCall) -> None:
        """In the writer's thread: a call's file is complete."""
        self._lost_frames += call.recorder.lost_frames
        if call.folder is not None:
            self._dispatcher.add(call.folder)

    def _measure(self) -> None:
        """In the writer's thread: whether the spool has room for another call."""
        now = time.monotonic()
        if now - self._measured >= MEASURE_S or self._full:
            self._measured = now
            self._full = self._spool.bytes_used() >= self._settings.max_spool_bytes

    @property
    def figures(self) -> dict[str, int]:
        """Counts since the start, by name; `waiting` and `full` as of now."""
        done = self._deliverer.figures
        return {
            "started": self._started,
            "refused": self._refused,
            "lost_frames": self._lost_frames,
            "delivered": done.delivered,
            "failures": done.failures,
            "unusable": done.unusable,
            "waiting": self._dispatcher.waiting,
            "full": int(self._full),
        }

    async def aclose(self) -> None:
        """Write everything to the disk, deliver what can be in `shutdown_s`, end the threads."""
        run = ThreadRunner(1)
        try:
            await run(self._close)
        finally:
            await run.aclose()

    def _close(self) -> None:
        self._writer.close()
        ended = self._dispatcher.close(self._settings.shutdown_s)
        if self._dispatcher.waiting:
            log.warning("records.left", calls=self._dispatcher.waiting)
        if ended:
            self._spool.close()
