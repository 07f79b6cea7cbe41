"""Sentences on disk: what a cloud voice has spoken once is not paid for again after a restart.

One file a sentence, named by the digest of its key, written aside and then renamed, so a crash
leaves no half of one. All methods block: they run in a thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import structlog

from gateway.audio.formats import Pcm
from gateway.errors import ConfigError

_SUFFIX = ".pcm"
_PART = ".part"

_log = structlog.get_logger()


class PhraseFolder:
    """A bounded folder; the sentence unused for longest goes first. Only its owner may read it."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._complained = False

    def open(self) -> None:
        """Make the folder and count what is in it. Raises ConfigError where it cannot be used."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in self._folder.glob(f"*{_PART}"):
                left.unlink()
            self._bytes = sum(file.stat().st_size for file in self._folder.glob(f"*{_SUFFIX}"))
            if not os.access(self._folder, os.W_OK):
                raise PermissionError("it is not writable")
        except OSError as error:
            raise ConfigError(
                "config.cache_folder",
                f"the folder for sentences cannot be used: {error.strerror or error}",
                where="speech.cache_folder",
            ) from None

    def get(self, digest: str) -> Pcm | None:
        """The speech, if it is there."""
        file = self._file(digest)
        try:
            pcm = file.read_bytes()
            os.utime(file)
        except OSError:
            return None
        return pcm or None

    def put(self, digest: str, pcm: Pcm) -> None:
        """Keep speech; a full or failing disk is logged once, and nothing is kept."""
        if len(pcm) > self._max_bytes:
            return
        part = self._folder / f"{digest}.{threading.get_ident()}{_PART}"
        try:
            with self._lock:
                descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "wb") as out:
                    out.write(pcm)
                replaced = self._size(self._file(digest))
                part.replace(self._file(digest))
                self._bytes += len(pcm) - replaced
                if self._bytes > self._max_bytes:
                    self._evict()
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            if not self._complained:
                self._complained = True
                _log.warning("speech.cache_folder", reason=error.strerror or str(error))

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}{_SUFFIX}"

    @staticmethod
    def _size(file: Path) -> int:
        return file.stat().st_size if file.exists() else 0

    def _evict(self) -> None:
        """Down to nine tenths: a full folder is not searched at every sentence."""
        files = sorted(
            (stat.st_mtime_ns, stat.st_size, file)
            for file in self._folder.glob(f"*{_SUFFIX}")
            for stat in (file.stat(),)
        )
        # Other processes may write here as well: count anew.
        self._bytes = sum(size for _, size, _ in files)
        for _, size, file in files:
            if self._bytes <= self._max_bytes * 0.9:
                break
            file.unlink(missing_ok=True)
            self._bytes -= size
