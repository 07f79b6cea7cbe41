"""docs/settings.md is what the code says, and the code says something of every setting."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from gateway.config import Settings
from gateway.platform_settings import PlatformsSettings

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """The cells of all rows of all tables."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if not inner:
            yield name
        for section in inner:
            yield from names(section)


def test_the_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "settings_page", "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_setting_stands_on_it_with_a_meaning() -> None:
    told = {row[0].strip("`") for row in rows()}
    assert set(names(Settings)) <= told
    assert [row[0] for row in rows() if not row[-1]] == []


def test_every_platform_has_its_place() -> None:
    for name in PlatformsSettings.model_fields:
        assert f"### platforms.{name}\n" in PAGE or f"`{name}`" in PAGE.partition("No keys of")[2]
