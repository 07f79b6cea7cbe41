"""The lines of a transcript as flat rows: what tables and logs get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

COLUMNS: Final = {
    "call_id": "STRING",
    "session": "STRING",
    "channel": "STRING",
    "language": "STRING",
    "started_at": "TIMESTAMP",
    "call_reason": "STRING",
    "redacted": "BOOLEAN",
    "line": "INTEGER",
    "start_s": "FLOAT",
    "end_s": "FLOAT",
    "speaker": "STRING",
    "kind": "STRING",
    "text": "STRING",
    "turn": "INTEGER",
    "reason": "STRING",
}
"""Names of the columns and their types in BigQuery."""


def rows(transcript: Path) -> Iterator[dict[str, Any]]:
    """One row for each line of a transcript file; a call without lines gives none."""
    call = orjson.loads(transcript.read_bytes())
    whole = {
        key: call[key]
        for key in ("call_id", "session", "channel", "language", "started_at", "redacted")
    }
    for number, line in enumerate(call["lines"]):
        yield {
            **whole,
            "call_reason": call["reason"],
            "line": number,
            "start_s": line["start"],
            "end_s": line["end"],
            "speaker": line["speaker"],
            "kind": line.get("kind", "speech"),
            "text": line["text"],
            "turn": line.get("turn"),
            "reason": line.get("reason"),
        }
