"""The table of the service's behaviours names tests that exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parent.parent
TABLE = yaml.safe_load((TESTS / "runtime/google_behaviours.yaml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(test, id=f"{group}: {behaviour}")
    for group, rows in TABLE.items()
    for behaviour, tests in rows.items()
    for test in tests
]


@cache
def _tests(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


@pytest.mark.parametrize("test", ROWS)
def test_every_behaviour_has_its_test(test: str) -> None:
    file, _, name = test.partition("::")
    assert name in _tests(file)
