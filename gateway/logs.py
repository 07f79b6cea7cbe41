"""Structured logs of a process, of this project and of its libraries alike.

All lines go through one handler of the standard library: whoever reads them may go away, and a call
must not end by it.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import Processor

from gateway.config import LogSettings

OWN: Final = "voice-gateway"
"""Name of the standard library's logger that this project's lines pass."""

_WORDS: Final = frozenset(
    {"text", "digits", "transcript", "payload", "variables", "audio", "token", "authorization"}
)

# The values of local variables are the caller's words, tokens and settings; structlog's own
# choices, in JSON and (where rich is installed) on a terminal, print them.
_WHERE: Final = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)


def without_words(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Hide what a caller said or typed, and secrets, should a line carry them by mistake."""
    for name in _WORDS & event.keys():
        event[name] = "[hidden]"
    return event


def without_message(error: BaseException | None) -> str:
    """Type of an exception and where it was raised, innermost first; never what it says."""
    frames = traceback.extract_tb(error.__traceback__ if error is not None else None)
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in reversed(frames)]
    return "\n  ".join([type(error).__name__, *places])


def without_messages(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Exceptions by `without_message`: `int('12#')` quotes the caller's digits."""
    if told := event.pop("exc_info", None):
        error = told if isinstance(told, BaseException) else sys.exc_info()[1]
        event["exception"] = without_message(told[1] if isinstance(told, tuple) else error)
    return event


def set_up(
    settings: LogSettings, stream: TextIO | None = None, *, runs_app: bool = False
) -> logging.Handler:
    """Configure structlog and the standard library's logging for the whole process.

    `stream`: where lines go, standard error by default. `runs_app`: app code runs in this process;
    its own logging has the level of ours, and what exceptions say is hidden unless its output is
    shown. Returns the handler that all lines go through.
    """
    stream = stream if stream is not None else sys.stderr
    level = getattr(logging, settings.level.upper())
    as_json = settings.format == "json" or (settings.format == "auto" and not stream.isatty())
    hidden: list[Processor] = [] if settings.app_output or not runs_app else [without_messages]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_words,
        *hidden,
    ]
    last: list[Processor] = (
        [
            structlog.processors.ExceptionRenderer(_WHERE),
            structlog.processors.JSONRenderer(
                serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
            ),
        ]
        if as_json
        else [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_own_logger,
        cache_logger_on_first_use=False,
    )
    handler = _Lines(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.ExtraAdder(allow=["session"]),
                *shared,
                structlog.stdlib.add_logger_name,
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level if runs_app else max(level, logging.WARNING))
    logging.getLogger(OWN).setLevel(level)
    return handler


class _Lines(logging.StreamHandler[TextIO]):
    def handleError(self, _record: logging.LogRecord) -> None:
        """Whoever read this is gone."""


def _own_logger(*_names: Any) -> logging.Logger:
    return logging.getLogger(OWN)
