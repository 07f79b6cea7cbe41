"""What is refused at the door: counted, and told to the operator without a flood of lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import structlog

from gateway.errors import GatewayError
from gateway.server.answers import status_of
from gateway.server.head import HeadError
from gateway.server.metrics import Metrics

log = structlog.get_logger("gateway.server")

LINES_PER_S: Final = 5
"""More refusals within a second are counted in the next line."""


class Refusals:
    """All refusals of a server. Says no path with a token in it, no header and no body."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def tell(
        self, error: GatewayError | HeadError, remote: str, route: str, dialect: str = ""
    ) -> None:
        """One refusal. `remote`: who asked; `route`: the pattern of the address."""
        self._metrics.refused(error.code)
        second = int(self._clock())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_S:
            self._left_out += 1
            return
        self._lines += 1
        more = {"left_out": self._left_out} if self._left_out else {}
        self._left_out = 0
        log.warning(
            "call.refused",
            status=status_of(error).value,
            code=error.code,
            message=error.message,
            hint=error.hint or "",
            dialect=dialect,
            route=route,
            remote=remote,
            **more,
        )
