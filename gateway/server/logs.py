"""Structured logs on standard error, of this project and of its libraries alike."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import orjson
import structlog
from structlog.typing import Processor

from gateway.config import LogSettings

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


def set_up(settings: LogSettings) -> None:
    """Configure structlog and the standard library's logging for the whole process."""
    level = getattr(logging, settings.level.upper())
    as_json = settings.format == "json" or (settings.format == "auto" and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        without_words,
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
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))
