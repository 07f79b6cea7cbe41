"""Timeline lines become notes that may be kept: masked before they touch the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.records.redaction import DIGITS, Redactor, shares

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "call_started": ("channel", "call_id", "from", "to", "language"),
    "user_speech_started": (),
    "user_speech_ended": (),
    "user_text": ("text",),
    "dtmf": ("digits",),
    "utterance_queued": ("id", "source", "text", "uri", "turn"),
    "utterance_started": ("id",),
    "utterance_ended": ("id", "reason", "heard_s", "heard_text"),
    "barge_in": ("by",),
    "transfer": ("target",),
    "inactivity": ("seconds",),
    "error": ("code",),
    "call_ended": ("reason",),
}
"""What is kept of each kind; all else (metadata, messages) stays out of records."""
_WORDS: Final = {"user_text": "text", "utterance_queued": "text", "utterance_ended": "heard_text"}
_PARTIES: Final = ("from", "to", "target")


class Scribe:
    """Makes the notes of one call.

    A note is `{"kind", …}`. With redaction, words are masked, `hidden` tells where (shares of the
    time that the line takes), and `plain` holds what was masked where somebody may have it.
    """

    def __init__(self, *, redact: bool, keep_plain: bool, words: bool) -> None:
        self._redactor = Redactor() if redact else None
        self._keep_plain = keep_plain
        self._words = words

    def note(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:
        """What is kept of a line; None for nothing."""
        if kind == "user_text" and not fields.get("final", True):
            return None
        note = {key: fields[key] for key in _KEPT[kind] if key in fields}
        if self._redactor is not None:
            self._mask(kind, note, self._redactor)
        if not self._words:
            self._without_words(kind, note)
        return {"kind": kind, **note}

    def _mask(self, kind: str, note: dict[str, Any], redactor: Redactor) -> None:
        plain: dict[str, Any] = {}
        key = _WORDS.get(kind, "")
        text = note.get(key)
        if isinstance(text, str) and text:
            redacted = redactor.redact(text, by_caller=kind == "user_text")
            if redacted.hidden:
                plain[key], note[key] = text, redacted.text
                note["hidden"] = shares(text, redacted.hidden)
        if "digits" in note:
            plain["digits"], note["digits"] = note["digits"], DIGITS
        for party in _PARTIES:
            if note.get(party):
                plain[party] = note[party]
                note[party] = redactor.redact(str(note[party])).text
        if plain and self._keep_plain:
            note["plain"] = plain

    @staticmethod
    def _without_words(kind: str, note: dict[str, Any]) -> None:
        for key in (_WORDS.get(kind, ""), "digits"):
            note.pop(key, None)
        plain = note.get("plain")
        if plain is not None:
            note["plain"] = {k: v for k, v in plain.items() if k in _PARTIES}


def unmasked(note: Mapping[str, Any]) -> dict[str, Any]:
    """The note as it was said, where that was kept."""
    return {**note, **note.get("plain", {})}
