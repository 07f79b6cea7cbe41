"""What of a call's timeline is kept: masked before it is written, plain only where asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.records.scribe import Scribe, unmasked

SECRET = "my number is 4711 2233"


def scribe(**over: bool) -> Scribe:
    return Scribe(**{"redact": True, "keep_plain": False, "words": True, **over})


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("user_text", {"text": SECRET, "final": True}),
        ("utterance_queued", {"id": 1, "text": SECRET, "turn": 1}),
        ("utterance_ended", {"id": 1, "heard_text": SECRET, "reason": "completed"}),
        ("dtmf", {"digits": "47112233"}),
        ("call_started", {"call_id": "CA1", "from": "+4915147112233", "to": "47112233"}),
        ("transfer", {"target": "+4915147112233", "metadata": {"note": SECRET}}),
    ],
)
def test_no_digit_of_a_number_is_written(kind: str, fields: dict[str, Any]) -> None:
    note = scribe().note(kind, fields)
    assert "47112233" not in json.dumps(note).replace(" ", "")
    assert "plain" not in (note or {})


def test_where_the_words_were_is_kept_as_shares() -> None:
    note = scribe().note("user_text", {"text": SECRET, "final": True})
    assert note is not None
    assert note["text"] == "my number is [number]"
    ((first, last),) = note["hidden"]
    assert 0 < first < last == 1.0


def test_plain_words_are_kept_beside_where_somebody_may_have_them() -> None:
    note = scribe(keep_plain=True).note("user_text", {"text": SECRET})
    assert note is not None
    assert unmasked(note)["text"] == SECRET
    assert note["text"] == "my number is [number]"


def test_without_redaction_words_stay() -> None:
    note = scribe(redact=False).note("dtmf", {"digits": "4711"})
    assert note == {"kind": "dtmf", "digits": "4711"}


def test_where_no_words_are_kept_only_their_place_is() -> None:
    quiet = scribe(words=False, keep_plain=True)
    note = quiet.note("user_text", {"text": SECRET})
    assert note is not None
    assert "text" not in note
    assert note["hidden"]
    assert "4711" not in json.dumps(note)
    assert "4711" not in json.dumps(quiet.note("dtmf", {"digits": "4711"}))


def test_words_that_may_still_change_are_not_kept() -> None:
    assert scribe().note("user_text", {"text": "my", "final": False}) is None


def test_messages_and_metadata_are_not_kept() -> None:
    note = scribe().note("error", {"code": "asset.timeout", "message": "at https://x/?key=1"})
    assert note == {"kind": "error", "code": "asset.timeout"}
