"""Does a timeline record match an event pattern?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.simulate.scenario import EventPattern

TimelineRecord = Mapping[str, Any]
"""One line of the timeline: `t`, `kind` and the kind's fields."""


def matches(pattern: EventPattern, record: TimelineRecord) -> bool:
    """True where the kind is the same and every given field matches."""
    if record.get("kind") != pattern.kind:
        return False
    return all(_value(wanted, record.get(key)) for key, wanted in pattern.fields.items())


def _value(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, str):
        return re.search(wanted, _text(actual), re.IGNORECASE) is not None
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            _value(value, actual.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list)
            and len(wanted) == len(actual)
            and all(_value(one, other) for one, other in zip(wanted, actual, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    return bool(wanted == actual)


def _text(actual: Any) -> str:
    """What a regular expression is searched in: the text itself, or the value as compact JSON."""
    if isinstance(actual, str):
        return actual
    return "" if actual is None else orjson.dumps(actual).decode()
