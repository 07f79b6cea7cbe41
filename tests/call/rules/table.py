"""All rows."""

from __future__ import annotations

from tests.call.rules import rows_barge_in, rows_caller, rows_playback

ROWS = [*rows_barge_in.ROWS, *rows_playback.ROWS, *rows_caller.ROWS]
