"""Files of the agent app: paths relative to its root, and never out of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from gateway.errors import AppError, AssetError

ReadAppFile = Callable[[str], bytes]
"""Reads a file of the app by its path from the root, with forward slashes."""

_DRIVE = re.compile(r"[A-Za-z]:")


def app_path(uri: str) -> str:
    """The path inside the app that an app-relative uri names, without `.` segments.

    Raises AssetError asset.outside_app for a path that leads out, or might on some system.
    """
    if "\\" in uri or "\x00" in uri or uri.startswith("/") or _DRIVE.match(uri):
        raise _outside(uri)
    parts = [part for part in uri.split("/") if part not in ("", ".")]
    if ".." in parts or not parts:
        raise _outside(uri)
    return "/".join(parts)


def read_app_path(read: ReadAppFile | None, uri: str, max_bytes: int) -> bytes:
    """The bytes of an app-relative uri.

    `read` may raise AppError, OSError or KeyError. Raises AssetError: asset.outside_app,
    asset.not_found, asset.too_large.
    """
    path = app_path(uri)
    if read is None:
        raise AssetError("asset.not_found", "no app is loaded to hold this file", where=uri)
    try:
        data = read(path)
    except AppError as error:
        if error.code == "app.path":
            raise _outside(uri) from None
        if error.code == "app.size":
            raise AssetError("asset.too_large", error.message, where=uri) from None
        raise _missing(uri) from None
    except (OSError, KeyError):
        raise _missing(uri) from None
    if len(data) > max_bytes:
        raise AssetError(
            "asset.too_large",
            f"larger than {max_bytes} bytes",
            where=uri,
            hint="see assets.max_bytes",
        )
    return data


def _missing(uri: str) -> AssetError:
    return AssetError("asset.not_found", "the app has no such file", where=uri)


def _outside(uri: str) -> AssetError:
    return AssetError(
        "asset.outside_app",
        "the path leads out of the app",
        where=uri,
        hint="name files by their path from the app's root, as in audio/hold.wav",
    )
