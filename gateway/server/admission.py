"""How many calls there are, exactly: one slot each, in all and for each source."""

from __future__ import annotations

from gateway.errors import AdmissionError


class Slot:
    """One admitted call. `release` gives it back; later releases do nothing."""

    __slots__ = ("_admission", "source")

    def __init__(self, admission: Admission, source: str) -> None:
        self._admission: Admission | None = admission
        self.source = source

    def release(self) -> None:
        """Give the slot back."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._free(self.source)


class Admission:
    """The counter. Nothing here waits: a call is let in at once or refused at once."""

    def __init__(self, max_calls: int, max_calls_per_source: int, retry_after_s: int) -> None:
        self._max_calls = max_calls
        self._max_per_source = max_calls_per_source
        self._retry_after_s = retry_after_s
        self._by_source: dict[str, int] = {}
        self._active = 0
        self._draining = False

    @property
    def active(self) -> int:
        """Calls that hold a slot."""
        return self._active

    @property
    def draining(self) -> bool:
        """Whether the server takes no more calls."""
        return self._draining

    def drain(self) -> None:
        """Take no more calls, for good."""
        self._draining = True

    def check(self, source: str) -> None:
        """Whether a call from `source` could enter now. Raises AdmissionError (503)."""
        if self._draining:
            raise self._refusal("admission.draining", "this server is closing")
        if self._active >= self._max_calls:
            raise self._refusal("admission.full", "all lines are busy")
        if self._by_source.get(source, 0) >= self._max_per_source:
            raise self._refusal("admission.source", "too many calls from this address")

    def enter(self, source: str) -> Slot:
        """Take a slot. Raises AdmissionError (503)."""
        self.check(source)
        self._active += 1
        self._by_source[source] = self._by_source.get(source, 0) + 1
        return Slot(self, source)

    def _free(self, source: str) -> None:
        self._active -= 1
        left = self._by_source[source] - 1
        if left:
            self._by_source[source] = left
        else:
            del self._by_source[source]

    def _refusal(self, code: str, message: str) -> AdmissionError:
        return AdmissionError(code, message, status=503, retry_after_s=self._retry_after_s)
