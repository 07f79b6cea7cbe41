"""One bound on everything that a fetch waits for."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gateway.errors import AssetError


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, in seconds, after which a fetch is given up."""

    at_s: float
    where: str

    @classmethod
    def after(cls, seconds: float, where: str) -> Deadline:
        """The deadline `seconds` from now."""
        return cls(time.monotonic() + seconds, where)

    def remaining_s(self) -> float:
        """Seconds left, more than 0. Raises AssetError asset.timeout when there are none."""
        left_s = self.at_s - time.monotonic()
        if left_s <= 0:
            raise self.passed()
        return left_s

    def passed(self) -> AssetError:
        """The error of a fetch that took too long."""
        return AssetError(
            "asset.timeout",
            "the file did not arrive in time",
            where=self.where,
            hint="see assets.timeout_s",
        )
