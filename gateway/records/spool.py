"""The spool folder: one folder for each process, in it one for each call that is not delivered.

A process holds a lock on its folder for as long as it lives, however it dies. Whoever starts
later and gets the lock of another folder takes over the calls in it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from gateway.errors import RecordError

LOCK = "lock"
_MAKING = ".making-"
_CALLS = "calls-"


class Spool:
    """This process's folder. Raises RecordError records.spool_folder where none can be made."""

    def __init__(self, root: Path) -> None:
        self._root = root
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Locked before it gets its name: nobody may take it for an orphan in between.
            making = root / f"{_MAKING}{name}"
            making.mkdir(mode=0o700)
            lock = _lock(making / LOCK)
            assert lock is not None
            self.folder = making.rename(root / f"{_CALLS}{name}")
        except OSError as error:
            raise RecordError(
                "records.spool_folder",
                f"cannot keep calls: {error.strerror or error}",
                where=str(root),
                hint="see records.spool",
            ) from None
        self._lock = lock

    def new_call(self, name: str) -> Path:
        """A folder for a call."""
        folder = self.folder / f"{name}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        return folder

    def adopt(self) -> list[Path]:
        """Take over the calls of processes that are gone; their folders, oldest first."""
        adopted: list[Path] = []
        for other in sorted(self._root.glob(f"{_CALLS}*")):
            if other == self.folder:
                continue
            try:
                lock = _lock(other / LOCK)
                if lock is None:
                    continue
                try:
                    calls = sorted(p for p in other.iterdir() if p.is_dir())
                    adopted += (call.rename(self.folder / call.name) for call in calls)
                    (other / LOCK).unlink()
                    other.rmdir()
                finally:
                    os.close(lock)
            except OSError:
                # Another process was quicker, or it is not ours to read.
                continue
        return adopted

    def bytes_used(self) -> int:
        """Bytes of all calls of this process, holes left out."""
        used = 0
        for folder, _, files in os.walk(self.folder):
            for name in files:
                try:
                    used += os.stat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    continue
        return used

    def close(self) -> None:
        """Give the folder up: it is removed if nothing is left in it."""
        try:
            if not any(p.is_dir() for p in self.folder.iterdir()):
                (self.folder / LOCK).unlink()
                self.folder.rmdir()
        except OSError:
            pass
        os.close(self._lock)


def _lock(path: Path) -> int | None:
    """An open, locked file; None where somebody else has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
