"""Every rule in virtual time, on platforms that echo marks and on those that do not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.call.harness import EMULATED, NATIVE
from tests.call.rules.outcome import check
from tests.call.rules.row import Row
from tests.call.rules.table import ROWS
from tests.call.rules.virtual import run


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rule(row: Row) -> None:
    check(row, run(row, EMULATED), exact=True)


@pytest.mark.parametrize("row", ROWS[::5], ids=lambda row: row.name)
def test_rule_where_the_platform_has_marks(row: Row) -> None:
    check(row, run(row, NATIVE), exact=True)


def test_there_is_a_row_for_each_rule() -> None:
    assert len(ROWS) >= 150
    assert not [name for name, count in Counter(row.name for row in ROWS).items() if count > 1]
