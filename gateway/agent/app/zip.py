"""Pack an app into the zip of an export: one root folder, the same bytes for the same content."""

from __future__ import annotations

import os
import stat
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from gateway.agent.app.files import AppFiles
from gateway.agent.app.write import Format, rewritten
from gateway.errors import AppError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can name; equal apps make equal zips."""
_MODE = (stat.S_IFREG | 0o644) << 16


def write_zip(
    files: AppFiles,
    target: Path,
    root: str,
    format_: Format | None = None,
    *,
    replace: bool = False,
) -> int:
    """Write the app into a zip under the folder `root`. Returns the number of files.

    Raises AppError app.exists (there is a file and `replace` is false) or app.write. The zip
    appears whole or not at all.
    """
    try:
        # Devices, pipes and folders are never replaced.
        taken = target.exists() and not (replace and target.is_file())
    except OSError as error:
        raise AppError("app.write", f"cannot write: {error.strerror}", where=str(target)) from None
    if taken:
        raise AppError(
            "app.exists",
            "there is something already",
            where=str(target),
            hint="Name a new file, or say --force to replace a file.",
        )
    content = list(rewritten(files, format_))
    try:
        handle, name = tempfile.mkstemp(prefix=".packing-", suffix=".zip", dir=target.parent)
    except OSError as error:
        raise AppError("app.write", f"cannot write: {error.strerror}", where=str(target)) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w") as archive:
            for rel, data in content:
                member = zipfile.ZipInfo(f"{root}/{rel}", _EPOCH)
                member.external_attr = _MODE
                member.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(member, data)
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise AppError("app.write", f"cannot write: {error.strerror}", where=str(target)) from None
    return len(content)
