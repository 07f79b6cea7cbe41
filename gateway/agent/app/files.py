"""The files of an exported app: a folder or a zip, read as one tree that cannot be left."""

from __future__ import annotations

import contextlib
import lzma
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Protocol

from gateway.errors import AppError

MAX_MEMBERS = 10_000
MAX_NAME_BYTES = 255
"""Of one file or folder, in UTF-8: no usual file system holds a longer one."""
MAX_LOOK = 1_000
"""How much of a folder without an app file is looked at."""
MAX_TOTAL_BYTES = 512 << 20
MAX_FILE_BYTES = 128 << 20
MAX_RATIO = 200
"""Expansion of a zip as a whole beyond which it counts as a bomb; text packs to about 1:20."""
RATIO_FREE_BYTES = 8 << 20
"""Zips that expand to less than this are never judged by their ratio."""

_ZIP_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
)
"""What the standard library raises for damaged or unknown zips."""

APP_FILES = ("app.yaml", "app.yml", "app.json")


class AppFiles(Protocol):
    """Read access to an app's files by path relative to the app root."""

    origin: str

    def paths(self) -> list[str]:
        """All files, `/`-separated, sorted."""
        ...

    def read(self, rel: str) -> bytes:
        """One file's bytes. Raises AppError app.path (leaves the app) or app.missing_file."""
        ...


def clean_path(rel: str) -> str:
    """`rel` without `.` parts and with `/` only. Raises AppError where it leaves the app."""
    text = rel.replace("\\", "/")
    path = PurePosixPath(text)
    if not text or "\0" in text or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise AppError(
            "app.path",
            "path leaves the app",
            where=rel[:200].replace("\0", "\\0"),
            hint="Paths are relative to the app's root folder, without '..'.",
        )
    return str(path)


def _left_out(rel: str) -> bool:
    """True for what tools leave behind among an app's files: hidden files, compiled code."""
    return any(part.startswith(".") or part == "__pycache__" for part in rel.split("/"))


def _same(name: str) -> str:
    """What differs by case or by accents' spelling only is one file on many systems."""
    return unicodedata.normalize("NFC", name).casefold()


def _file_name(info: zipfile.ZipInfo) -> str:
    """A member's name; UTF-8 where the zip has it without saying so, as some packers do."""
    if not info.flag_bits & 0x800:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


def _missing(origin: str, rel: str) -> AppError:
    return AppError(
        "app.missing_file",
        "the app has no such file",
        where=f"{origin}:{rel}",
        hint="Paths are relative to the app's root folder.",
    )


def _unreadable(where: str, error: OSError) -> AppError:
    return AppError("app.unreadable", f"cannot be read: {error.strerror}", where=where)


def _too_large(origin: str, rel: str) -> AppError:
    return AppError(
        "app.size", f"file is larger than {MAX_FILE_BYTES >> 20} MiB", where=f"{origin}:{rel}"
    )


class FolderFiles:
    """An app in a folder. Symbolic links may point anywhere inside the folder only."""

    def __init__(self, root: Path) -> None:
        self.origin = str(root)
        self._root = root.resolve()

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root)
        except (OSError, RuntimeError):
            # Links that lead to each other; which of both is raised depends on the Python.
            return False

    def _walk(self, folder: Path) -> Iterator[str | None]:
        """All files below a folder, and None for whatever else lies there."""
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            raise _unreadable(str(folder), error) from None
        for entry in entries:
            if _left_out(entry.name) or not self._inside(entry):
                yield None
            elif entry.is_dir():
                yield None
                if not entry.is_symlink():
                    yield from self._walk(entry)
            elif entry.is_file():
                yield entry.relative_to(self._root).as_posix()

    def paths(self) -> list[str]:
        """All files, sorted; hidden ones and compiled code are left out. Raises AppError.

        A folder without an app file may be anything, a whole disk too: there, only as much is
        looked at as shows whether it is the template of an app.
        """
        if any((self._root / name).is_file() for name in APP_FILES):
            found = list(islice(self._walk(self._root), MAX_MEMBERS + 1))
            if len(found) > MAX_MEMBERS:
                raise AppError(
                    "app.size",
                    f"the folder holds more than {MAX_MEMBERS} files",
                    where=self.origin,
                    hint="Keep what is not the app's out of its folder.",
                )
        else:
            found = []
            with contextlib.suppress(AppError):
                found.extend(islice(self._walk(self._root), MAX_LOOK))
        return sorted(path for path in found if path is not None)

    def read(self, rel: str) -> bytes:
        """One file's bytes. Raises AppError."""
        path = self._root / clean_path(rel)
        if not self._inside(path):
            raise AppError("app.path", "link leaves the app", where=f"{self.origin}:{rel}")
        if not path.is_file():
            raise _missing(self.origin, rel)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _too_large(self.origin, rel)
        try:
            return path.read_bytes()
        except OSError as error:
            raise _unreadable(f"{self.origin}:{rel}", error) from None


