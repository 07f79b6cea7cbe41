"""A report as JUnit XML: one suite, a test case for each evaluation."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from gateway.evaluate.result import MARKS, EvaluationResult, Line, Report, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot carry, not even escaped."""


def to_junit(report: Report) -> bytes:
    """The XML document."""
    seconds = f"{sum(result.seconds for result in report.results):.3f}"
    counts = {
        "tests": str(len(report.results)),
        "failures": str(report.count(Verdict.FAILED)),
        "errors": "0",
        "time": seconds,
    }
    root = ElementTree.Element("testsuites", counts)
    name = _clean(f"{report.app} ({report.channel})")
    # The strictest schema of readers knows no skipped ones of all suites together.
    skipped = str(report.count(Verdict.NOT_RUN))
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, "skipped": skipped, **counts})
    for result in report.results:
        _case(suite, result)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _case(suite: ElementTree.Element, result: EvaluationResult) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {
            "name": _clean(result.name),
            "classname": _clean(result.file),
            "time": f"{result.seconds:.3f}",
        },
    )
    told = [line for turn in result.turns for line in turn.lines] + list(result.whole)
    if result.verdict is Verdict.FAILED:
        failed = [line for line in told if line.verdict is Verdict.FAILED]
        message = failed[0].text if len(failed) == 1 else f"{len(failed)} requirements do not hold"
        failure = ElementTree.SubElement(
            case, "failure", {"type": "evaluation", "message": _clean(message)}
        )
        failure.text = _clean(details(result))
    elif result.verdict is Verdict.NOT_RUN:
        reasons = [d for one in told if one.verdict is Verdict.NOT_RUN for d in one.difference]
        why = result.reason or "; ".join(dict.fromkeys(reasons))
        ElementTree.SubElement(case, "skipped", {"message": _clean(why)})


def details(result: EvaluationResult) -> str:
    """The failures of an evaluation as text: the turn, the line, the difference."""
    lines: list[str] = []
    for turn in result.turns:
        if turn.verdict is Verdict.FAILED:
            lines.append(f"user: {turn.user}")
            if turn.understood:
                lines.append(f"understood: {turn.understood}")
            lines += _failures(turn.lines, result.file)
    lines += _failures(result.whole, result.file)
    return "\n".join(lines)


def _failures(lines: tuple[Line, ...], file: str) -> list[str]:
    told = []
    for line in lines:
        if line.verdict is Verdict.FAILED:
            place = f"  ({file}:{line.line})" if line.line else ""
            told.append(f"  {MARKS[line.verdict]} {line.text}{place}")
            told += [f"      {text}" for text in line.difference]
    return told


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
