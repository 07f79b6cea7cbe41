"""App code's output becomes bounded log lines with the session's id."""

from __future__ import annotations

import logging
import threading

import pytest
from structlog.testing import capture_logs

from gateway.agent import scope
from gateway.agent.platform import CallbackContext
from gateway.agent.scope import AppOutput, ScopeFilter, app_print, current, nested, scoped


@pytest.fixture
def lines() -> list[tuple[str, str]]:
    """(session id, text) of each log line."""
    return []


@pytest.fixture(autouse=True)
def _logged(
    lines: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append((getattr(record, "session", ""), record.getMessage()))

    handler = Collect()
    handler.addFilter(ScopeFilter())
    monkeypatch.setattr(scope.app_log, "handlers", [handler])
    caplog.set_level(logging.INFO, scope.app_log.name)


def test_print_is_logged_line_by_line(lines: list[tuple[str, str]]) -> None:
    scoped(lambda: app_print("a", 1, "b\nc", sep="-"), "s1", None, 1, show=True)()
    assert lines == [("s1", "a-1-b"), ("s1", "c")]


def test_a_stream_is_logged_by_full_lines_and_stays_open(lines: list[tuple[str, str]]) -> None:
    output = AppOutput()

    def code() -> None:
        output.write("a")
        output.close()
        output.write("b\nrest")

    scoped(code, "s1", None, 1, show=True)()
    assert lines == [("s1", "ab")]


def test_a_call_may_log_only_so_much(lines: list[tuple[str, str]]) -> None:
    def code() -> None:
        for number in range(1000):
            app_print(number)

    scoped(code, "s1", None, 1, show=True)()
    assert len(lines) == scope.MAX_LINES
    assert lines[-1][1] == "further output of this call is not logged"
    scoped(lambda: app_print("again"), "s1", None, 1, show=True)()
    assert lines[-1] == ("s1", "again")


def test_a_line_is_cut(lines: list[tuple[str, str]]) -> None:
    scoped(lambda: app_print("x" * 10_000), "s1", None, 1, show=True)()
    assert len(lines[0][1]) == scope.MAX_LINE_CHARS


def test_what_app_code_writes_stays_out_of_the_logs_unless_a_setting_says_so(
    lines: list[tuple[str, str]],
) -> None:
    def code() -> None:
        app_print("the caller said 4711")
        logging.getLogger("anything").warning("the caller said 4711")
        AppOutput().write("the caller said 4711\n")
        with nested(CallbackContext()):
            app_print("the caller said 4711")

    with capture_logs() as told:
        scoped(code, "s1", None, 1)()
    assert lines == []
    (line,) = told
    assert (line["event"], line["session"]) == ("app.output_withheld", "s1")
    assert (line["lines"], line["more"]) == (3, False)


@pytest.mark.parametrize("shown", [False, True])
def test_threads_that_app_code_starts_itself_write_only_where_a_setting_says_so(
    lines: list[tuple[str, str]], shown: bool
) -> None:
    def spy() -> None:
        app_print("the caller said 4711")
        AppOutput().write("the caller said 4711\n")
        scope.app_log.getChild("x").handle(  # As any library that app code uses would.
            logging.LogRecord("library", logging.INFO, "", 0, "the caller said 4711", (), None)
        )

    def code() -> None:
        thread = threading.Thread(target=spy)
        thread.start()
        thread.join()

    scope.show_own_threads(shown)
    try:
        scoped(code, "s1", None, 1)()
    finally:
        scope.show_own_threads(False)
    assert [text for _, text in lines] == (["the caller said 4711"] * 3 if shown else [])


def test_scopes_nest_and_end() -> None:
    inner_context = CallbackContext()

    def code() -> None:
        outer = current()
        assert outer is not None
        with nested(inner_context):
            inner = current()
            assert inner is not None
            assert inner.context is inner_context
            assert inner.deadline == outer.deadline
        assert current() is outer

    scoped(code, "s1", None, 1, show=True)()
    assert current() is None
