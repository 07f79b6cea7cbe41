"""All given fields of an event must match: texts by regular expression, the rest by value."""

from __future__ import annotations

import pytest

from gateway.simulate.patterns import matches
from gateway.simulate.scenario import EventPattern

RECORD = {
    "t": 1.0,
    "kind": "runtime_output",
    "type": "payload",
    "turn": 2,
    "final": True,
    "cut": [1, 2],
    "payload": {"chips": ["bills", "power cuts"], "inner": {"a": 1}},
}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"type": "pay"},
        {"type": "PAYLOAD"},
        {"turn": 2},
        {"turn": "2"},
        {"final": True},
        {"cut": [1, 2]},
        {"payload": "chips.*power"},
        {"payload": {"inner": {"a": 1}}},
        {"payload": {"chips": ["bill", "cuts"]}},
        {"missing": "^$"},
    ],
)
def test_it_matches(fields: dict[str, object]) -> None:
    assert matches(EventPattern("runtime_output", fields), RECORD)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "^text"},
        {"turn": 3},
        {"final": 1},
        {"turn": True},
        {"cut": [1]},
        {"cut": 1},
        {"payload": {"other": 1}},
        {"type": {"a": 1}},
        {"missing": "."},
    ],
)
def test_it_does_not_match(fields: dict[str, object]) -> None:
    assert not matches(EventPattern("runtime_output", fields), RECORD)


def test_another_kind_never_matches() -> None:
    assert not matches(EventPattern("runtime_input"), RECORD)
