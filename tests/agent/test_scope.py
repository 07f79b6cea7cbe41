"""App code's output becomes bounded log lines with the session's id."""

from __future__ import annotations

import logging

import pytest

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
            lines.append((record.session_id, record.getMessage()))  # type: ignore[attr-defined]

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

    scoped(code, "s1", None, 1)()
    assert lines == [("s1", "app output withheld, lines: 3")]


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
