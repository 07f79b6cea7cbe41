"""Records of simulated calls: everything is done on the spot and stays on this machine."""

from __future__ import annotations

import contextlib
import shutil

from gateway.channels.base import Started
from gateway.config import RecordSettings
from gateway.errors import RecordError
from gateway.records.couriers import FolderCourier
from gateway.records.finished import finish
from gateway.records.keeper import CallMaker, NameSession
from gateway.records.plan import Plan, local_only, spool_folder
from gateway.records.recorder import CallRecorder
from gateway.records.spool import Spool
from gateway.records.writer import OpenCall


class InlineRecords:
    """Keeps the record of each call in `save_to`; no threads, no clock but the caller's.

    `epoch_s`: the wall's time when the engine's clock is 0. Raises RecordError.
    """

    def __init__(
        self, settings: RecordSettings, plan: Plan, name_session: NameSession, epoch_s: float
    ) -> None:
        self._root = spool_folder(settings)
        self._settings = settings
        self._plan = local_only(plan)
        self._name_session = name_session
        self._epoch_s = epoch_s
        self._spool: Spool | None = None
        self._open: list[OpenCall] = []

    def begin(self, started: Started, begun: float, now: float) -> CallRecorder | None:
        """The recorder of a call whose time 0 is `begun`."""
        if self._spool is None:
            self._spool = Spool(self._root)
        maker = CallMaker(self._settings, self._plan, self._name_session, self._spool)
        call = maker.open(started, begun, self._epoch_s + begun)
        call.recorder.spill = call.flush
        self._open.append(call)
        return call.recorder

    def finish(self) -> None:
        """Make and save the records of all calls. Raises RecordError."""
        courier = FolderCourier()
        try:
            while self._open:
                call = self._open.pop()
                call.flush()
                call.close()
                if call.folder is None:
                    raise RecordError(
                        "records.spool_folder", "cannot keep calls", where=str(self._root)
                    )
                finished = finish(call.folder)
                for delivery in finished.left:
                    courier.deliver(finished, delivery)
                shutil.rmtree(call.folder, ignore_errors=True)
        finally:
            if self._spool is not None:
                self._spool.close()
                with contextlib.suppress(OSError):
                    self._root.rmdir()
