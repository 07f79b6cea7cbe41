"""Keys into strings of digits: de-duplicated, collected, and given out when complete."""

from __future__ import annotations

from gateway.call.policy import DtmfPolicy
from gateway.call.profile import CallProfile

KEYS = frozenset("0123456789*#ABCD")


class Keypad:
    """Collects the keys of one call."""

    __slots__ = ("_deadline", "_digits", "_last", "_profile", "finish_digit", "timeout_s")

    def __init__(self, profile: CallProfile) -> None:
        self._profile = profile
        self._digits = ""
        self._deadline: float | None = None
        self._last: tuple[str, float] | None = None
        self.finish_digit = profile.dtmf_finish_digit
        self.timeout_s = profile.dtmf_timeout_s

    @property
    def collecting(self) -> bool:
        """Whether keys wait for their end."""
        return bool(self._digits)

    def configure(self, policy: DtmfPolicy | None) -> None:
        """Take a response's settings; None: back to the profile's."""
        profile = self._profile
        finish = policy.finish_digit if policy else None
        timeout_s = policy.timeout_s if policy else None
        self.finish_digit = profile.dtmf_finish_digit if finish is None else finish
        self.timeout_s = profile.dtmf_timeout_s if timeout_s is None else timeout_s

    def press(self, keys: str, now: float) -> tuple[bool, list[str]]:
        """Take one event's keys: whether any was new, and the strings they completed.

        The same single key twice within `dtmf_dedupe_s` is one press told twice; an event with
        several keys is taken as it is.
        """
        keys = "".join(key for key in keys.upper() if key in KEYS)
        if not keys or self._is_echo(keys, now):
            return False, []
        done: list[str] = []
        for key in keys:
            if key == self.finish_digit and self._digits:
                done.append(self._take())
                continue
            self._digits += key
            # A finish key with nothing before it is the answer itself ("press # to go on").
            if key == self.finish_digit or len(self._digits) >= self._profile.dtmf_max_digits:
                done.append(self._take())
        if self._digits:
            self._deadline = now + self.timeout_s
        return True, done

    def forget(self) -> None:
        """Drop what was collected."""
        self._take()

    def expired(self, now: float) -> str | None:
        """The string that the inter-digit time-out completed, if it did."""
        if self._deadline is None or now < self._deadline:
            return None
        return self._take()

    def _is_echo(self, keys: str, now: float) -> bool:
        last, self._last = self._last, (keys, now) if len(keys) == 1 else None
        return (
            last is not None
            and len(keys) == 1
            and last[0] == keys
            and now - last[1] < self._profile.dtmf_dedupe_s
        )

    def _take(self) -> str:
        digits, self._digits = self._digits, ""
        self._deadline = None
        return digits
