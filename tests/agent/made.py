"""Small apps made in place, for tests that need one of a special shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from gateway.agent.app import App, read_app


def make_app(
    folder: Path,
    *,
    script: Any = None,
    app: dict[str, Any] | None = None,
    agents: dict[str, dict[str, Any]] | None = None,
    files: dict[str, Any] | None = None,
) -> Path:
    """An app: `agents` by display name, the first is the root; `files` are text or data."""
    described = agents or {"Main": {}}
    contents: dict[str, Any] = {
        "app.yaml": {"displayName": "Made", "rootAgent": next(iter(described)), **(app or {})},
        "scripted_model.yaml": script or {"default": [{"say": "Pardon?"}]},
    }
    for name, body in described.items():
        directory = name.replace(" ", "_")
        contents[f"agents/{directory}/{directory}.yaml"] = {"displayName": name, **body}
    contents.update(files or {})
    for path, content in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else _dump(path, content)
        file.write_text(text, encoding="utf-8")
    return folder


def _dump(path: str, content: Any) -> str:
    if path.endswith(".json"):
        return json.dumps(content)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def made_app(folder: Path, **parts: Any) -> App:
    """The same, read."""
    return read_app(make_app(folder, **parts))


def python_tool(name: str, code: str, **more: Any) -> dict[str, Any]:
    """The files of a Python tool."""
    return {
        f"tools/{name}/{name}.yaml": {
            "displayName": name,
            "pythonFunction": {"name": name, "pythonCode": f"tools/{name}/code.py"},
            **more,
        },
        f"tools/{name}/code.py": code,
    }
