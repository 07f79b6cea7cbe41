"""Logs: one line an event, JSON when asked, and never the caller's words."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
import structlog

from gateway.config import LogSettings
from gateway.logs import OWN, set_up, without_message


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """The process-wide configuration is the other tests' too."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


def test_json_lines_carry_the_call_and_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LogSettings(format="json"))
    with structlog.contextvars.bound_contextvars(call_id="CA1"):
        structlog.get_logger().info("call.text", text="my secret", digits="1234", n=1)
        logging.getLogger("aiohttp.server").warning("odd %s", "thing")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["event"], first["call_id"], first["n"]) == ("call.text", "CA1", 1)
    assert (first["text"], first["digits"]) == ("[hidden]", "[hidden]")
    assert (second["event"], second["logger"]) == ("odd thing", "aiohttp.server")


def test_the_level_counts_and_people_get_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LogSettings(format="console", level="warning"))
    structlog.get_logger().info("hidden.event")
    structlog.get_logger().warning("shown.event", code="a.b")
    shown = capsys.readouterr().err
    assert "hidden.event" not in shown
    assert "shown.event" in shown


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_traceback_tells_where_and_no_values(
    capsys: pytest.CaptureFixture[str], style: Literal["json", "console"]
) -> None:
    set_up(LogSettings(format=style))
    spoken = "my number is 4711"
    try:
        raise RuntimeError(f"{len(spoken)} characters")
    except RuntimeError:
        structlog.get_logger().exception("call.failed")
        logging.getLogger("aiohttp.server").exception("page failed")
    shown = capsys.readouterr().err
    assert shown.count("test_a_traceback_tells_where_and_no_values") >= 2
    assert shown.count("17 characters") >= 2
    assert "4711" not in shown.replace('spoken = "my number is 4711"', "")


def test_what_an_exception_says_is_no_part_of_its_log_line() -> None:
    with pytest.raises(ValueError, match="4711") as caught:
        int("4711#")
    shown = without_message(caught.value)
    assert shown.startswith("ValueError\n  ")
    assert f"{__file__}:" in shown
    assert "4711" not in shown


def test_where_app_code_runs_exceptions_say_nothing_and_its_own_logging_is_shown() -> None:
    stream = io.StringIO()
    set_up(LogSettings(format="json"), stream, runs_app=True)
    try:
        int("4711#")
    except ValueError:
        structlog.get_logger().exception("turn.failed", session="s1")
        logging.getLogger("anything").exception("failed")
    logging.getLogger("anything").info("shown", extra={"session": "s1"})
    own, others, shown = map(json.loads, stream.getvalue().splitlines())
    assert own["exception"].startswith("ValueError\n  ")
    assert others["exception"].startswith("ValueError\n  ")
    assert "4711" not in stream.getvalue()
    assert (shown["event"], shown["session"]) == ("shown", "s1")


def test_a_reader_that_goes_away_costs_nobody_a_call() -> None:
    stream = io.StringIO()
    set_up(LogSettings(format="json"), stream)
    stream.close()
    structlog.get_logger().warning("call.error", code="a.b")
    logging.getLogger(OWN).warning("the same")
