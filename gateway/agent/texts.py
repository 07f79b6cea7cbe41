"""Texts that an object of the app names by path or holds itself."""

from __future__ import annotations

from gateway.agent.app.models import App, SourceCode
from gateway.errors import AppError


def source(app: App, value: str, where: str) -> SourceCode:
    """The text that `value` stands for: a file of the app, else the value itself.

    Raises AppError app.missing_file, app.encoding.
    """
    if "\n" in value or not value.endswith((".py", ".txt", ".yaml", ".yml", ".json")):
        return SourceCode(where=where, text=value)
    path = value.removeprefix("./")
    if path not in app.files.paths():
        raise AppError(
            "app.missing_file",
            f"the app has no file {value!r}",
            where=where,
            hint="Paths are relative to the app's root folder.",
        )
    try:
        text = app.read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AppError("app.encoding", f"not UTF-8: {error.reason}", where=path) from None
    return SourceCode(where=path, text=text.replace("\r\n", "\n"))
