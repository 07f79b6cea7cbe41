"""The spool file: whole entries count, wherever it ends."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from gateway.records.entries import Kind, entry, entry_json, payload, scan

WHOLE = [
    entry_json(Kind.CALL, 1.0, {"a": 1}),
    entry(Kind.CALLER, 1.5, b"x" * 160),
    entry(Kind.UNHEARD, 1.6),
    entry(Kind.AGENT, 1.7, b"y" * 320),
    entry_json(Kind.END, 2.0, {}),
]


def read(data: bytes) -> list[tuple[int, float, bytes]]:
    file = io.BytesIO(data)
    return [(e.kind, e.t, payload(file, e)) for e in scan(file)]


def test_all_entries_come_back() -> None:
    assert read(b"".join(WHOLE)) == [
        (Kind.CALL, 1.0, b'{"a":1}'),
        (Kind.CALLER, 1.5, b"x" * 160),
        (Kind.UNHEARD, 1.6, b""),
        (Kind.AGENT, 1.7, b"y" * 320),
        (Kind.END, 2.0, b"{}"),
    ]


@given(st.integers(0, len(b"".join(WHOLE))))
def test_a_file_cut_anywhere_gives_its_whole_entries(length: int) -> None:
    data = b"".join(WHOLE)
    complete = read(data)
    some = read(data[:length])
    assert some == complete[: len(some)]
    room = sum(len(e) for e in WHOLE[: len(some) + 1])
    assert length < room or len(some) == len(WHOLE)


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(data: bytes) -> None:
    read(data)
    read(b"".join(WHOLE) + data)
