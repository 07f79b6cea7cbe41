"""JSON values compared: what is the same, and where two values differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_SHOWN_CHARS = 200
_ENDS = " \t\r\n.,;:!?"


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1, nor 1 the text "1"."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def fits(expected: Any, actual: Any) -> bool:
    """Like `same`, for what was understood from speech: case and outer punctuation are nothing."""
    if isinstance(expected, str) and isinstance(actual, str):
        return _folded(expected) == _folded(actual)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        keys = expected.keys() == actual.keys()
        return keys and all(fits(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(fits, expected, actual))
    return same(expected, actual)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_ENDS)


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ: one line a place."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in dict.fromkeys([*expected, *actual]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield f"{inner}: missing, expected {shown(expected[key])}"
            elif key not in expected:
                yield f"{inner}: not expected, got {shown(actual[key])}"
            else:
                yield from differences(expected[key], actual[key], inner)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not same(expected, actual):
        place = f"{path}: " if path else ""
        yield f"{place}expected {shown(expected)}, got {shown(actual)}"


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
