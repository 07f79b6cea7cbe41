"""Every known pitfall of telephone dialects is answered by a test that exists, or by a reason."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TABLE: dict[int, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "pitfalls.yaml").read_text(encoding="utf-8")
)


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_there_are_eighty_four() -> None:
    assert list(TABLE) == list(range(1, 85))


@pytest.mark.parametrize("number", TABLE)
def test_each_has_a_test_or_a_reason(number: int) -> None:
    entry = TABLE[number]
    assert set(entry) in ({"lesson", "tests"}, {"lesson", "why"})
    assert entry["lesson"].endswith(".")
    if "why" in entry:
        assert len(entry["why"]) > 30
        return
    assert entry["tests"]
    for test in entry["tests"]:
        path, _, name = test.partition("::")
        assert name in functions(path), f"there is no {test}"