class ZipFiles:
    """An app in a zip, checked as a whole before anything of it is used; kept unpacked in memory.

    The app's files may stand at the zip's root or in one root folder. What tools leave
    behind among them is left out, as in a folder.
    """

    def __init__(self, path: Path) -> None:
        self.origin = str(path)
        self._content: dict[str, bytes] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                self._read(archive, path.stat().st_size)
        except _ZIP_FAULTS as error:
            raise AppError(
                "app.zip",
                f"not a zip that can be read: {error}",
                where=self.origin,
                hint="Export or pack the app again: the file is damaged, or cut short.",
            ) from None

    def _read(self, archive: zipfile.ZipFile, packed_bytes: int) -> None:
        members = self._checked(archive, packed_bytes)
        prefix = self._prefix(list(members))
        budget = MAX_TOTAL_BYTES
        for name, info in members.items():
            if not name.startswith(prefix):
                continue
            with archive.open(info) as member:
                data = member.read(min(MAX_FILE_BYTES, budget) + 1)
            budget -= len(data)
            # The directory of a zip may lie about sizes: what really comes out is counted too.
            if len(data) > MAX_FILE_BYTES or budget < 0:
                raise _too_large(self.origin, name)
            self._content[name[len(prefix) :]] = data

    def _checked(self, archive: zipfile.ZipFile, packed_bytes: int) -> dict[str, zipfile.ZipInfo]:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS:
            raise AppError(
                "app.zip_members", f"zip has more than {MAX_MEMBERS} members", where=self.origin
            )
        members: dict[str, zipfile.ZipInfo] = {}
        seen: set[str] = set()
        total = 0
        for info in infos:
            filename = _file_name(info)
            where = f"{self.origin}:{filename[:200]!r}"
            if filename.startswith("__MACOSX/"):
                continue
            try:
                name = clean_path(filename)
            except AppError:
                raise AppError(
                    "app.zip_path",
                    "zip member leaves the app",
                    where=where,
                    hint="Paths are relative, without '..': pack it with `app pack`.",
                ) from None
            if any(len(part.encode()) > MAX_NAME_BYTES for part in name.split("/")):
                raise AppError(
                    "app.zip_path",
                    f"a name in the zip is longer than {MAX_NAME_BYTES} bytes",
                    where=where,
                    hint="No folder can hold it: shorten the name, and pack it again.",
                )
            mode = info.external_attr >> 16
            if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and stat.S_IFMT(mode):
                raise AppError("app.zip_link", "zip member is a link or device", where=where)
            if info.flag_bits & 0x1:
                raise AppError("app.zip_encrypted", "zip member is encrypted", where=where)
            if info.is_dir() or _left_out(name):
                continue
            if _same(name) in seen:
                raise AppError("app.zip_duplicate", "zip has this member twice", where=where)
            seen.add(_same(name))
            members[name] = info
            total += info.file_size
        for name in members:
            if any(_same(str(parent)) in seen for parent in PurePosixPath(name).parents):
                raise AppError(
                    "app.zip_duplicate",
                    "zip has a file and a folder of one name",
                    where=f"{self.origin}:{name!r}",
                )
        if total > MAX_TOTAL_BYTES or (
            total > RATIO_FREE_BYTES and total > MAX_RATIO * max(packed_bytes, 1)
        ):
            raise AppError(
                "app.zip_size",
                f"zip would expand to {total} bytes",
                where=self.origin,
                hint=f"At most {MAX_TOTAL_BYTES >> 20} MiB and {MAX_RATIO} times its own size.",
            )
        return members

    def _prefix(self, names: list[str]) -> str:
        if any(name in APP_FILES for name in names):
            return ""
        roots = {
            name.split("/")[0]
            for name in names
            if name.count("/") == 1 and name.split("/")[1] in APP_FILES
        }
        if len(roots) == 1:
            return roots.pop() + "/"
        raise AppError(
            "app.no_app_file",
            "no app.yaml or app.json at the root of the zip or in its one folder",
            where=self.origin,
        )

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(self._content)

    def read(self, rel: str) -> bytes:
        """One file's bytes. Raises AppError."""
        data = self._content.get(clean_path(rel))
        if data is None:
            raise _missing(self.origin, rel)
        return data


def open_files(path: Path) -> AppFiles:
    """The files of the app at `path`, a folder or a zip. Raises AppError."""
    with contextlib.suppress(OSError):  # No path at all: far too long.
        if path.is_dir():
            return FolderFiles(path)
        if path.is_file():
            return ZipFiles(path)
    raise AppError(
        "app.missing",
        "no such folder or zip",
        where=str(path)[:200],
        hint="Give the path of an exported app, or make one with: voice-gateway app init FOLDER",
    )
