"""Brings what recorders hold to the disk, in a thread of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog

from gateway.records.entries import Kind, entry_json
from gateway.records.finished import SPOOL
from gateway.records.recorder import CallRecorder
from gateway.records.scribe import Scribe

FLUSH_S: Final = 0.25
"""How often a running call's audio is written: what a sudden death of the process can cost."""

log = structlog.get_logger()


class OpenCall:
    """A running call: its recorder, and the file that grows."""

    def __init__(
        self,
        recorder: CallRecorder,
        scribe: Scribe,
        header: dict[str, Any],
        begun: float,
        make_folder: Callable[[], Path],
    ) -> None:
        self.recorder = recorder
        self.folder: Path | None = None
        """None until the first flush."""
        self.begun = begun
        self.call_id: str = header["call_id"]
        self._header: dict[str, Any] | None = header
        self._scribe = scribe
        self._make_folder = make_folder
        self._file: int | None = None
        self._size = 0
        self._failed = False

    def flush(self) -> bool:
        """Write what waits; True where the call is over and all of it is written."""
        ended_at = self.recorder.ended_at
        data = [self.recorder.take_audio()]
        for t, kind, fields in self.recorder.take_notes():
            note = self._scribe.note(kind, fields)
            if note is not None:
                data.append(entry_json(Kind.NOTE, t, note))
        if ended_at is not None:
            lost = {
                "lost_frames": self.recorder.lost_frames,
                "lost_notes": self.recorder.lost_notes,
                "lost_writes": self.recorder.lost_writes,
            }
            data.append(entry_json(Kind.END, ended_at, lost))
        self._write(b"".join(data))
        return ended_at is not None

    def _write(self, data: bytes) -> None:
        try:
            if self._file is None:
                if self.folder is None:
                    self.folder = self._make_folder()
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._file = os.open(self.folder / SPOOL, flags, 0o600)
            if self._header is not None:
                self._append(entry_json(Kind.CALL, self.begun, self._header))
                self._header = None
            if data:
                self._append(data)
            self._failed = False
        except OSError as error:
            # A full disk costs this stretch of the call; the next one may fit again.
            self.recorder.lost_writes += 1
            if not self._failed:
                self._failed = True
                log.error(
                    "records.write_failed", call_id=self.call_id, error=error.strerror or str(error)
                )

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        at = self._size
        # Always from the last whole entry on: a write that failed half-way is written over.
        while view:
            written = os.pwrite(self._file, view, at)
            view = view[written:]
            at += written
        self._size = at

    def close(self) -> None:
        """Give the file to the disk for good."""
        if self._file is not None:
            try:
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
            except OSError:
                log.error("records.write_failed", call_id=self.call_id)
            os.close(self._file)
            self._file = None


class Writer:
    """Flushes all open calls in turn; gives each that is over to `done`; then does `each_turn`."""

    def __init__(self, done: Callable[[OpenCall], None], each_turn: Callable[[], None]) -> None:
        self._done = done
        self._each_turn = each_turn
        self._calls: list[OpenCall] = []
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="records-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, call: OpenCall) -> None:
        """A call has begun."""
        self._calls.append(call)
        self._wake.set()

    def wake(self) -> None:
        """Take a turn now: a call is over."""
        self._wake.set()

    def close(self) -> None:
        """Write all that is there, also of calls that are not over, and end the thread."""
        self._closing = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait(FLUSH_S if self._calls else None)
            self._wake.clear()
            closing = self._closing
            for call in list(self._calls):
                over = False
                try:
                    over = call.flush()
                except Exception:
                    log.exception("records.flush_failed", call_id=call.call_id)
                    over = call.recorder.ended_at is not None
                if over or closing:
                    self._calls.remove(call)
                    call.close()
                    self._done(call)
            self._each_turn()
            if closing:
                return
