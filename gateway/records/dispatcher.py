"""Makes the files of calls that are over and delivers them, again and again where it must.

One thread does it all, one call after the other. Where a place refuses, everything for that place
rests for a while, twice as long each time; the rest goes on. Nothing is given up: what is not
delivered stays on the disk.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.errors import RecordError
from gateway.records.couriers import Courier
from gateway.records.finished import FinishedCall, finish
from gateway.records.plan import Delivery, Target

log = structlog.get_logger()


@dataclass(slots=True)
class Figures:
    """What has become of calls, since the start."""

    delivered: int = 0
    """Calls whose records are everywhere they belong."""
    failures: int = 0
    """Attempts to deliver that failed."""
    unusable: int = 0
    """Calls of which nothing could be made."""


class Deliverer:
    """One attempt at a call: makes its files, then brings them to each place that does not rest."""

    def __init__(
        self, couriers: Mapping[Target, Courier], *, retry_s: float, retry_max_s: float
    ) -> None:
        self.figures = Figures()
        self._couriers = couriers
        self._retry_s = retry_s
        self._retry_max_s = retry_max_s
        self._rests: dict[str, tuple[float, float]] = {}
        """By place: until when it rests, and how long."""

    def attempt(self, folder: Path, now: float) -> float | None:
        """Do what can be done for the call; when to come back, None where it is done with."""
        try:
            call = finish(folder)
        except RecordError as error:
            log.error("records.unusable", code=error.code, folder=folder.name)
            self.figures.unusable += 1
            shutil.rmtree(folder, ignore_errors=True)
            return None
        except OSError as error:
            log.error("records.finish_failed", folder=folder.name, error=str(error.strerror))
            self.figures.failures += 1
            return now + self._retry_s
        for delivery in call.left:
            if self._rests.get(delivery.key, (now, 0.0))[0] <= now and self._deliver(
                call, delivery, now
            ):
                call = call.without(delivery)
        if call.left:
            return min(self._rests[delivery.key][0] for delivery in call.left)
        shutil.rmtree(folder, ignore_errors=True)
        self.figures.delivered += 1
        log.info("records.delivered", call_id=call.identity.call_id)
        return None

    def _deliver(self, call: FinishedCall, delivery: Delivery, now: float) -> bool:
        code, hint = "records.failed", None
        try:
            self._couriers[delivery.target].deliver(call, delivery)
        except RecordError as error:
            code, hint = error.code, error.hint
        except Exception:
            log.exception("records.delivery_failed", place=delivery.key)
        else:
            self._rests.pop(delivery.key, None)
            return True
        rest_s = min(
            2 * self._rests.get(delivery.key, (0.0, self._retry_s / 2))[1], self._retry_max_s
        )
        self._rests[delivery.key] = (now + rest_s, rest_s)
        self.figures.failures += 1
        log.warning("records.away", code=code, place=delivery.key, again_s=rest_s, hint=hint)
        return False

    def close(self) -> None:
        """Close all connections."""
        for courier in self._couriers.values():
            courier.close()


class Dispatcher:
    """The thread that attempts each call when its time has come."""

    def __init__(self, deliverer: Deliverer, adopt: Callable[[], list[Path]]) -> None:
        self._deliverer = deliverer
        self._adopt = adopt
        self._due: dict[Path, float] = {}
        self._changed = threading.Condition()
        self._until: float | None = None
        """Once closing: when to stop at the latest."""
        self._thread = threading.Thread(target=self._run, name="records-dispatcher", daemon=True)

    @property
    def waiting(self) -> int:
        """Calls that are over and not delivered."""
        return len(self._due)

    def start(self) -> None:
        """Start the thread; it begins with what earlier processes left."""
        self._thread.start()

    def add(self, folder: Path) -> None:
        """A call is over."""
        with self._changed:
            self._due[folder] = 0.0
            self._changed.notify()

    def close(self, limit_s: float) -> bool:
        """Deliver what can be at once, for so long; False where an attempt does not end."""
        with self._changed:
            self._until = time.monotonic() + limit_s
            self._changed.notify()
        self._thread.join(limit_s + 1.0)
        return not self._thread.is_alive()

    def _run(self) -> None:
        for found in self._adopt():
            log.info("records.found", folder=found.name)
            self.add(found)
        while (folder := self._next()) is not None:
            again: float | None = None
            try:
                again = self._deliverer.attempt(folder, time.monotonic())
            except Exception:
                # Not to be tried for ever: the next start will try once more.
                log.exception("records.attempt_failed", folder=folder.name)
            with self._changed:
                if again is None:
                    del self._due[folder]
                else:
                    self._due[folder] = again
        self._deliverer.close()

    def _next(self) -> Path | None:
        """Wait for the next call that is due; None to stop."""
        with self._changed:
            while True:
                now = time.monotonic()
                if self._until is not None and now >= self._until:
                    return None
                folder = min(self._due, key=lambda path: self._due[path], default=None)
                wait_s = None if folder is None else self._due[folder] - now
                if wait_s is not None and wait_s <= 0:
                    return folder
                if self._until is not None:
                    return None
                self._changed.wait(wait_s)
