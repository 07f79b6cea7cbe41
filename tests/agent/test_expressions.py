"""Conditions over variables: values, precedence, what is missing, clear errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.expressions import parse_expression
from gateway.errors import AppError

VARIABLES: dict[str, Any] = {
    "tier": "gold",
    "tries": 3,
    "closed": True,
    "rate": 1.5,
    "tags": ["a", "b"],
    "profile": {"city": "Bonn", "orders": [{"id": 7}]},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("closed == true", True),
        ("closed", True),
        ("!closed", False),
        ("tier == 'gold' && tries > 2", True),
        ('tier == "silver" || tries >= 3', True),
        ("tier != 'gold'", False),
        ("tries == 1 || tries == 2 && closed", False),
        ("(tries == 3 || tries == 2) && closed", True),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3),
        ("7 % 4 - -1", 4),
        ("rate * 2", 3.0),
        ("'a' + 'b'", "ab"),
        ("'b' in tags", True),
        ("'city' in profile", True),
        ("tier in ['gold', 'silver']", True),
        ("profile.city == 'Bonn'", True),
        ("profile['city'].startsWith('Bo')", True),
        ("profile.orders[0].id", 7),
        ("variables.tier == 'gold'", True),
        ("context.variables.tier == 'gold'", True),
        ("$context.variables.tries < 4", True),
        ("state.closed", True),
        ("size(tags) == 2", True),
        ("tags.size()", 2),
        ("tier.contains('ol') && tier.endsWith('d')", True),
        ("tier.matches('^g.*d$')", True),
        ("tier.upperAscii()", "GOLD"),
        ("has(profile.city)", True),
        ("has(profile.street)", False),
        ("int('4') + 1", 5),
        ("string(tries)", "3"),
        ("closed ? 'yes' : 'no'", "yes"),
        ("missing", None),
        ("missing == null", True),
        ("missing.deeper == 'x'", False),
        ("missing > 3", None),
        ("1 / 0", None),
        ("tries == true", False),
        (r"'it\'s' == \"it's\"".replace('\\"', '"'), True),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse_expression(text, "rule").value(VARIABLES) == value


def test_only_true_holds() -> None:
    for text in ("tries", "missing", "tier", "missing > 1", "'a' < 1"):
        assert not parse_expression(text, "rule").holds(VARIABLES)
    assert parse_expression("tries > 1", "rule").holds(VARIABLES)


@pytest.mark.parametrize(
    "text", ["", "a ==", "(a", "a b", "a.", "a[1", "nothing(1)", "a.nothing()", "#", "a ? b", "'x"]
)
def test_what_is_no_condition_is_told_with_its_place(text: str) -> None:
    with pytest.raises(AppError) as caught:
        parse_expression(text, "agents/A.yaml:transferRules[0]")
    assert caught.value.code == "app.expression"
    assert caught.value.where == "agents/A.yaml:transferRules[0]"


@given(st.text(alphabet="ab1.()[]<>=!&|?:'\" +-*/%,", max_size=40))
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    try:
        expression = parse_expression(text, "rule")
    except AppError:
        return
    expression.holds(VARIABLES)


def test_depth_is_bounded() -> None:
    for text in ("(" * 500 + "1" + ")" * 500, "!" * 500 + "a", "a" + "[0" * 300 + "]" * 300):
        with pytest.raises(AppError):
            parse_expression(text, "rule")
