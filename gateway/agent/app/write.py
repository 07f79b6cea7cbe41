"""Write an app's files again: as they are, or all its objects as JSON or as YAML."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from gateway.agent.app.document import Document, to_json, to_yaml
from gateway.agent.app.files import AppFiles
from gateway.agent.app.layout import (
    RESOURCE_FOLDERS,
    app_file,
    directory_name,
    environment_object,
    object_files,
)
from gateway.agent.app.read import no_app_file
from gateway.bidi import get
from gateway.errors import AppError


class Format(StrEnum):
    """The format of an app's objects."""

    JSON = "json"
    YAML = "yaml"


def rewritten(files: AppFiles, format_: Format | None) -> Iterator[tuple[str, bytes]]:
    """The app's files, sorted: (path, bytes). Raises AppError where an object cannot be parsed.

    Without a format every file is as it was. With one, an object of the other format changes its
    file's name and spelling but not its data; its comments are lost. Texts, code, audio,
    `environment.json` and objects that already have the format stay byte for byte.
    """
    paths = files.paths()
    objects = set(_object_files(paths)) if format_ is not None else set()
    taken = {path.casefold() for path in paths}
    written: dict[str, bytes] = {}
    for path in paths:
        data = files.read(path)
        name = f"{path.rsplit('.', 1)[0]}.{format_}"
        convertible = path in objects and Path(path).suffix != f".{format_}"
        # A file whose new name is another file's already keeps its format: nothing may be lost.
        if convertible and name.casefold() not in taken:
            content = Document(path, _text(path, data)).data
            text = to_json(content) if format_ is Format.JSON else to_yaml(content)
            path, data = name, text.encode()
        written[path] = data
    yield from sorted(written.items())


def root_name(files: AppFiles) -> str:
    """The folder that an export of this app has at its root. Raises AppError."""
    where = app_file(files.paths())
    if where is None:
        raise no_app_file(files)
    data = Document(where, _text(where, files.read(where))).data
    name = get(data, "displayName") or get(data, "name") or Path(files.origin).stem
    return directory_name(str(name))


def _object_files(paths: list[str]) -> Iterator[str]:
    for path in (app_file(paths), environment_object(paths)):
        if path is not None:
            yield path
    for folder in ("agents", "tools", *RESOURCE_FOLDERS):
        for candidates in object_files(paths, folder).values():
            yield from candidates


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise AppError("app.encoding", f"not UTF-8: {error.reason}", where=path) from None


def write_folder(files: AppFiles, target: Path, format_: Format | None = None) -> int:
    """Write the app into a folder that is new or empty. Returns the number of files.

    Raises AppError app.exists (there is something) or app.write. Nothing is left of an app that
    cannot be written as a whole.
    """
    refuse_full(target)
    # Everything is read and converted before the first file is written.
    content = list(rewritten(files, format_))
    new = not target.exists()
    try:
        for rel, data in content:
            path = target / rel
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except BaseException as error:
        _clear(target, new)
        if not isinstance(error, OSError):
            raise
        raise AppError("app.write", f"cannot write: {error.strerror}", where=str(target)) from None
    return len(content)


def _clear(target: Path, new: bool) -> None:
    """Take back what was written into a folder that was new, or else empty."""
    with suppress(OSError):
        for path in [target] if new else list(target.iterdir()):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def refuse_full(target: Path) -> None:
    """Raises AppError app.exists where `target` is a file or a folder with something in it."""
    try:
        full = target.exists() and (not target.is_dir() or any(target.iterdir()))
    except OSError as error:
        raise AppError("app.write", f"cannot read: {error.strerror}", where=str(target)) from None
    if full:
        raise AppError(
            "app.exists",
            "there is something already",
            where=str(target),
            hint="Name a new or an empty folder.",
        )
