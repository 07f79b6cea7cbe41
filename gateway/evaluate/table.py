"""A report as a table for people: what differs stands under each line that failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gateway.evaluate.result import MARKS, SCENARIO, EvaluationResult, Line, Report, Verdict

STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.NOT_RUN: "yellow",
    Verdict.SKIPPED: "dim",
}
MAX_USER_CHARS = 60
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What an agent may say and a terminal would obey."""


def report_table(report: Report) -> Table:
    """The table. A turn that passed is one row; one that failed shows its lines and differences."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for result in report.results:
        for mark, content in _rows(result):
            table.add_row(mark, content)
    return table


def _rows(result: EvaluationResult) -> Iterator[tuple[Text, RenderableType]]:
    title = Text(_plain(result.name), style="bold")
    title.append(f"  {result.where}", style="not bold dim")
    yield _mark(result.verdict), title
    if result.reason:
        yield Text(), Padding(Text(result.reason, style=STYLES[Verdict.NOT_RUN]), _indent(1))
    for number, turn in enumerate(result.turns, 1):
        user = turn.user if len(turn.user) <= MAX_USER_CHARS else f"{turn.user[:MAX_USER_CHARS]}…"
        row = Text.assemble(f"{number}. ", _mark(turn.verdict), _plain(f" {user}"))
        yield Text(), Padding(row, _indent(1))
        if turn.understood and turn.verdict is Verdict.FAILED:
            yield (
                Text(),
                Padding(Text(_plain(f"understood: {turn.understood}"), style="dim"), _indent(2)),
            )
        if result.kind == SCENARIO:
            # Nothing is judged in its turns; they tell what led to the verdicts on the whole.
            for told in (*turn.called, *turn.said):
                yield Text(), Padding(Text(_plain(told), style="dim"), _indent(2))
        yield from _lines(turn.lines, result)
    yield from _lines(result.whole, result, every=True)


def _lines(
    lines: Iterable[Line], result: EvaluationResult, *, every: bool = False
) -> Iterator[tuple[Text, RenderableType]]:
    """What failed or could not be judged; with `every`, what passed, too."""
    for line in lines:
        if not every and line.verdict in (Verdict.PASSED, Verdict.SKIPPED):
            continue
        row = Text.assemble(_mark(line.verdict), _plain(f" {line.text}"))
        if line.line:
            row.append(f"  {result.file}:{line.line}", style="dim")
        yield Text(), Padding(row, _indent(2))
        for difference in line.difference:
            yield Text(), Padding(Text(_plain(difference)), _indent(3))


def _plain(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def _indent(level: int) -> tuple[int, int, int, int]:
    return (0, 0, 0, 3 * level - 1)


def _mark(verdict: Verdict) -> Text:
    return Text(MARKS[verdict], style=STYLES[verdict])
