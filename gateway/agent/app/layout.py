"""Where the objects of an exported app stand among its files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.agent.app.files import APP_FILES
from gateway.errors import AppError

RESOURCE_FOLDERS = (
    "toolsets",
    "guardrails",
    "examples",
    "evaluations",
    "evaluationDatasets",
    "evaluationExpectations",
)
"""Folders of objects beside `agents` and `tools`."""
PYTHON_ENVIRONMENT = "pythonEnvFiles"
"""A folder with one object of its own name."""
ENVIRONMENT_FILE = "environment.json"
SUFFIXES = (".yaml", ".yml", ".json")
TEMPLATE_SUFFIXES = (".tftpl", ".tpl", ".tmpl", ".j2")
"""Files that a deployment tool makes the app's files of."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def app_file(paths: Iterable[str]) -> str | None:
    """The app's own file; None where there is none. Raises AppError app.ambiguous."""
    found = [path for path in paths if path in APP_FILES]
    if len(found) > 1:
        raise AppError(
            "app.ambiguous",
            "more than one file describes the app",
            where=", ".join(found),
            hint="Keep one of them.",
        )
    return found[0] if found else None


def object_files(paths: Iterable[str], folder: str) -> dict[str, list[str]]:
    """The files that may describe the objects of `folder`: subfolder → one file or more."""
    candidates: dict[str, list[str]] = {}
    for path in paths:
        parts = path.split("/")
        if len(parts) == 3 and parts[0] == folder and parts[2].endswith(SUFFIXES):
            candidates.setdefault(parts[1], []).append(path)
    return {
        directory: [path for path in found if _stem(path) == directory] or found
        for directory, found in sorted(candidates.items())
    }


def environment_object(paths: Iterable[str]) -> str | None:
    """The file of `pythonEnvFiles`; None where there is none."""
    wanted = {f"{PYTHON_ENVIRONMENT}/{PYTHON_ENVIRONMENT}{suffix}" for suffix in SUFFIXES}
    return next((path for path in paths if path in wanted), None)


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[1].rsplit(".", 1)[0]


def display_name(content: Mapping[str, Any], where: str) -> str:
    """The name by which others refer to an object: its own, else that of its folder.

    A `name` that is a resource name or a UUID refers to another place, so it does not count.
    """
    for key in ("displayName", "display_name", "name"):
        value = content.get(key)
        if not isinstance(value, str) or not value:
            continue
        if key != "name" or not ("/" in value or _UUID.fullmatch(value)):
            return value
    return where.split("/")[1]


def directory_name(name: str) -> str:
    """The folder that an export gives to an object of this display name."""
    return _ODD.sub("_", name) or "_"
