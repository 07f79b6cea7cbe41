"""The same rules over real sockets: what happens and in what order, not at which millisecond."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.call.rules.outcome import check
from tests.call.rules.row import Row
from tests.call.rules.table import ROWS
from tests.call.rules.wire import run

CHANNELS = ("ces", "twilio")
WIRED = [row for row in ROWS if row.wire]
SAMPLE = [row for row in WIRED if row.seconds <= 8][::27]
SAMPLE += [next(row for row in WIRED if row.bed and row not in SAMPLE)]
AT_ONCE = 10
"""Calls at one time."""


async def failures(rows: Sequence[Row], channel: str) -> list[str]:
    """Run rows beside each other; what went wrong with which."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(row: Row) -> str | None:
        async with gate:
            outcome = await run(row, channel)
        try:
            check(row, outcome, exact=False)
        except AssertionError as error:
            return f"{row.name}: {' '.join(str(error).split())[:200]}"
        return None

    found = await asyncio.gather(*(one(row) for row in rows))
    return [failure for failure in found if failure is not None]


@pytest.mark.slow
async def test_a_sample_of_the_rules_holds_over_the_wire() -> None:
    found = await asyncio.gather(*(failures(SAMPLE, channel) for channel in CHANNELS))
    assert dict(zip(CHANNELS, found, strict=True)) == {channel: [] for channel in CHANNELS}


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("channel", CHANNELS)
async def test_every_rule_holds_over_the_wire(channel: str) -> None:
    found = await failures(WIRED, channel)
    assert not found, "\n".join(found)
