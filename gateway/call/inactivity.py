"""The silence clock: runs while the caller has heard everything and nobody is doing anything."""

from __future__ import annotations


class Inactivity:
    """Fires once for each silence of `timeout_s`; None: never.

    Noise does not reset the clock. While a sound may still turn out to be words, the tick is held
    back, for at most `noise_limit_s`.
    """

    __slots__ = ("_armed_at", "_noise_limit_s", "_timeout_s")

    def __init__(self, timeout_s: float | None, noise_limit_s: float) -> None:
        self._timeout_s = timeout_s
        self._noise_limit_s = noise_limit_s
        self._armed_at: float | None = None

    @property
    def armed(self) -> bool:
        """Whether the clock runs."""
        return self._armed_at is not None

    @property
    def seconds(self) -> int:
        """The time-out in whole seconds, as the agent reads it."""
        return round(self._timeout_s or 0)

    def fires(self, silent: bool, hearing: bool, now: float) -> bool:
        """Move to `now`. `silent`: nothing is said, due or open; `hearing`: a sound is pending."""
        if self._timeout_s is None or not silent:
            self._armed_at = None
            return False
        if self._armed_at is None:
            self._armed_at = now
        deadline = self._armed_at + self._timeout_s
        if hearing:
            deadline += self._noise_limit_s
        if now + 1e-6 < deadline:
            return False
        self._armed_at = None
        return True
