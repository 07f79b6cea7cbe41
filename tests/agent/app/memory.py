"""An app's files in memory, for tests that read many apps."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.agent.app.files import clean_path
from gateway.errors import AppError


class MemoryFiles:
    """Files by path; texts are UTF-8."""

    origin = "memory"

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._files = {
            path: data.encode() if isinstance(data, str) else data for path, data in files.items()
        }

    def paths(self) -> list[str]:
        return sorted(self._files)

    def read(self, rel: str) -> bytes:
        try:
            return self._files[clean_path(rel)]
        except KeyError:
            raise AppError("app.missing_file", "no such file", where=rel) from None
