"""Reports for machines and people: JUnit XML that readers of it understand, a table that tells."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import junitparser
from rich.console import Console

from gateway.evaluate.junit import to_junit
from gateway.evaluate.result import EvaluationResult, Line, Report, TurnResult, Verdict
from gateway.evaluate.table import report_table

GOOD = EvaluationResult(
    "Good", "golden", "evaluations/g/g.yaml:2", (TurnResult("Hi", (Line(Verdict.PASSED, "x"),)),)
)
BAD = EvaluationResult(
    "Bad <\x00\ud800&>",
    "golden",
    "evaluations/b/b.yaml:2",
    (
        TurnResult("Hi", (Line(Verdict.PASSED, "says hello"),)),
        TurnResult(
            "Bye", (Line(Verdict.FAILED, 'says "bye"', ("expected: bye", "got: \x1b"), 9),), "By."
        ),
    ),
    seconds=1.25,
)
AWAY = EvaluationResult("Away", "scenario", "evaluations/a/a.yaml:2", reason="no model")
UNSURE = EvaluationResult(
    "Unsure",
    "golden",
    "evaluations/u/u.yaml:2",
    whole=(Line(Verdict.NOT_RUN, "meets Polite", ("no judge",)),),
)
REPORT = Report("my_app", "twilio", "scripted", (GOOD, BAD, AWAY, UNSURE))


def test_junit_is_read_by_others(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_bytes(to_junit(REPORT))
    [suite] = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.name, suite.tests, suite.failures, suite.skipped) == ("my_app (twilio)", 4, 1, 2)
    good, bad, away, unsure = suite
    assert (good.name, good.classname, good.is_passed) == ("Good", "evaluations/g/g.yaml", True)
    assert bad.name == "Bad <\ufffd\ufffd&>"
    assert bad.time == 1.25
    [failure] = bad.result
    assert isinstance(failure, junitparser.Failure)
    assert failure.message == 'says "bye"'
    assert failure.text.splitlines() == [
        "user: Bye",
        "understood: By.",
        '  ✗ says "bye"  (evaluations/b/b.yaml:9)',
        "      expected: bye",
        "      got: \ufffd",
    ]
    assert [case.result[0].message for case in (away, unsure)] == ["no model", "no judge"]
    assert away.is_skipped


ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {
        *("name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp"),
        *("hostname", "id", "package", "file", "log", "url", "version"),
    },
    "testcase": {"name", "classname", "time", "status", "assertions", "class", "file", "line"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
}
"""What Jenkins' schema of JUnit reports allows, by element; `name` and `tests` it wants."""


def test_junit_keeps_to_the_strictest_schema() -> None:
    root = ElementTree.fromstring(to_junit(REPORT))
    for element in root.iter():
        assert element.attrib.keys() <= ATTRIBUTES[element.tag]
    assert [child.tag for child in root] == ["testsuite"]
    for suite in root:
        assert {"name", "tests"} <= suite.attrib.keys()
        assert {case.tag for case in suite} == {"testcase"}
        assert all({"name", "classname"} <= case.attrib.keys() for case in suite)


def test_the_table_shows_differences_under_what_failed() -> None:
    console = Console(width=100, color_system=None)
    with console.capture() as shown:
        console.print(report_table(Report("a", "text", "m", (GOOD, AWAY, UNSURE))))
        console.print(report_table(Report("a", "twilio", "m", (BAD,))))
    lines = [line.rstrip() for line in shown.get().splitlines()]
    assert lines[:6] == [
        "✓ Good  evaluations/g/g.yaml:2",
        "    1. ✓ Hi",
        "○ Away  evaluations/a/a.yaml:2",
        "    no model",
        "○ Unsure  evaluations/u/u.yaml:2",
        "       ○ meets Polite",
    ]
    assert lines[-5:] == [
        "    2. ✗ Bye",
        "       understood: By.",
        '       ✗ says "bye"  evaluations/b/b.yaml:9',
        "          expected: bye",
        "          got: \ufffd",
    ]


def test_one_failure_makes_the_whole_fail_and_what_is_open_is_no_pass() -> None:
    assert [result.verdict for result in REPORT.results] == [
        Verdict.PASSED,
        Verdict.FAILED,
        Verdict.NOT_RUN,
        Verdict.NOT_RUN,
    ]
    assert REPORT.summary == "1 of 4 evaluations passed, 1 failed, 2 not run"
